//! Wait states of a server's threads, sampled.
//!
//! The kernel shows the current system call of every thread (`/proc/PID/task/TID/syscall`); the file behind its first
//! argument separates a wait for data from one for the log, and a wait for another thread from one for the client. Time
//! on a processor and in the run queue is counted rather than sampled, by [`super::threads`]. Latches, row locks and a
//! group commit led by another thread look alike: all are a futex.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use dbduel_server::forked_by;
use nix::libc;

use super::Missing;

/// State of a thread in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// On a processor, or ready for one.
    Running,
    /// Waits for data to be read.
    DiskRead,
    /// Waits for data to be written or synced.
    DiskWrite,
    /// Waits for a log to be written or synced: redo, or binary log.
    Log,
    /// Waits for another thread: latch, row lock, queue, group commit.
    OtherThread,
    /// Waits for the client, or sends to it.
    Client,
    /// Something else, a page fault among them.
    Other,
}

impl State {
    /// Every state with the metric that holds its time.
    pub const METRICS: [(State, &'static str); 7] = [
        (State::Running, "connections_seen_running_s"),
        (State::DiskRead, "connections_disk_read_s"),
        (State::DiskWrite, "connections_disk_write_s"),
        (State::Log, "connections_log_s"),
        (State::OtherThread, "connections_other_thread_s"),
        (State::Client, "connections_client_s"),
        (State::Other, "connections_other_s"),
    ];
}

/// Samples the threads of one process repeatedly.
#[derive(Debug, Default)]
pub struct Scanner {
    pid: u32,
    threads: HashMap<u32, File>,
    files: HashMap<u64, FileKind>,
    seen: BTreeMap<(u32, State), u64>,
    looks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Socket,
    Log,
    Data,
}

impl Scanner {
    /// A scanner before its first sample.
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            ..Self::default()
        }
    }

    /// Samples every thread but the first, which accepts connections.
    ///
    /// # Errors
    /// When the kernel does not show their states.
    pub fn look(&mut self) -> Result<(), Missing> {
        let folder = format!("/proc/{}/task", self.pid);
        let tasks =
            fs::read_dir(&folder).map_err(|error| Missing(format!("`{folder}`: {error}")))?;
        let (mut found, mut refusal) = (0, None);
        for task in tasks.flatten() {
            let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if tid == self.pid {
                continue;
            }
            match self.state_of(&folder, tid) {
                Ok(state) => {
                    *self.seen.entry((tid, state)).or_default() += 1;
                    found += 1;
                }
                // It has ended since the folder was listed, or may not be read.
                Err(error) => {
                    self.threads.remove(&tid);
                    refusal = Some(error);
                }
            }
        }
        self.looks += 1;
        if found == 0 && refusal.is_none() && !forked_by(self.pid).is_empty() {
            return Err(Missing(
                "this server uses one process per session, and these wait for clients, for locks and for each other \
                 in the same system call"
                    .to_owned(),
            ));
        }
        match refusal {
            Some(error) if found == 0 => Err(Missing(format!("`{folder}/TID/syscall`: {error}"))),
            _ => Ok(()),
        }
    }

    fn state_of(&mut self, folder: &str, tid: u32) -> std::io::Result<State> {
        let file = match self.threads.entry(tid) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(File::open(format!("{folder}/{tid}/syscall"))?)
            }
        };
        let mut line = [0; 256];
        let length = file.read_at(&mut line, 0)?;
        let line = String::from_utf8_lossy(&line[..length]);
        let (call, argument) = parse(&line);
        Ok(match call {
            Call::None => State::Running,
            Call::Number(number) => {
                let pid = self.pid;
                classify(number, || {
                    *self
                        .files
                        .entry(argument)
                        .or_insert_with(|| kind_of(pid, argument))
                })
            }
            Call::Outside => State::Other,
        })
    }

    /// Threads that were seen waiting for a client: those that serve connections.
    pub fn connections(&self) -> BTreeSet<u32> {
        self.seen
            .keys()
            .filter(|(_, state)| *state == State::Client)
            .map(|(tid, _)| *tid)
            .collect()
    }

    /// Present threads whose names begin with `prefix`.
    pub fn named(&self, prefix: &str) -> BTreeSet<u32> {
        let has_name = |tid: &u32| {
            let name = fs::read_to_string(format!("/proc/{}/task/{tid}/comm", self.pid));
            name.is_ok_and(|name| name.starts_with(prefix))
        };
        self.threads.keys().copied().filter(has_name).collect()
    }

    /// Present threads.
    pub fn alive(&self) -> BTreeSet<u32> {
        self.threads.keys().copied().collect()
    }

    /// Number of samples.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// Total seconds of `connections` in each state within `window_s`.
    pub fn seconds(&self, connections: &BTreeSet<u32>, window_s: f64) -> BTreeMap<State, f64> {
        let mut seconds = BTreeMap::new();
        if self.looks == 0 {
            return seconds;
        }
        for ((tid, state), count) in &self.seen {
            if connections.contains(tid) {
                *seconds.entry(*state).or_default() += window_s * *count as f64 / self.looks as f64;
            }
        }
        seconds
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Call {
    /// On a processor or ready for one.
    None,
    /// In the system call with this number.
    Number(i64),
    /// Blocked outside of a system call.
    Outside,
}

/// The call and its first argument from `NUMBER 0xARG …`, `running` or `-1 …`.
fn parse(line: &str) -> (Call, u64) {
    let mut words = line.split_ascii_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<i64>().ok()) else {
        return (Call::None, 0);
    };
    let argument = words
        .next()
        .and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok())
        .unwrap_or(0);
    if number < 0 {
        (Call::Outside, 0)
    } else {
        (Call::Number(number), argument)
    }
}

