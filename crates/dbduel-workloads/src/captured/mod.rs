//! Captured statements as a workload: clients draw whole transactions, or sessions, of a capture at random and run them on data
//! that were loaded from a dump; or they run all of them in the order of the capture.
//!
//! ```text
//! capture ─► mix (what is drawn, what is left out) ─► client
//!              ├─ classes (what statements of a class mean to a replay)
//!              ├─ states (settings of sessions)
//!              └─ trace (quanta, sessions in their order) ─► trace_client
//! mix ─► answers (some statements of each class, asked before the load)
//! dump ─► data
//! ```
//!
//! Digests of the capture and of the dump are parameters, so that a plan cannot run with others.

pub mod answers;
mod classes;
mod client;
mod coverage;
mod data;
mod mix;
mod statements;
mod states;
mod trace;
mod trace_client;

use std::path::Path;
use std::sync::Arc;

use dbduel_capture::logs::LogProduct;
use dbduel_capture::store::read::read_manifest;
use dbduel_client::{ClientContext, ClientTask, Clients, Shared};
use dbduel_driver::Dialect;
use dbduel_record::captured::{MIX, TRACE, is_trace};
pub use dbduel_record::captured::{MODE, NAME};
use dbduel_record::plan::Parameters;
use dbduel_record::statement_classes::StatementClass;

use super::parameters::{Default, Kind, ParameterError, ParameterSpec, Resolved, check_all};
use super::{OwnData, Table, Workload};
use client::{CapturedClient, SharedMix};
pub use coverage::{Amount, Coverage};
use mix::Mix;
use trace::Trace;
use trace_client::{SharedTrace, TraceClient, TraceOfServer, TraceOptions};

/// The parameter that names the directory of the capture.
pub const CAPTURE: &str = "capture";
/// The parameter that names the dump.
pub const DUMP: &str = "dump";
/// Whether answers are compared before the load: `compare` or `skip`.
pub const ANSWERS: &str = "answers";
/// The parameter with the lock timeout of a session, seconds.
pub const LOCK_TIMEOUT: &str = "lock_timeout";

const CAPTURE_DIGEST: &str = "capture_digest";
const DUMP_DIGEST: &str = "dump_digest";
const PRODUCT: &str = "product";
/// The parameter that says what clients of a mix draw.
pub const DRAW: &str = "draw";
/// The parameter that says when transactions of a trace begin.
pub const PACE: &str = "pace";
/// The pace at which transactions are due at their captured times.
pub const OPEN: &str = "open";
/// The parameter by which an open pace is faster than the capture.
pub const SPEED: &str = "speed";
/// The parameter with the size of a trace's quanta.
pub const TRANSACTIONS_PER_SLICE: &str = "transactions_per_slice";

/// The workload.
#[derive(Debug)]
pub struct Captured;

