//! Runs external programs to completion: with a deadline, captured output, and errors that quote it.
//!
//! Long-running servers are started elsewhere.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anstream::adapter::strip_str;
use anyhow::{Context, Result, bail};
use dbduel_machine::clock;
use dbduel_machine::interrupt;

use super::copy::tree_size;
use super::progress::{Progress, ProgressUnit};

/// Limit of a program's captured output; the remainder is read and discarded.
const CAPTURE_BYTES: u64 = 32 << 20;
/// Lines of the standard error quoted in an error.
const QUOTED_LINES: usize = 12;
const POLL: Duration = Duration::from_millis(20);
/// Timeout for the last output of a program that has ended: a grandchild may hold the pipe open.
const DRAIN: Duration = Duration::from_secs(2);

/// Result of a program that ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A program that runs to completion.
pub struct Tool<'a> {
    command: Command,
    name: String,
    remedy: &'a str,
    stdin: Vec<u8>,
    watch: Option<Watch<'a>>,
}

struct Watch<'a> {
    folder: &'a Path,
    total: Option<u64>,
    progress: &'a dyn Progress,
}

impl<'a> Tool<'a> {
    /// The program `name`; `remedy` says how to get it when it is missing.
    pub fn new(name: &str, remedy: &'a str) -> Self {
        Tool {
            remedy,
            ..Tool::of(Command::new(name), name)
        }
    }

    /// A prepared command; errors call it `name`.
    pub fn of(mut command: Command, name: &str) -> Self {
        // Messages are parsed and quoted: they must not depend on the user's language.
        command.env("LC_ALL", "C.UTF-8");
        Tool {
            command,
            name: name.to_owned(),
            remedy: "",
            stdin: Vec::new(),
            watch: None,
        }
    }

    /// Changes the command: arguments, folder, environment.
    pub fn with(mut self, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut self.command);
        self
    }

    /// Sets the program's standard input.
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// Reports the bytes in `folder` while the program runs.
    pub fn watching(
        mut self,
        folder: &'a Path,
        total: Option<u64>,
        progress: &'a dyn Progress,
    ) -> Self {
        self.watch = Some(Watch {
            folder,
            total,
            progress,
        });
        self
    }

    /// Runs the program and returns its result, whatever its exit status.
    ///
    /// # Errors
    /// It cannot be started, or exceeds the deadline and is killed.
    pub fn run(mut self, deadline: Duration) -> Result<Finished> {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| match (error.kind(), self.remedy) {
                (std::io::ErrorKind::NotFound, remedy) if !remedy.is_empty() => {
                    anyhow::anyhow!("`{}` is not installed: {remedy}", self.name)
                }
                _ => anyhow::Error::new(error).context(format!("could not start `{}`", self.name)),
            })?;
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        feed(&mut child, std::mem::take(&mut self.stdin));

        let ended = self.wait(&mut child, deadline);
        if !matches!(ended, Ok(Some(_))) {
            // Whatever happened, nothing is left running.
            let _ = child.kill();
            let _ = child.wait();
        }
        let stdout = stdout.recv_timeout(DRAIN).unwrap_or_default();
        let stderr = stderr.recv_timeout(DRAIN).unwrap_or_default();
        match ended.with_context(|| format!("could not wait for `{}`", self.name))? {
            Some(status) => Ok(Finished {
                status,
                stdout,
                stderr,
            }),
            None => bail!(
                "`{}` did not finish within {} s and was killed{}",
                self.name,
                deadline.as_secs(),
                quote(&stderr)
            ),
        }
    }

    /// Runs the program, which must exit successfully.
    ///
    /// # Errors
    /// As [`Tool::run`]; also when it fails: the error quotes the end of its output.
    pub fn run_ok(self, deadline: Duration) -> Result<Finished> {
        let name = self.name.clone();
        let finished = self.run(deadline)?;
        if !finished.status.success() {
            let said = [&finished.stderr, &finished.stdout].map(|text| quote(text));
            let said = said.iter().find(|said| !said.is_empty());
            let said = said.map_or("", String::as_str);
            bail!("`{name}` failed with {}{said}", finished.status);
        }
        Ok(finished)
    }

    fn wait(&self, child: &mut Child, deadline: Duration) -> std::io::Result<Option<ExitStatus>> {
        let end = clock::now() + deadline;
        let mut looked = clock::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if clock::now() > end {
                return Ok(None);
            }
            interrupt::check().map_err(std::io::Error::other)?;
            if let Some(watch) = &self.watch
                && clock::since(looked) > Duration::from_millis(500)
            {
                looked = clock::now();
                // A folder that changes under the count is only a less exact count.
                if let Ok(size) = tree_size(watch.folder) {
                    let bytes = ProgressUnit::Bytes;
                    watch
                        .progress
                        .advance(size.apparent_bytes, watch.total, bytes);
                }
            }
            clock::sleep(POLL);
        }
    }
}

