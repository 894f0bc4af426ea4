//! A file system of a few kilobytes that can really be full: a tmpfs in a mount namespace of its own.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The file that takes the room.
const FILLER: &str = "filler";

/// A mounted tmpfs. The kernel removes it with the process that holds its namespace, which ends with this.
pub struct SmallDisk {
    holder: Child,
    folder: tempfile::TempDir,
    /// How a process enters the namespaces of the holder.
    entering: &'static [&'static str],
}

impl SmallDisk {
    /// Mounts one of `kib` KiB.
    ///
    /// # Errors
    /// When this user may not mount anything, with what was said about it.
    pub fn mount(kib: u32) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let script =
            format!("mount -t tmpfs -o size={kib}k dbduel-test \"$0\" && echo mounted && exec cat");
        let mut said = String::new();
        // Root has the privilege unless it was taken away; others get it in a user namespace where the kernel allows that.
        let namespaces: [(&str, &[&str]); 2] = [
            ("-m", &["-m"]),
            ("-Urm", &["-U", "--preserve-credentials", "-m"]),
        ];
        for (flags, entering) in namespaces {
            let mut holder = Command::new("unshare")
                .args([flags, "sh", "-c", &script])
                .arg(folder.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| format!("`unshare` cannot be started: {error}"))?;
            let mut line = String::new();
            BufReader::new(holder.stdout.as_mut().unwrap())
                .read_line(&mut line)
                .unwrap();
            if line.trim() == "mounted" {
                return Ok(Self {
                    holder,
                    folder,
                    entering,
                });
            }
            holder
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut said)
                .unwrap();
            holder.wait().unwrap();
        }
        Err(format!("no tmpfs can be mounted here: {}", said.trim()))
    }

    /// Its root, as processes outside of the namespace see it.
    pub fn path(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.folder.path().strip_prefix("/").unwrap())
    }

    /// A command that runs `program` inside of the namespace, where the root is [`SmallDisk::inside`].
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.holder.id().to_string());
        command.args(self.entering).arg(program);
        command.stdin(Stdio::null());
        command
    }

    /// Its root, as processes inside of the namespace see it.
    pub fn inside(&self) -> &Path {
        self.folder.path()
    }

    /// Takes all room that is left.
    pub fn fill(&self) {
        let mut filler = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path().join(FILLER))
            .unwrap();
        for bytes in [1 << 16, 1 << 12, 1] {
            while filler.write_all(&vec![0; bytes]).is_ok() {}
        }
    }

    /// Gives the room back.
    pub fn empty(&self) {
        std::fs::remove_file(self.path().join(FILLER)).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // `cat` ends with its input.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
