//! Captured statements as a workload: the clients of `dbduel-replay` on data that were loaded from a dump.
//!
//! Digests of the capture and of the dump are parameters, so that a plan cannot run with others.

mod data;

use std::path::Path;

use dbduel_capture::logs::LogProduct;
use dbduel_capture::store::read::read_manifest;
use dbduel_client::{ClientContext, ClientTask, Clients, Shared};
use dbduel_driver::Dialect;
pub use dbduel_record::captured::NAME;
use dbduel_record::captured::{MIX, MODE, TRACE, is_trace};
use dbduel_record::plan::Parameters;
use dbduel_replay::{
    CAPTURE, CAPTURE_DIGEST, DRAW, LOCK_TIMEOUT, OPEN, PACE, Refused, SPEED, TRANSACTIONS_PER_SLICE,
};

use super::parameters::{Default, Kind, ParameterError, ParameterSpec, Resolved, check_all};
use super::{Effect, OwnData, Table, Workload};

/// The parameter that names the dump.
pub const DUMP: &str = "dump";
/// Definitions that run after the dump was loaded; contenders may have their own.
pub const DDL: &str = "ddl";
/// Whether answers are compared before the load: `compare` or `skip`.
pub const ANSWERS: &str = "answers";

const DUMP_DIGEST: &str = "dump_digest";
const PRODUCT: &str = "product";

/// The workload.
#[derive(Debug)]
pub struct Captured;

impl Workload for Captured {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "Transactions of a capture (`dbduel capture import`), drawn or in their order, on the tables of a dump."
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
            text(
                DUMP,
                "The dump of the tables: `dump` in [data], or that of its `server`.",
            ),
            text(DUMP_DIGEST, "BLAKE3 of the dump."),
            text(
                DDL,
                "CREATE INDEX, DROP INDEX and ALTER TABLE that run after the dump was loaded, or a file `*.sql` with them.",
            ),
            choice(
                MODE,
                &[MIX, TRACE],
                "Drawn (mix), or in the order of each session (trace).",
            ),
            choice(
                DRAW,
                &["transactions", "sessions"],
                "What clients of a mix draw: each once before any is drawn again.",
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
            dbduel_replay::check_trace(&resolved)
                .map_err(|Refused { parameter, why }| refuse(parameter, why))?;
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

    fn classes(&self, parameters: &Parameters) -> Vec<String> {
        dbduel_replay::transaction_classes(parameters)
    }

    fn statement_classes(&self, parameters: &Parameters) -> Vec<String> {
        dbduel_replay::statement_class_names(parameters)
    }

    /// By the classes of its statements: writes of a capture insert and delete as its application did.
    fn effect(&self, parameters: &Parameters) -> Effect {
        match dbduel_replay::statement_classes(parameters) {
            Ok(classes) if classes.iter().any(|class| class.writes) => Effect::ChangesRowCount,
            Ok(_) => Effect::Reads,
            Err(_) => Effect::Unknown,
        }
    }

    fn has_fixed_work(&self, parameters: &Parameters) -> bool {
        is_trace(parameters)
    }

    fn depends_on_past_work(&self, parameters: &Parameters) -> bool {
        is_trace(parameters)
    }

    fn quanta(&self, parameters: &Parameters) -> Option<u32> {
        dbduel_replay::quanta(parameters)
    }

    fn draws_per_pass(&self, parameters: &Parameters) -> Option<u64> {
        dbduel_replay::draws_per_pass(parameters)
    }

    fn clients_max(&self, parameters: &Parameters) -> Option<u64> {
        dbduel_replay::sessions_max(parameters).map(u64::from)
    }

    fn clients_suggested(&self, parameters: &Parameters) -> Option<u64> {
        self.clients_max(parameters)
    }

    fn own_parameters(&self) -> &'static [&'static str] {
        &[DDL]
    }

    fn data_parameters(&self) -> Option<&'static [&'static str]> {
        Some(&[DUMP_DIGEST, DDL])
    }

    fn own_data(&self) -> Option<&dyn OwnData> {
        Some(self)
    }
}

impl Clients for Captured {
    fn shared(&self, parameters: &Parameters) -> Shared {
        dbduel_replay::shared(parameters)
    }

    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        dbduel_replay::client(parameters, client_context)
    }
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
