//! The contest of a cell as a child process, `dbduel run`, so that its failure does not affect the agent.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use dbduel_record::Plan;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use dbduel_machine::interrupt::{self, Urgency};

/// Interval between checks of the child; long, because the child is measuring.
const POLL: Duration = Duration::from_millis(200);
/// Time for a child to end after each of two requests; then it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(90);
/// Time for a contest beyond its plan: fetching servers, reports.
const EXTRA: Duration = Duration::from_secs(30 * 60);
/// Bytes of the child's output that an error quotes.
const QUOTED_BYTES: usize = 1500;

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildEnd {
    /// With this exit code.
    Code(i32),
    /// It took too long, or was killed by a signal.
    Failed(String),
    /// The agent was asked to end, and ended it.
    Interrupted,
}

/// Time limit for the contest of a plan.
#[must_use]
pub fn limit(plan: &Plan) -> Duration {
    let limits = &plan.limits;
    let each_s = limits.dataset_s + 3.0 * (limits.server_start_s + limits.server_stop_s);
    let all_s = 2.0 * plan.schedule.budget_s + each_s * plan.contenders.len() as f64;
    EXTRA + Duration::from_secs_f64(all_s.clamp(0.0, 1e9))
}

/// A child to be run.
#[derive(Debug)]
pub struct Run<'r> {
    pub home: &'r Path,
    pub experiment: &'r Path,
    /// Where its record is made.
    pub results: &'r Path,
    /// File for its output.
    pub output: &'r Path,
    /// Lock held by the child until it has ended, even when the agent is killed.
    pub lock: &'r File,
    /// It is ended after this time.
    pub limit: Duration,
}

/// Runs `dbduel run EXPERIMENT --results DIR` to its end. When the agent is killed the system asks the child to end.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(run: &Run<'_>) -> Result<ChildEnd> {
    let said = File::create(run.output)
        .with_context(|| format!("could not create `{}`", run.output.display()))?;
    let program = std::env::current_exe().context("could not find the program itself")?;
    let mut command = Command::new(program);
    command
        .arg("--home")
        .arg(run.home)
        .arg("run")
        .arg(run.experiment)
        .arg("--results")
        .arg(run.results)
        .env_remove("DBDUEL_HOME")
        // Nothing reads it: an open file, and with it the lock on it, goes to the child.
        .stdin(Stdio::from(run.lock.try_clone()?))
        .stdout(said.try_clone()?)
        .stderr(said)
        // A terminal's Ctrl-C reaches the agent alone, which passes it on.
        .process_group(0);
    // SAFETY: between fork and exec it calls prctl alone, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGTERM)?));
    }
    let mut child = command.spawn().context("could not start `dbduel run`")?;
    let deadline = Instant::now() + run.limit;
    loop {
        if let Some(status) = child
            .try_wait()
            .context("could not wait for `dbduel run`")?
        {
            let signalled = || ChildEnd::Failed(format!("`dbduel run` ended with {status}"));
            return Ok(status.code().map_or_else(signalled, ChildEnd::Code));
        }
        if interrupt::urgency() > Urgency::None {
            end(&mut child)?;
            return Ok(ChildEnd::Interrupted);
        }
        if Instant::now() >= deadline {
            end(&mut child)?;
            let why = format!(
                "it was still running after {} min",
                run.limit.as_secs() / 60
            );
            return Ok(ChildEnd::Failed(why));
        }
        std::thread::sleep(POLL);
    }
}

/// Ends the child and its servers: first after the current measurement, then at once, then by force.
fn end(child: &mut Child) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    for signal in [Signal::SIGTERM, Signal::SIGTERM, Signal::SIGKILL] {
        // It may have ended in between.
        let _ = kill(pid, signal);
        let deadline = Instant::now() + END_TIMEOUT;
        while Instant::now() < deadline {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
    }
    Ok(())
}

/// The end of a child's output.
#[must_use]
pub fn end_of_output(output: &Path) -> String {
    let bytes = fs::read(output).unwrap_or_default();
    let from = bytes.len().saturating_sub(QUOTED_BYTES);
    String::from_utf8_lossy(&bytes[from..]).trim().to_owned()
}
