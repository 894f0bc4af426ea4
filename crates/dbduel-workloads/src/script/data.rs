//! The script's own commands that make and drop its tables.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use dbduel_lua::{Host, ScriptError};
use dbduel_record::plan::Parameters;

use super::Script;
use super::settings::{Server, find, settings, written_options};
use crate::OwnData;
use crate::fill::{FillError, FillReport, FillWatch, Place};
use crate::parameters::Resolved;

/// Pause between two checks for cancellation.
const PAUSE: Duration = Duration::from_millis(50);

/// Longest wait for a command to end after cancellation.
const ENDING: Duration = Duration::from_secs(10);

impl OwnData for Script {
    fn fill(
        &self,
        parameters: &Parameters,
        place: &Place<'_>,
        watch: &FillWatch,
    ) -> Result<FillReport, FillError> {
        let began = Instant::now();
        run("prepare", parameters, place, watch)?;
        let seconds = began.elapsed().as_secs_f64();
        // What the script does in that time, and with how many rows, is its own business.
        Ok(FillReport {
            rows: 0,
            rows_before: 0,
            connections: place.connections,
            seconds,
            rows_s: seconds,
            finish_s: 0.0,
            cpu_s: 0.0,
            method: None,
            remarks: Vec::new(),
        })
    }

    fn clear(
        &self,
        parameters: &Parameters,
        place: &Place<'_>,
        watch: &FillWatch,
    ) -> Result<(), FillError> {
        run("cleanup", parameters, place, watch)
    }
}

/// Runs a command on a separate thread. After a timeout or cancellation nothing more is sent to the server, and the
/// connections are closed before this returns, so that later work meets no half of it; only a script that computes
/// without a request is left running.
fn run(
    command: &'static str,
    parameters: &Parameters,
    place: &Place<'_>,
    watch: &FillWatch,
) -> Result<(), FillError> {
    let failed = |error: &ScriptError| FillError::Script {
        command,
        why: error.message(),
    };
    let script = find(parameters).map_err(|error| failed(&error))?;
    let server = Server {
        dialect: place.dialect,
        address: place.address,
        credentials: place.credentials,
        database: place.database,
        tls: place.tls,
    };
    let settings = settings(parameters, script, command, Some(&server));
    let cancel = settings.cancel.clone();
    let give_up = |receiver: &Receiver<Result<bool, ScriptError>>| {
        cancel.cancel();
        let _ = receiver.recv_timeout(ENDING);
    };
    let options = written_options(parameters);
    let clients = Resolved(parameters).count("threads") as u32;
    let (sender, receiver) = channel();
    let work = move || -> Result<bool, ScriptError> {
        let mut host = Host::load(settings)?;
        if let Err(error) = host.set_options(&options) {
            return Err(std::io::Error::other(error.to_string()).into());
        }
        host.run_command(command, clients)
    };
    let thread = std::thread::Builder::new().name(format!("script-{command}"));
    let spawned = thread.spawn(move || {
        // There is no receiver when the work was given up.
        let _ = sender.send(work());
    });
    spawned.map_err(|error| failed(&error.into()))?;
    let deadline = Instant::now() + place.deadline;
    loop {
        match receiver.recv_timeout(PAUSE) {
            Ok(Ok(true)) => return Ok(()),
            Ok(Ok(false)) => {
                let why = "it returned false".to_owned();
                return Err(FillError::Script { command, why });
            }
            Ok(Err(error)) => return Err(failed(&error)),
            Err(RecvTimeoutError::Disconnected) => {
                let why = "it panicked; this is a bug in dbduel".to_owned();
                return Err(FillError::Script { command, why });
            }
            Err(RecvTimeoutError::Timeout) if watch.cancel.is_set() => {
                give_up(&receiver);
                return Err(FillError::Cancelled);
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                give_up(&receiver);
                return Err(FillError::TimeUp {
                    seconds: place.deadline.as_secs_f64(),
                });
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