impl Workload for Captured {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Transactions of a capture (`dbduel capture import`), drawn at random or in their order, on the tables of a dump."
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        let text = |name, about| ParameterSpec {
            name,
            kind: Kind::Text,
            default: Default::Text(""),
            about,
        };
        let choice = |name, words: &'static [&'static str], about| ParameterSpec {
            name,
            kind: Kind::Choice(words),
            default: Default::Text(words[0]),
            about,
        };
        vec![
            text(CAPTURE, "The capture: a directory."),
            text(CAPTURE_DIGEST, "BLAKE3 of its manifest."),
            text(PRODUCT, "Product whose log was captured."),
            text(DUMP, "The dump of the tables: `dump` in [data]."),
            text(DUMP_DIGEST, "BLAKE3 of the dump."),
            choice(
                MODE,
                &[MIX, TRACE],
                "At random (mix), or in the order of each session (trace).",
            ),
            choice(
                DRAW,
                &["transactions", "sessions"],
                "What clients of a mix draw, each with the same probability.",
            ),
            choice(
                ANSWERS,
                &["compare", "skip"],
                "Whether the contenders' answers are compared before the load.",
            ),
            choice(
                PACE,
                &["closed", OPEN],
                "When transactions of a trace begin: each after the previous one of its session, or at captured times.",
            ),
            ParameterSpec {
                name: SPEED,
                kind: Kind::Number {
                    min: 0.001,
                    max: 1_000_000.0,
                },
                default: Default::Number(1.0),
                about: "Rate of an open pace, as a multiple of the captured one.",
            },
            ParameterSpec {
                name: TRANSACTIONS_PER_SLICE,
                kind: Kind::Integer {
                    min: 1,
                    max: 1_000_000_000,
                },
                default: Default::Integer(1_000),
                about: "Transactions of a trace's quantum, which a slice runs.",
            },
            ParameterSpec {
                name: LOCK_TIMEOUT,
                kind: Kind::Number {
                    min: 0.001,
                    max: 3_600.0,
                },
                default: Default::Number(1.0),
                about: "Longest wait for a lock, seconds; MySQL and MariaDB take whole seconds.",
            },
        ]
    }

    /// Reads the capture's manifest and the dump.
    fn resolve(&self, given: &Parameters) -> Result<Parameters, ParameterError> {
        let mut resolved = check_all(self, given)?;
        let directory = Resolved(&resolved).text(CAPTURE);
        if directory.is_empty() {
            let why =
                "is missing; name the directory of a capture, which `dbduel capture import` makes";
            return Err(refuse(CAPTURE, why.to_owned()));
        }
        let (manifest, digest) = read_manifest(Path::new(directory))
            .map_err(|error| refuse(CAPTURE, format!("cannot be used: {error}")))?;
        let product = product_word(manifest.log.product);
        set_found(&mut resolved, PRODUCT, product, "the capture is of")?;
        set_found(
            &mut resolved,
            CAPTURE_DIGEST,
            &digest,
            "the capture now has",
        )?;
        let dump = Resolved(&resolved).text(DUMP);
        // One that is given is compared when the dump is loaded.
        if !dump.is_empty() && Resolved(&resolved).text(DUMP_DIGEST).is_empty() {
            let digest = file_digest(Path::new(dump))
                .map_err(|error| refuse(DUMP, format!("cannot be used: `{dump}`: {error}")))?;
            resolved.insert(DUMP_DIGEST.to_owned(), digest.into());
        }
        if is_trace(&resolved) {
            trace::check(&resolved)?;
        }
        Ok(resolved)
    }

    fn speaks(&self, dialect: Dialect) -> bool {
        matches!(dialect, Dialect::MySql | Dialect::PostgreSql)
    }

    /// A capture of one protocol's servers has statements for these only.
    fn check_dialect(
        &self,
        dialect: Dialect,
        parameters: &Parameters,
    ) -> Result<(), ParameterError> {
        let product = Resolved(parameters).text(PRODUCT);
        let mut names = LogProduct::NAMES.into_iter();
        let Some((_, product)) = names.find(|(word, _)| *word == product) else {
            return Ok(());
        };
        let (own, others) = match product {
            LogProduct::Postgresql => (Dialect::PostgreSql, "MySQL and MariaDB do"),
            LogProduct::Mysql | LogProduct::Mariadb => (Dialect::MySql, "PostgreSQL does"),
        };
        if own == dialect {
            return Ok(());
        }
        let why = format!(
            "is of {}, whose statements {others} not understand; name a capture of the contenders' own kind",
            product.name()
        );
        Err(refuse(CAPTURE, why))
    }

    /// Empty: they are in the dump.
    fn tables(&self, _dialect: Dialect, _parameters: &Parameters) -> Vec<Table> {
        Vec::new()
    }

    /// Classes of statements that hold at least 1 % of the transactions or of their time, each for the transactions of which it is
    /// the costliest; the others together.
    fn classes(&self, parameters: &Parameters) -> Vec<String> {
        Mix::of(parameters).map_or_else(
            // Clients that open say why.
            |_| vec![classes::OTHER.to_owned()],
            |mix| mix.names().to_vec(),
        )
    }

    fn statement_classes(&self, parameters: &Parameters) -> Vec<String> {
        // Without a mix clients do not open, and say why.
        Mix::of(parameters).map_or_else(|_| Vec::new(), |mix| mix.statement_classes().names.clone())
    }

    fn has_fixed_work(&self, parameters: &Parameters) -> bool {
        is_trace(parameters)
    }

    fn depends_on_past_work(&self, parameters: &Parameters) -> bool {
        is_trace(parameters)
    }

    fn quanta(&self, parameters: &Parameters) -> Option<u32> {
        Some(trace(parameters)?.quanta())
    }

    fn clients_max(&self, parameters: &Parameters) -> Option<u64> {
        Some(trace(parameters)?.sessions_max().into())
    }

    fn clients_suggested(&self, parameters: &Parameters) -> Option<u64> {
        self.clients_max(parameters)
    }

    fn data_parameters(&self) -> Option<&'static [&'static str]> {
        Some(&[DUMP_DIGEST])
    }

    fn own_data(&self) -> Option<&dyn OwnData> {
        Some(self)
    }
}

