//! A network of its own, with a loopback interface whose addresses can be cut off.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, setns};

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
        Self::prepared("nft list tables")
    }

    /// Makes one and runs a shell script in it.
    ///
    /// # Errors
    /// As [`Network::new`], or when the script fails.
    pub fn prepared(script: &str) -> Result<Self, String> {
        let script = &format!("ip link set lo up && {script}");
        match Namespace::prepare('n', script, Path::new("network")) {
            Ok(namespace) => Ok(Self { namespace }),
            Err(why) => Err(format!("no network of its own here: {why}")),
        }
    }

    /// A command that runs `program` in this network.
    pub fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }

    /// The process that holds it.
    pub fn holder(&self) -> u32 {
        self.namespace.holder()
    }

    /// What moves the thread that calls it into this network, with the threads that it starts.
    pub fn entrance(&self) -> impl FnOnce() -> nix::Result<()> + Send + 'static {
        let file = File::open(format!("/proc/{}/ns/net", self.holder())).unwrap();
        move || setns(file, CloneFlags::CLONE_NEWNET)
    }

    /// Runs a shell script in it.
    #[track_caller]
    pub fn run(&self, script: &str) {
        let output = self.command("sh").args(["-c", script]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {said}");
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