fn classify(number: i64, file: impl FnOnce() -> FileKind) -> State {
    match number {
        libc::SYS_futex
        | libc::SYS_nanosleep
        | libc::SYS_clock_nanosleep
        | libc::SYS_sched_yield => State::OtherThread,
        libc::SYS_ppoll
        | libc::SYS_recvfrom
        | libc::SYS_sendto
        | libc::SYS_recvmsg
        | libc::SYS_sendmsg => State::Client,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll | libc::SYS_select => State::Client,
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv | libc::SYS_preadv => match file() {
            FileKind::Socket => State::Client,
            FileKind::Log => State::Log,
            FileKind::Data => State::DiskRead,
        },
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_sync_file_range
        | libc::SYS_fallocate
        | libc::SYS_ftruncate => match file() {
            FileKind::Socket => State::Client,
            FileKind::Log => State::Log,
            FileKind::Data => State::DiskWrite,
        },
        _ => State::Other,
    }
}

fn kind_of(pid: u32, descriptor: u64) -> FileKind {
    let Ok(target) = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) else {
        return FileKind::Data;
    };
    kind_of_path(&target)
}

/// Kind of a file, by the servers' naming conventions.
fn kind_of_path(target: &Path) -> FileKind {
    let text = target.to_string_lossy();
    if text.starts_with("socket:") {
        return FileKind::Socket;
    }
    let name = target
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let is_redo = name.starts_with("ib_logfile") || name.starts_with("#ib_redo");
    // `binlog.000001`, `host-bin.000001`: a stem and a number.
    let is_binary_log = name.rsplit_once('.').is_some_and(|(stem, number)| {
        number.len() >= 6
            && number.bytes().all(|digit| digit.is_ascii_digit())
            && (stem.contains("bin"))
    });
    let is_engine_log = text.contains("/#rocksdb/") && name.ends_with(".log");
    if is_redo || is_binary_log || is_engine_log {
        FileKind::Log
    } else {
        FileKind::Data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;

    #[test]
    fn lines_of_the_kernel_are_understood() {
        assert_eq!(parse("running\n"), (Call::None, 0));
        assert_eq!(parse("-1 0x7ffe 0x7f00\n"), (Call::Outside, 0));
        assert_eq!(
            parse("202 0x1f 0x80 0x0 0x0 0x0 0x0 0x7ffe 0x7f\n"),
            (Call::Number(202), 0x1f)
        );
    }

    #[test]
    fn files_are_told_apart_by_their_names() {
        for (path, kind) in [
            ("socket:[4711]", FileKind::Socket),
            ("/d/ib_logfile0", FileKind::Log),
            ("/d/#innodb_redo/#ib_redo12", FileKind::Log),
            ("/d/binlog.000003", FileKind::Log),
            ("/d/host-bin.000001", FileKind::Log),
            ("/d/#rocksdb/000012.log", FileKind::Log),
            ("/d/ibdata1", FileKind::Data),
            ("/d/undo_001", FileKind::Data),
            ("/d/sbtest/sbtest1.ibd", FileKind::Data),
        ] {
            assert_eq!(kind_of_path(Path::new(path)), kind, "{path}");
        }
    }

    #[test]
    fn a_thread_that_waits_for_its_peer_is_a_connection_and_one_that_waits_for_a_thread_is_not() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let (sender, receiver) = channel::<()>();
        let tid = || nix::unistd::gettid().as_raw() as u32;
        let (ids, announced) = channel();
        let reader = std::thread::spawn({
            let ids = ids.clone();
            move || {
                ids.send(("reads", tid())).unwrap();
                let _ = near.read(&mut [0]);
            }
        });
        let waiter = std::thread::spawn(move || {
            ids.send(("waits", tid())).unwrap();
            let _ = receiver.recv();
        });
        let names: HashMap<&str, u32> =
            [announced.recv().unwrap(), announced.recv().unwrap()].into();
        let mut scanner = Scanner::new(std::process::id());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while std::time::Instant::now() < deadline {
            scanner.look().unwrap();
            let waits = scanner.seconds(&BTreeSet::from([names["waits"]]), 1.0);
            if scanner.connections().contains(&names["reads"])
                && waits.contains_key(&State::OtherThread)
            {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(scanner.connections().contains(&names["reads"]));
        assert!(!scanner.connections().contains(&names["waits"]));
        let waits = scanner.seconds(&BTreeSet::from([names["waits"]]), 10.0);
        assert!(waits[&State::OtherThread] > 0.0, "{waits:?}");
        far.write_all(b"x").unwrap();
        drop(sender);
        reader.join().unwrap();
        waiter.join().unwrap();
    }
}