impl Clients for Captured {
    fn shared(&self, parameters: &Parameters) -> Shared {
        if is_trace(parameters) {
            let trace = Trace::of(parameters).map_err(|error| error.to_string());
            if let Ok(trace) = &trace {
                trace.mix().read_ahead();
            }
            return Arc::new(SharedTrace(trace.map(TraceOfServer::new)));
        }
        let mix = Mix::of(parameters);
        if let Ok(mix) = &mix {
            mix.read_ahead();
        }
        Arc::new(SharedMix(mix))
    }

    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        let lock_timeout_s = Resolved(parameters).number(LOCK_TIMEOUT);
        if is_trace(parameters) {
            let speed = Resolved(parameters).number(SPEED);
            return client_context.boxed::<TraceClient>(TraceOptions {
                lock_timeout_s,
                speed: trace::is_open(parameters).then_some(speed),
            });
        }
        client_context.boxed::<CapturedClient>(lock_timeout_s)
    }
}

/// What a replay with these resolved parameters runs of its capture, and what it leaves out.
///
/// # Errors
/// Why the capture cannot be used.
pub fn coverage(parameters: &Parameters) -> Result<Coverage, String> {
    Ok(Mix::build(parameters)?.coverage().clone())
}

/// The classes whose statements a replay with these resolved parameters measures, with what the capture says about them.
///
/// # Errors
/// Why the capture cannot be used.
pub fn statement_classes(parameters: &Parameters) -> Result<Vec<StatementClass>, String> {
    Ok(Mix::of(parameters)?.captured_statements())
}

/// The trace of these resolved parameters; `None` for a mix, and where clients that open say why there is none.
fn trace(parameters: &Parameters) -> Option<Arc<Trace>> {
    is_trace(parameters).then(|| Trace::of(parameters).ok())?
}

/// What the slices of a trace with these resolved parameters run, in one sentence; `None` for a mix.
#[must_use]
pub fn trace_claim(parameters: &Parameters) -> Option<String> {
    Some(trace(parameters)?.claim(parameters))
}

/// Time of the longest quantum at an open pace, seconds; `None` for other paces and modes.
#[must_use]
pub fn longest_quantum_s(parameters: &Parameters) -> Option<f64> {
    let trace = trace(parameters)?;
    trace::is_open(parameters).then(|| trace.longest_s() / Resolved(parameters).number(SPEED))
}

/// Sets a parameter to what was found, or refuses another value that the plan has.
fn set_found(
    resolved: &mut Parameters,
    name: &str,
    found: &str,
    what: &str,
) -> Result<(), ParameterError> {
    let wanted = Resolved(resolved).text(name);
    if !wanted.is_empty() && wanted != found {
        let why = format!("is {wanted}, but {what} {found}; the plan was made for another capture");
        return Err(refuse(name, why));
    }
    resolved.insert(name.to_owned(), found.into());
    Ok(())
}

/// The product's name on the command line.
fn product_word(product: LogProduct) -> &'static str {
    let mut names = LogProduct::NAMES.into_iter();
    let known = names.find(|(_, known)| *known == product);
    known.map_or("", |(word, _)| word)
}

/// BLAKE3 of a regular file, hexadecimal.
fn file_digest(path: &Path) -> std::io::Result<String> {
    // Asked first: to open a named pipe waits for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let file = std::fs::File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn refuse(parameter: &str, why: String) -> ParameterError {
    ParameterError {
        parameter: parameter.to_owned(),
        why,
        nearest: None,
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod trace_tests;
