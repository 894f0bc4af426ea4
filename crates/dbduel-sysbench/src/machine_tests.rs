//! The tests `cpu`, `memory`, `threads` and `mutex`: their options and output.

use std::sync::Arc;

use crate::machine::Machine;
use crate::machine::cpu::Cpu;
use crate::machine::locks::{Mutexes, Threads};
use crate::machine::memory::{Memory, MemorySpec, Operation, WORD};

use super::page::Style;
use super::parsed_options::{ParsedOptions, Written};
use super::table::{self, Spec};
use super::{Job, Stop, command, no_command, run as runs, test_help};

/// The tests and their options.
const TESTS: &[(&str, &[Spec])] = &[
    ("cpu", table::CPU),
    ("memory", table::MEMORY),
    ("threads", table::THREADS),
    ("mutex", table::MUTEX),
];

/// True for one of these tests.
pub fn has(test: &str) -> bool {
    TESTS.iter().any(|(name, _)| *name == test)
}

/// Executes the command of the job for a test; returns the exit code.
///
/// # Errors
/// Errors in the options, or a failed run.
pub fn run(test: &str, job: &Job, rest: Vec<Written>) -> Result<u8, Stop> {
    let specs = TESTS.iter().find(|(name, _)| *name == test);
    let (_, specs) = specs.ok_or_else(|| Stop::Fatal(format!("there is no test {test}")))?;
    let given = ParsedOptions::read_all(&[specs], rest, job.general.voice)?;
    match command(test, job)? {
        "help" => Ok(test_help(test, &[specs], job.general.voice)),
        "run" => match test {
            "cpu" => cpu(job, &given),
            "memory" => memory(job, &given),
            "threads" => threads(job, &given),
            _ => mutex(job, &given),
        },
        other => Err(no_command(test, other)),
    }
}

fn cpu(job: &Job, given: &ParsedOptions) -> Result<u8, Stop> {
    let max_prime = u64::from(given.positive("cpu-max-prime", u32::MAX)?);
    let about = format!("Prime numbers limit: {max_prime}\n");
    runs::machine(&job.general, Style::Cpu, &about, || {
        Ok(Arc::new(Cpu { max_prime }))
    })
}

fn memory(job: &Job, given: &ParsedOptions) -> Result<u8, Stop> {
    let block_bytes = given.count("memory-block-size")?;
    if block_bytes < WORD || !block_bytes.is_power_of_two() {
        return Err(Stop::Fatal(format!(
            "Invalid value for memory-block-size: {block_bytes}"
        )));
    }
    let total_bytes = given.count("memory-total-size")?;
    let operations = [
        ("read", Operation::Read),
        ("write", Operation::Write),
        ("none", Operation::Nothing),
    ];
    let operation = given.choice("memory-oper", &operations)?;
    let is_shared = given.choice("memory-scope", &[("global", true), ("local", false)])?;
    let shape = job.general.shapes.default;
    let random = given.choice("memory-access-mode", &[("seq", None), ("rnd", Some(shape))])?;
    let (oper, scope) = (given.text("memory-oper"), given.text("memory-scope"));
    let about = format!(
        "Running memory speed test with the following options:\n  block size: {}KiB\n  total size: {}MiB\n  operation: {oper}\n  scope: {scope}\n",
        block_bytes >> 10,
        total_bytes >> 20,
    );
    let spec = MemorySpec {
        block_bytes,
        total_bytes,
        workers: job.general.threads,
        operation,
        random,
        is_shared,
        huge_pages: given.switch("memory-hugetlb"),
        seed: job.general.seed,
    };
    // The number of bytes is the limit, whatever --events says.
    let mut general = job.general.clone();
    general.limits.events = None;
    runs::machine(&general, Style::Memory, &about, || {
        Ok(Arc::new(Memory::new(spec).map_err(Stop::Fatal)?))
    })
}

fn threads(job: &Job, given: &ParsedOptions) -> Result<u8, Stop> {
    let yields = given.positive("thread-yields", u32::MAX)?;
    let locks = given.positive("thread-locks", 1 << 20)?;
    runs::machine(&job.general, Style::Events, "", || {
        Ok(Arc::new(Threads::new(yields, locks)))
    })
}

fn mutex(job: &Job, given: &ParsedOptions) -> Result<u8, Stop> {
    let mutexes = given.positive("mutex-num", 1 << 24)?;
    let (locks, loops) = (given.count("mutex-locks")?, given.count("mutex-loops")?);
    let seed = job.general.seed;
    // Each client has one event, however long it takes.
    let mut general = job.general.clone();
    general.limits.events = None;
    runs::machine(&general, Style::Events, "", || {
        let test: Arc<dyn Machine> = Arc::new(Mutexes::new(mutexes, locks, loops, seed));
        Ok(test)
    })
}
