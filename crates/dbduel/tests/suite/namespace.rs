//! A namespace of the kernel that lives as long as a process holds it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub struct Namespace {
    holder: Child,
    /// How a process enters the namespaces of the holder.
    entering: Vec<String>,
}

impl Namespace {
    /// Makes one of a kind (`m` for mounts, `n` for the network, as `unshare` calls them) and prepares it by a shell script, whose
    /// `$0` is `argument`.
    ///
    /// # Errors
    /// When this user may not, or the script fails, with what was said about it.
    pub fn prepare(kind: char, script: &str, argument: &Path) -> Result<Self, String> {
        let script = format!("{script} && echo ready && exec cat");
        let mut said = String::new();
        // Root has the privilege unless it was taken away; others get it in a user namespace where the kernel allows that.
        let namespaces = [
            (format!("-{kind}"), vec![format!("-{kind}")]),
            (
                format!("-Ur{kind}"),
                vec![
                    "-U".to_owned(),
                    "--preserve-credentials".to_owned(),
                    format!("-{kind}"),
                ],
            ),
        ];
        for (flags, entering) in namespaces {
            let mut holder = Command::new("unshare")
                .args([&flags, "sh", "-c", &script])
                .arg(argument)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| format!("`unshare` cannot be started: {error}"))?;
            let mut line = String::new();
            BufReader::new(holder.stdout.as_mut().unwrap())
                .read_line(&mut line)
                .unwrap();
            if line.trim() == "ready" {
                return Ok(Self { holder, entering });
            }
            let mut errors = holder.stderr.take().unwrap();
            errors.read_to_string(&mut said).unwrap();
            holder.wait().unwrap();
        }
        Err(said.trim().to_owned())
    }

    /// The process that holds it.
    pub fn holder(&self) -> u32 {
        self.holder.id()
    }

    /// A command that runs `program` inside.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.holder.id().to_string());
        command.args(&self.entering).arg(program);
        command.stdin(Stdio::null());
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // `cat` ends with its input.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
