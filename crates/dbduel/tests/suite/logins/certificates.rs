//! Certificates made for one test with the `openssl` program: of the authority that a server names, and of others.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What an extension section is called by, and what stands in it.
const EXTENSIONS: &str = "\
[req]
distinguished_name = name
prompt = no
[name]
CN = localhost
[authority]
basicConstraints = critical, CA:TRUE
[named]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost
[own]
basicConstraints = critical, CA:TRUE
subjectAltName = DNS:localhost
[nameless]
basicConstraints = critical, CA:FALSE
";

/// Which certificate a server shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Signed by the authority, for the name `localhost`.
    Named,
    /// Signed by the authority; `localhost` stands where names stood before there were alternative names.
    Nameless,
    /// Signed by the authority, in version 1 of the format, as the manuals of old servers made them.
    VersionOne,
    /// Its own authority.
    SelfSigned,
}

impl Shown {
    const ALL: [(Shown, &str); 4] = [
        (Shown::Named, "named.pem"),
        (Shown::Nameless, "nameless.pem"),
        (Shown::VersionOne, "version-one.pem"),
        (Shown::SelfSigned, "self-signed.pem"),
    ];

    fn file(self) -> &'static str {
        let mut all = Shown::ALL.iter();
        all.find(|(shown, _)| *shown == self).unwrap().1
    }
}

/// Whether this machine has the program that makes them.
pub fn can_be_made() -> bool {
    let version = Command::new("openssl").arg("version").output();
    version.is_ok_and(|output| output.status.success())
}

/// A folder with the files.
pub struct Certificates(tempfile::TempDir);

impl Certificates {
    /// Makes all of them. The server is to show the named one.
    pub fn make() -> Self {
        let made = Certificates(tempfile::tempdir().unwrap());
        std::fs::write(made.path("openssl.cnf"), EXTENSIONS).unwrap();
        for (name, subject) in [("authority", "/CN=authority"), ("stranger", "/CN=stranger")] {
            made.openssl(&format!(
                "req -config openssl.cnf -x509 -extensions authority -newkey rsa:2048 -nodes -days 2 \
                 -subj {subject} -keyout {name}-key.pem -out {name}.pem"
            ));
        }
        made.openssl(
            "req -config openssl.cnf -new -newkey rsa:2048 -nodes -keyout new-key.pem -out request.pem",
        );
        // The libraries of old servers read keys in the old form only.
        made.openssl("rsa -traditional -in new-key.pem -out server-key.pem");
        let sign = "x509 -req -in request.pem -CA authority.pem -CAkey authority-key.pem -days 2";
        for (serial, name) in [(2, "named"), (3, "nameless")] {
            made.openssl(&format!(
                "{sign} -set_serial {serial} -extfile openssl.cnf -extensions {name} -out {name}.pem"
            ));
        }
        made.openssl(&format!("{sign} -set_serial 4 -out version-one.pem"));
        let text = made.openssl("x509 -in version-one.pem -noout -text");
        if !text.contains("Version: 1 ") {
            // Newer programs have to be told.
            made.openssl(
                "req -config openssl.cnf -x509 -x509v1 -CA authority.pem -CAkey authority-key.pem \
                 -key server-key.pem -days 2 -out version-one.pem",
            );
        }
        made.openssl(
            "req -config openssl.cnf -x509 -extensions own -key server-key.pem -days 2 \
             -subj /CN=localhost -out self-signed.pem",
        );
        made.show(Shown::Named);
        made
    }

    /// Puts a certificate where the server finds its own; it has to be told to read it again.
    pub fn show(&self, shown: Shown) {
        std::fs::copy(self.path(shown.file()), self.path("server.pem")).unwrap();
    }

    /// The authority of most of them.
    pub fn authority(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// An authority that signed none of them.
    pub fn stranger(&self) -> PathBuf {
        self.path("stranger.pem")
    }

    /// The certificate that is its own authority.
    pub fn self_signed(&self) -> PathBuf {
        self.path(Shown::SelfSigned.file())
    }

    /// The options that give a server its certificate.
    pub fn options(&self) -> Vec<String> {
        [
            ("ca", "authority.pem"),
            ("cert", "server.pem"),
            ("key", "server-key.pem"),
        ]
        .map(|(option, file)| format!("--ssl-{option}={}", self.path(file).display()))
        .to_vec()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn openssl(&self, words: &str) -> String {
        let folder: &Path = self.0.path();
        let output = Command::new("openssl")
            .args(words.split_whitespace())
            .current_dir(folder)
            .output()
            .unwrap_or_else(|error| panic!("the program `openssl` is needed: {error}"));
        assert!(output.status.success(), "openssl {words}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