/// The text as one word of a shell.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The last lines of a text without terminal control codes, separated from the preceding sentence; empty when there are
/// none.
pub fn quote(text: &str) -> String {
    let text = strip_str(text).to_string();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(QUOTED_LINES)..];
    if last.is_empty() {
        String::new()
    } else {
        format!("; it said:\n    {}", last.join("\n    "))
    }
}

fn feed(child: &mut Child, bytes: Vec<u8>) {
    if let Some(mut stdin) = child.stdin.take() {
        thread::spawn(move || {
            // A program that does not read to the end is judged by its exit status.
            let _ = stdin.write_all(&bytes);
        });
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(CAPTURE_BYTES).read_to_end(&mut kept);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        // After the deadline the receiver is gone.
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Tool<'static> {
        Tool::new("sh", "").with(|command| {
            command.arg("-c").arg(script);
        })
    }

    #[test]
    fn words_are_words_of_the_shell() {
        assert_eq!(shell_word("/it's here"), "'/it'\\''s here'");
        assert_eq!(shell_word("a/duel-1.toml"), "a/duel-1.toml");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn output_and_input_pass_through() {
        let text = "x".repeat(1 << 20);
        let finished = shell("cat; echo done >&2")
            .stdin(text.clone().into_bytes())
            .run_ok(Duration::from_secs(20))
            .unwrap();
        assert_eq!(finished.stdout, text);
        assert_eq!(finished.stderr, "done\n");
    }

    #[test]
    fn a_failure_quotes_the_last_words() {
        let error = shell("echo no such thing >&2; exit 3")
            .run_ok(Duration::from_secs(20))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("no such thing"),
            "{error}"
        );
    }

    #[test]
    fn a_deadline_ends_the_program() {
        let begun = clock::now();
        let mut deadline = Duration::from_millis(200);
        // A busy machine may reach the deadline before the program has said anything.
        let error = loop {
            let tool = shell("echo waiting >&2; exec sleep 1000");
            let error = tool.run(deadline).unwrap_err().to_string();
            assert!(error.contains("did not finish"), "{error}");
            deadline *= 2;
            if error.contains("waiting") || deadline > Duration::from_secs(60) {
                break error;
            }
        };
        assert!(error.contains("waiting"), "{error}");
        // It did not end by itself.
        assert!(clock::since(begun) < Duration::from_secs(900));
    }

    /// As Maven does, which resets the colour of both and explains itself on the other.
    #[test]
    fn codes_of_a_terminal_are_no_words() {
        let error = shell("printf '\\033[0m' >&2; echo 'no such artifact'; exit 1")
            .run_ok(Duration::from_secs(20))
            .unwrap_err()
            .to_string();
        assert!(error.contains("no such artifact"), "{error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }

    #[test]
    fn a_missing_program_comes_with_its_remedy() {
        let tool = Tool::new("dbduel-no-such-program", "install the package `example`");
        let error = tool.run(Duration::from_secs(1)).unwrap_err().to_string();
        assert_eq!(
            error,
            "`dbduel-no-such-program` is not installed: install the package `example`"
        );
    }
}
