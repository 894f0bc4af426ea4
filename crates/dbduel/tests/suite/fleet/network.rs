//! A network of its own, with a loopback interface whose addresses can be cut off.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::suite::namespace::Namespace;

/// A network namespace. The kernel removes it with the process that holds it.
pub struct Network {
    namespace: Namespace,
}

impl Network {
    /// Makes one.
    ///
    /// # Errors
    /// When this user may not, or a program is missing, with what was said about it.
    pub fn new() -> Result<Self, String> {
        let script = "ip link set lo up && nft list tables";
        match Namespace::prepare('n', script, Path::new("network")) {
            Ok(namespace) => Ok(Self { namespace }),
            Err(why) => Err(format!("no network of its own here: {why}")),
        }
    }

    /// A command that runs `program` in this network.
    pub fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }

    /// Drops every packet from and to an address.
    pub fn cut(&self, address: &str) {
        self.filter(&format!(
            "table ip cut {{\nchain out {{\ntype filter hook output priority 0;\n\
             ip daddr {address} drop\nip saddr {address} drop\n}}\n}}\n"
        ));
    }

    /// Drops nothing any more.
    pub fn heal(&self) {
        self.filter("delete table ip cut\n");
    }

    fn filter(&self, rules: &str) {
        let mut nft = self.command("nft");
        let mut nft = nft.args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = nft.stdin.take().unwrap();
        input.write_all(rules.as_bytes()).unwrap();
        drop(input);
        assert!(nft.wait().unwrap().success(), "{rules}");
    }
}
