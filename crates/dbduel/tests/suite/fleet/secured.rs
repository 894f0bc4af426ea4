//! TLS and credentials of a nats-server in operator mode: accounts and their users are tokens that are signed above them.

use std::path::PathBuf;
use std::process::Command;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::suite::harness::skip;

/// Files of a nats-server that takes neither connections without TLS nor programs without credentials.
pub struct Secured {
    folder: TempDir,
}

impl Secured {
    /// Makes them for a nats-server at an IP address; `None`, and the test counts as ignored, without the program `openssl`.
    pub fn make(address: &str) -> Option<Self> {
        let made = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let config = format!(
            "[req]\ndistinguished_name = name\nprompt = no\nx509_extensions = own\n[name]\nCN = nats\n\
             [own]\nbasicConstraints = critical, CA:FALSE\nsubjectAltName = IP:{address}\n"
        );
        std::fs::write(made.path("openssl.cnf"), config).unwrap();
        let words = "req -config openssl.cnf -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out certificate.pem";
        let output = Command::new("openssl")
            .args(words.split(' '))
            .current_dir(made.folder.path())
            .output();
        let Ok(output) = output else {
            skip("the program `openssl` is missing");
            return None;
        };
        assert!(output.status.success(), "openssl {words}: {output:?}");
        made.write_tokens();
        Some(made)
    }

    fn write_tokens(&self) {
        let (operator, account) = (KeyPair::new_operator(), KeyPair::new_account());
        let (system, user) = (KeyPair::new_account(), KeyPair::new_user());
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "conn": -1, "leaf": -1, "wildcards": true,
        });
        let of_account = json!({ "type": "account", "version": 2, "limits": limits });
        let of_user =
            json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
        let of_operator = json!({ "type": "operator", "version": 2 });
        let file = |name: &str| self.path(name).display().to_string();
        let config = json!({
            "operator": token(&operator, &operator, &of_operator),
            "resolver": "MEMORY",
            "system_account": system.public_key(),
            "resolver_preload": {
                account.public_key(): token(&operator, &account, &of_account),
                system.public_key(): token(&operator, &system, &of_account),
            },
            "tls": { "cert_file": file("certificate.pem"), "key_file": file("key.pem") },
        });
        std::fs::write(self.path("nats.conf"), config.to_string()).unwrap();
        let credentials = format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            token(&account, &user, &of_user),
            user.seed().unwrap()
        );
        std::fs::write(self.path("user.creds"), credentials).unwrap();
    }

    /// The configuration for nats-server.
    pub fn config(&self) -> PathBuf {
        self.path("nats.conf")
    }

    /// The certificate of nats-server, which is its own authority.
    pub fn certificate(&self) -> PathBuf {
        self.path("certificate.pem")
    }

    /// The credentials of a user who may do everything.
    pub fn credentials(&self) -> PathBuf {
        self.path("user.creds")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// What one key says of another.
fn token(signer: &KeyPair, subject: &KeyPair, claims: &Value) -> String {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let claims = json!({
        "jti": subject.public_key(), "iat": now.as_secs(), "iss": signer.public_key(), "sub": subject.public_key(),
        "name": "test", "nats": claims,
    });
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encoded(&header), encoded(&claims));
    let signature = signer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}
