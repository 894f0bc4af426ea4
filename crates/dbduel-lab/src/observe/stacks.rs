//! CPU profile of a server: stacks that `perf` samples, folded into one line per stack.
//!
//! Sampling slows the sampled server, so it is done only under load that does not count. It needs `perf` and the
//! kernel's permission; without them the result is a reason instead of stacks. Stacks are unwound by debug frame
//! information, since most servers are built without frame pointers; where that ends early, so does a stack.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use dbduel_server::{Tool, forked_by};

use super::Missing;

/// Samples per second and processor; odd, to avoid running in step with the server's timers.
pub const HERTZ: f64 = 397.0;
/// Unwinding method and bytes of each stack that are copied.
const UNWIND: &str = "dwarf,16384";
/// Time for `perf` to begin and to write its data.
const RECORD_SLACK: Duration = Duration::from_secs(30);
/// Timeout for `perf` to resolve all function names.
const SCRIPT_MAX: Duration = Duration::from_secs(120);
/// Limit of folded stacks; rare ones are left out.
const STACKS_MAX: usize = 4000;
/// How to get `perf`.
const REMEDY: &str = "install it (Debian: linux-perf) or do without";

/// Samples the stacks of all threads of `pid`, and of its forked children, for `time` into `file`, in the format of
/// `perf record`.
///
/// # Errors
/// When there is no `perf`, or the kernel does not permit sampling.
pub fn record(pid: u32, time: Duration, file: &Path) -> Result<(), Missing> {
    let processes: Vec<String> = std::iter::once(pid)
        .chain(forked_by(pid))
        .map(|pid| pid.to_string())
        .collect();
    let tool = Tool::new("perf", REMEDY).with(|command| {
        command
            .args([
                "record",
                "-q",
                "-e",
                "cpu-clock:u",
                "-F",
                &HERTZ.to_string(),
            ])
            .args(["--call-graph", UNWIND, "--pid", &processes.join(","), "-o"])
            .arg(file)
            .args(["--", "sleep", &time.as_secs_f64().to_string()]);
    });
    match tool.run_ok(time + RECORD_SLACK) {
        Ok(_) => Ok(()),
        Err(error) => Err(Missing(format!("{error:#}"))),
    }
}

/// The stacks in a file of [`record`], folded.
///
/// # Errors
/// When `perf` cannot read it, or it holds no sample.
pub fn fold_file(file: &Path) -> Result<String, Missing> {
    let tool = Tool::new("perf", REMEDY).with(|command| {
        command
            .args(["script", "-F", "comm,ip,sym,dso", "-i"])
            .arg(file);
    });
    let script = tool
        .run_ok(SCRIPT_MAX)
        .map_err(|error| Missing(format!("{error:#}")))?;
    let folded = fold(&script.stdout);
    if folded.is_empty() {
        return Err(Missing("`perf` took no sample of the server".to_owned()));
    }
    Ok(folded)
}

/// Folds the output of `perf script` into lines `thread;outermost;…;innermost COUNT`, the most frequent first.
fn fold(script: &str) -> String {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let (mut thread, mut frames): (Option<String>, Vec<String>) = (None, Vec::new());
    // An empty line ends a stack, and the text ends like a stack.
    for line in script.lines().chain([""]) {
        if line.trim().is_empty() {
            if let Some(thread) = thread.take() {
                let mut stack = vec![thread];
                stack.extend(frames.drain(..).rev());
                *stacks.entry(stack.join(";")).or_default() += 1;
            }
        } else if line.starts_with(char::is_whitespace) && thread.is_some() {
            let name = function(line);
            // Several unnamed functions of one file in a row say no more than one.
            if !(name.starts_with('[') && frames.last() == Some(&name)) {
                frames.push(name);
            }
        } else {
            thread = Some(group(line.trim()));
            frames.clear();
        }
    }
    let mut stacks: Vec<(String, u64)> = stacks.into_iter().collect();
    stacks.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    stacks.truncate(STACKS_MAX);
    stacks
        .iter()
        .fold(String::new(), |mut text, (stack, count)| {
            let _ = writeln!(text, "{stack} {count}");
            text
        })
}

/// Common name of threads with the same task: without their numbers.
fn group(thread: &str) -> String {
    let name = thread.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
    part(if name.is_empty() { thread } else { name })
}

