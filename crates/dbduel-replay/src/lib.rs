//! Captured statements as clients: they draw whole transactions, or sessions, of a capture; or they run all of them in the
//! order of the capture.
//!
//! ```text
//! capture ─► mix (what is drawn, what is left out) ─► draws (in which order) ─► mix_client ─► client (runs them)
//!              ├─ classes (what statements of a class mean to a replay)
//!              ├─ states (settings of sessions)
//!              └─ trace (quanta, sessions in their order) ─► trace_client ─► client
//! mix ─► answers (some statements of each class, asked before the load)
//! ```
//!
//! The workload `captured`, which has these clients and the tables of a dump, is in `dbduel-workloads`. The digest of the capture is a
//! parameter, so that a plan cannot run with another.

pub mod answers;
mod classes;
mod client;
mod coverage;
mod draws;
mod last;
mod mix;
mod mix_client;
mod statements;
mod states;
mod trace;
mod trace_client;

use std::sync::Arc;

use dbduel_client::{ClientContext, ClientTask, Shared};
use dbduel_record::captured::is_trace;
use dbduel_record::plan::{Parameters, Resolved};
use dbduel_record::statement_classes::StatementClass;

use client::SharedByClients;
pub use coverage::{Amount, Coverage};
use mix::Mix;
use mix_client::{MixClient, MixOfServer};
pub use trace::{Refused, check as check_trace};
use trace::{Trace, is_open};
use trace_client::{TraceClient, TraceOfServer, TraceOptions};

/// The parameter that names the directory of the capture.
pub const CAPTURE: &str = "capture";
/// The parameter with the BLAKE3 of its manifest.
pub const CAPTURE_DIGEST: &str = "capture_digest";
/// The parameter that says what clients of a mix draw.
pub const DRAW: &str = "draw";
/// The parameter with the lock timeout of a session, seconds.
pub const LOCK_TIMEOUT: &str = "lock_timeout";
/// The parameter that says when transactions of a trace begin.
pub const PACE: &str = "pace";
/// The pace at which transactions are due at their captured times.
pub const OPEN: &str = "open";
/// The parameter by which an open pace is faster than the capture.
pub const SPEED: &str = "speed";
/// The parameter with the size of a trace's quanta.
pub const TRANSACTIONS_PER_SLICE: &str = "transactions_per_slice";

/// What the clients of one server share, for resolved parameters: the mix or the trace, whose capture is read into memory; or why there
/// is none, which clients that open say.
#[must_use]
pub fn shared(parameters: &Parameters) -> Shared {
    match is_trace(parameters) {
        true => {
            let trace = Trace::of(parameters).map(TraceOfServer::new);
            Arc::new(SharedByClients(trace.map_err(|error| error.to_string())))
        }
        false => Arc::new(SharedByClients(Mix::of(parameters).map(MixOfServer::new))),
    }
}

/// A client with these resolved parameters, beside others with the same [`shared`] state.
#[must_use]
pub fn client(parameters: &Parameters, client_context: ClientContext) -> ClientTask {
    let lock_timeout_s = Resolved(parameters).number(LOCK_TIMEOUT);
    if is_trace(parameters) {
        let speed = Resolved(parameters).number(SPEED);
        return client_context.boxed::<TraceClient>(TraceOptions {
            lock_timeout_s,
            speed: is_open(parameters).then_some(speed),
        });
    }
    client_context.boxed::<MixClient>(lock_timeout_s)
}

/// Classes of the transactions: those of statements that hold at least 1 % of the transactions or of their time, each for the
/// transactions of which it is the costliest; the others together.
#[must_use]
pub fn transaction_classes(parameters: &Parameters) -> Vec<String> {
    Mix::of(parameters).map_or_else(
        // Clients that open say why.
        |_| vec![classes::OTHER.to_owned()],
        |mix| mix.names().to_vec(),
    )
}

/// What a replay with these resolved parameters runs of its capture, and what it leaves out.
///
/// # Errors
/// Why the capture cannot be used.
pub fn coverage(parameters: &Parameters) -> Result<Coverage, String> {
    Ok(Mix::of(parameters)?.coverage().clone())
}

/// The classes whose statements a replay with these resolved parameters measures, with what the capture says about them.
///
/// # Errors
/// Why the capture cannot be used.
pub fn statement_classes(parameters: &Parameters) -> Result<Vec<StatementClass>, String> {
    Ok(Mix::of(parameters)?.captured_statements())
}

/// Names of these classes, in their order. Empty without a mix: clients do not open then, and say why.
#[must_use]
pub fn statement_class_names(parameters: &Parameters) -> Vec<String> {
    Mix::of(parameters).map_or_else(|_| Vec::new(), |mix| mix.statement_classes().names.clone())
}

/// The trace of these resolved parameters; `None` for a mix, and where clients that open say why there is none.
fn trace_of(parameters: &Parameters) -> Option<Arc<Trace>> {
    is_trace(parameters).then(|| Trace::of(parameters).ok())?
}

/// Number of quanta of a trace with these resolved parameters; `None` for a mix.
#[must_use]
pub fn quanta(parameters: &Parameters) -> Option<u32> {
    Some(trace_of(parameters)?.quanta())
}

/// How many transactions, or sessions, clients of a mix with these resolved parameters draw before they draw one again; `None` for a
/// trace, and where clients that open say why there is no mix.
#[must_use]
pub fn draws_per_pass(parameters: &Parameters) -> Option<u64> {
    let mix = (!is_trace(parameters)).then(|| Mix::of(parameters));
    Some(mix?.ok()?.draws().count)
}

/// Most sessions that were open at once in a trace with these resolved parameters: more clients have no work. `None` for a mix.
#[must_use]
pub fn sessions_max(parameters: &Parameters) -> Option<u32> {
    Some(trace_of(parameters)?.sessions_max())
}

/// In which order a replay with these resolved parameters runs the transactions, in one sentence or two; `None` where clients that open
/// say why it cannot.
#[must_use]
pub fn order_claim(parameters: &Parameters) -> Option<String> {
    if is_trace(parameters) {
        return Some(trace_of(parameters)?.claim(parameters));
    }
    let mix = Mix::of(parameters).ok()?;
    let unit = match mix.coverage().sessions {
        Some(_) => "session",
        None => "transaction",
    };
    Some(mix.draws().claim(unit))
}

/// Time of the longest quantum at an open pace, seconds; `None` for other paces and modes.
#[must_use]
pub fn longest_quantum_s(parameters: &Parameters) -> Option<f64> {
    let trace = trace_of(parameters)?;
    is_open(parameters).then(|| trace.longest_s() / Resolved(parameters).number(SPEED))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod trace_tests;
