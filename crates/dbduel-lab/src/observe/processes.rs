//! Reads a value from every process of a server.

use std::fs;

use dbduel_server::forked_by;

use super::{Missing, Subject, pid_of};

/// Attempts when processes begin or end during a reading.
const ATTEMPTS_MAX: u32 = 4;

/// Applies `one` to the subject's process, then to its forked children.
///
/// Resource use of an ended process is added to its parent. A child that ends between the two readings would count
/// twice or not at all, so both are repeated.
///
/// # Errors
/// When the subject's process cannot be read.
pub fn of_each<T>(
    subject: &Subject,
    one: impl Fn(u32) -> Result<T, Missing>,
) -> Result<Vec<T>, Missing> {
    let first = pid_of(subject)?;
    let mut attempt = 1;
    loop {
        let before = forked_by(first);
        let mut found = vec![one(first)?];
        found.extend(before.iter().filter_map(|&pid| one(pid).ok()));
        if attempt == ATTEMPTS_MAX || forked_by(first) == before {
            return Ok(found);
        }
        attempt += 1;
    }
}

/// Role of a server's forked process, from its title; `None` when it has none, or serves a client.
///
/// `postgres: checkpointer`, before PostgreSQL 11 `postgres: checkpointer process`; of a session
/// `postgres: USER DATABASE [local] SELECT`.
pub fn title(pid: u32) -> Option<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let (_, title) = line.trim_end_matches(['\0', ' ']).rsplit_once(": ")?;
    let title = title.strip_suffix(" process").unwrap_or(title);
    // Hosts stand with their port.
    let is_session = title.contains(['[', '(']);
    (!is_session).then(|| title.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_and_those_that_it_forked_are_read_and_those_of_others_are_not() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & sleep 60 & wait"])
            .spawn()
            .unwrap();
        let subject = Subject {
            pid: Some(child.id()),
            ..Subject::default()
        };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while forked_by(child.id()).len() < 2 && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let pids = of_each(&subject, Ok).unwrap();
        for pid in &pids[1..] {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(*pid).unwrap());
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        child.wait().unwrap();
        assert_eq!(pids.len(), 3);
        assert_eq!(pids[0], child.id());
    }
}