/// The function of a frame, `ADDRESS NAME(PARAMETERS) (FILE)`, without its parameters; the file in brackets for a
/// function without a known name.
fn function(frame: &str) -> String {
    let text = frame.trim();
    let text = text.split_once(' ').map_or("", |(_, text)| text);
    let (name, file) = text.rsplit_once(" (").unwrap_or((text, ""));
    let end = match name.find('(') {
        Some(0) | None => name.len(),
        Some(at) => at,
    };
    match name[..end].trim() {
        "" | "[unknown]" => {
            let file = file.rsplit('/').next().unwrap_or_default();
            let file = file.trim_matches(['[', ']', ')']);
            part(&format!("[{file}]"))
        }
        name => part(name),
    }
}

/// A component of a folded line: replaces the separators of components and of the count.
fn part(name: &str) -> String {
    name.replace(';', ":")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join("_")
}

#[cfg(test)]
mod tests {
    use dbduel_test_attribute::needs_program;

    use super::*;

    /// What `perf script` said of a MariaDB 10.11, shortened.
    const RECORDED: &str = "\
mariadbd
\t    55d0e3a1c0f2 row_search_mvcc(unsigned char*, page_cur_mode_t, row_prebuilt_t*, unsigned long) (/usr/sbin/mariadbd)
\t    55d0e394ab10 ha_innobase::index_read(unsigned char*, unsigned char const*, unsigned int) (/usr/sbin/mariadbd)
\t    55d0e3560c31 [unknown] (/usr/sbin/mariadbd)
\t    55d0e3560a07 [unknown] (/usr/sbin/mariadbd)
\t    7f1e2f8a81f4 start_thread (/usr/lib/x86_64-linux-gnu/libc.so.6)

mariadbd
\t    55d0e3a1c0f9 row_search_mvcc(unsigned char*, page_cur_mode_t, row_prebuilt_t*, unsigned long) (/usr/sbin/mariadbd)
\t    55d0e394ab10 ha_innobase::index_read(unsigned char*, unsigned char const*, unsigned int) (/usr/sbin/mariadbd)
\t    55d0e3560c31 [unknown] (/usr/sbin/mariadbd)
\t    7f1e2f8a81f4 start_thread (/usr/lib/x86_64-linux-gnu/libc.so.6)

ib_pg_flush-2
\t    7f1e2f91c0aa pwrite64 (inlined)
\t    7f1e2f91c0ab [unknown] ([unknown])
";

    #[test]
    fn recorded_stacks_are_folded_from_the_outermost_in() {
        assert_eq!(
            fold(RECORDED),
            "mariadbd;start_thread;[mariadbd];ha_innobase::index_read;row_search_mvcc 2\n\
             ib_pg_flush;[unknown];pwrite64 1\n"
        );
    }

    #[test]
    fn names_cannot_break_a_line_apart() {
        let script = "a;b c7\n\t 1 operator new[](unsigned long) (/d)\n\t 2 (anonymous namespace)::f(int) (/d)\n";
        assert_eq!(
            fold(script),
            "a:b_c;(anonymous_namespace)::f(int);operator_new[] 1\n"
        );
        assert_eq!(fold(""), "");
    }

    #[test]
    #[needs_program("perf")]
    fn a_process_that_works_has_stacks_where_perf_may_look() {
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("perf.data");
        let look =
            || record(busy.id(), Duration::from_secs(1), &file).and_then(|()| fold_file(&file));
        // A busy machine may let it do nothing for a second.
        let is_idle = |folded: &Result<String, Missing>| matches!(folded, Err(Missing(why)) if why.contains("no sample"));
        let mut folded = look();
        for _ in 0..30 {
            if is_idle(&folded) {
                folded = look();
            }
        }
        busy.kill().unwrap();
        busy.wait().unwrap();
        match folded {
            Ok(folded) => {
                let (stack, count) = folded.lines().next().unwrap().rsplit_once(' ').unwrap();
                assert!(stack.starts_with("sh"), "{folded}");
                assert!(count.parse::<u64>().unwrap() > 0, "{folded}");
            }
            // The kernel lets no ordinary user look; `perf` says what to do.
            Err(Missing(why)) => assert!(why.contains("perf_event_paranoid"), "{why}"),
        }
    }

    #[test]
    fn a_process_that_is_gone_gives_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let missing = record(
            u32::MAX >> 1,
            Duration::from_millis(10),
            &dir.path().join("perf.data"),
        );
        assert!(!missing.unwrap_err().0.is_empty());
    }
}
