//! `dbduel sysbench`: sysbench's own command line, tests, scripts and output.
//!
//! Not a contest: nothing is recorded or judged. `dbduel` is put in front of an existing command, and parsers of its
//! output keep working. The command's own process is the load process, because it does nothing else.
//!
//! ```text
//! parsed_options ─► general ─┬► machine_tests (cpu, memory, threads, mutex) ┐
//!                            ├► file_io                               ├► run_loop ─► page
//!                            ├► native (the built-in SQL tests)       │
//!                            └► script (everything else, in Lua)      ┘
//! ```

pub mod bridge;
mod file_io;
mod general;
mod load;
mod logger;
pub mod machine;
mod machine_tests;
mod native;
mod page;
mod parsed_options;
mod run;
mod run_loop;
mod script;
mod server;
mod table;

use dbduel_lua::options_text;
use dbduel_machine::random::fresh_seed;
use dbduel_text::terminal;

use general::General;
use logger::Logger;
use parsed_options::{ParsedOptions, Words};

/// The version of sysbench whose command line this is.
const VERSION: &str = "1.0.20";

/// Why a command cannot be executed. Both end it with exit code 1; they differ in where the message goes.
#[derive(Debug, thiserror::Error)]
enum Stop {
    /// The command line is wrong; goes to standard error.
    #[error("{0}")]
    Usage(String),
    /// Any other error; goes to standard output, in place of the report.
    #[error("{0}")]
    Fatal(String),
}

/// Runs the arguments of `dbduel sysbench`, with sysbench's output. Returns the exit code, with sysbench's meaning: 0
/// done, 1 failed, 2 took too long.
pub fn sysbench(words: &[String]) -> u8 {
    let mut voice = Logger { verbosity: 3 };
    match attempt(words, &mut voice) {
        Ok(code) => code,
        Err(Stop::Usage(text)) => {
            terminal::status_line(&text);
            1
        }
        Err(Stop::Fatal(text)) => {
            voice.fatal(&text);
            1
        }
    }
}

/// Input of a test besides its own options.
struct Job {
    general: General,
    /// General options and those of databases.
    given: ParsedOptions,
    /// All arguments, for scripts that read them.
    words: Vec<String>,
    command: Option<String>,
}

fn attempt(words: &[String], voice: &mut Logger) -> Result<u8, Stop> {
    let sorted = Words::sort(words)?;
    let (given, rest) = ParsedOptions::read(table::GENERAL, sorted.options)?;
    *voice = general::voice(&given);
    if given.switch("version") {
        voice.notice(&format!("sysbench {VERSION}"));
        return Ok(0);
    }
    if given.switch("help") {
        voice.notice(help().trim_end_matches('\n'));
        return Ok(0);
    }
    let general = General::read(&given, fresh_seed())?;
    voice.notice(&format!(
        "sysbench {VERSION} (using dbduel {} in its place)\n",
        env!("CARGO_PKG_VERSION")
    ));
    let job = Job {
        general,
        given,
        words: words.to_vec(),
        command: sorted.command,
    };
    let test = sorted.test.as_deref().unwrap_or(script::STANDARD_INPUT);
    if machine_tests::has(test) {
        return machine_tests::run(test, &job, rest);
    }
    if test == "fileio" {
        return file_io::run(&job, rest);
    }
    if let Some(native) = native::find(test) {
        return native::run(native, &job, rest);
    }
    script::run(test, &job, &rest)
}

/// The command of a built-in test.
fn command<'a>(test: &str, job: &'a Job) -> Result<&'a str, Stop> {
    job.command.as_deref().ok_or_else(|| {
        Stop::Usage(format!(
            "The '{test}' test requires a command argument. See 'sysbench {test} help'"
        ))
    })
}

/// Error for a command that a test does not have.
fn no_command(test: &str, command: &str) -> Stop {
    Stop::Usage(match command {
        "prepare" | "cleanup" | "help" | "run" => {
            format!("'{test}' test does not implement the '{command}' command.")
        }
        _ => format!("Unknown command: {command}"),
    })
}

/// The list of a test's own options.
fn test_help(test: &str, specs: &[&'static [table::Spec]], voice: Logger) -> u8 {
    let options = options_text(&parsed_options::declared(specs));
    voice.notice(&format!(
        "{test} options:\n{}",
        options.trim_end_matches('\n')
    ));
    voice.notice("");
    0
}

/// All general options.
fn help() -> String {
    let mut text = "Usage:\n  sysbench [options]... [testname] [command]\n\n\
        Commands implemented by most tests: prepare run cleanup help\n\n"
        .to_owned();
    for section in table::GENERAL {
        let options: Vec<_> = section.options.iter().map(table::Spec::declared).collect();
        text += &format!("{}\n{}", section.title, options_text(&options));
    }
    text +=
        "Compiled-in database drivers:\n  mysql - MySQL driver\n  pgsql - PostgreSQL driver\n\n";
    text += "Compiled-in tests:\n  fileio - File I/O test\n  cpu - CPU performance test\n  \
        memory - Memory functions speed test\n  threads - Threads subsystem performance test\n  \
        mutex - Mutex performance test\n";
    // Behind a blank line: what reads sysbench's help knows the compiled-in tests by these five lines.
    text += "\nTests of databases, which run natively:\n";
    for native in native::NATIVES {
        text += &format!("  {} - {}\n", native.name, native.about());
    }
    text + "\nSee 'sysbench <testname> help' for a list of options for each test.\n\n"
}
