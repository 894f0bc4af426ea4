//! Settings of a script run, from the parameters of a plan.

use std::sync::Arc;
use std::time::Duration;

use dbduel_client::distributions::Shape;
use dbduel_client::run::IgnoredErrors;
use dbduel_driver::address::Address;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::{Credentials, Dialect, Protocol, Tls, TlsMode};
use dbduel_lua::{
    Limits, Message, OptionValue, Script, ScriptError, ScriptFile, Servers, Settings, Shapes, Sink,
    driver_name,
};
use dbduel_record::plan::Parameters;
use serde_json::Value;

use crate::parameters::Resolved;

/// Prefix of the script's own options among the parameters.
pub const OPTION: &str = "options.";

/// Longest time that a client computes without a request: shorter than a slice's wait for its last transactions, so
/// that a script that hangs is reported with its line.
const COMPUTING: Duration = Duration::from_secs(10);

/// Memory of one client.
const MEMORY_BYTES: usize = 256 << 20;

/// The server of a contender.
pub(super) struct Server<'a> {
    pub(super) dialect: Dialect,
    pub(super) address: &'a Address,
    pub(super) credentials: &'a Credentials,
    pub(super) database: &'a str,
    pub(super) tls: &'a TlsMode,
}

/// The script that the parameters name.
pub(super) fn find(parameters: &Parameters) -> Result<Script, ScriptError> {
    Script::find(Resolved(parameters).text("script"))
}

/// BLAKE3 over the files, each with its file name and its length, hexadecimal.
#[must_use]
pub fn digest(files: &[ScriptFile]) -> String {
    let mut hasher = blake3::Hasher::new();
    for ScriptFile { path, text } in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        hasher.update(format!("{name} {}\n", text.len()).as_bytes());
        hasher.update(text);
    }
    hasher.finalize().to_hex().to_string()
}

/// Settings of a script; without a server, when it is only inspected.
pub(super) fn settings(
    parameters: &Parameters,
    script: Script,
    command: &str,
    server: Option<&Server<'_>>,
) -> Settings {
    let resolved = Resolved(parameters);
    let dialect = server.map(|server| server.dialect).unwrap_or_default();
    let number = |name: &str| (name.to_owned(), OptionValue::Number(resolved.number(name)));
    let mut options = std::collections::BTreeMap::from([
        number("threads"),
        ("percentile".to_owned(), OptionValue::Number(95.0)),
        (
            "db_driver".to_owned(),
            OptionValue::Text(driver_name(dialect).to_owned()),
        ),
        (
            "rand_type".to_owned(),
            OptionValue::Text(resolved.text("rand_type").to_owned()),
        ),
        number("rand_pareto_h"),
        number("rand_spec_iter"),
        number("rand_spec_pct"),
        number("rand_spec_res"),
    ]);
    for name in ["time", "events", "rate", "report_interval"] {
        options.insert(name.to_owned(), OptionValue::Number(0.0));
    }
    if let Some(server) = server {
        let driver = driver_name(dialect);
        options.insert(
            format!("{driver}_db"),
            OptionValue::Text(server.database.to_owned()),
        );
        options.insert(
            format!("{driver}_user"),
            OptionValue::Text(server.credentials.user.clone()),
        );
    }
    Settings {
        script,
        argv: vec!["sysbench".to_owned()],
        command: Some(command.to_owned()),
        options,
        servers: Servers {
            dialect,
            addresses: server.iter().map(|server| server.address.clone()).collect(),
            credentials: server
                .map(|server| server.credentials.clone())
                .unwrap_or_default(),
            database: server
                .map(|server| server.database.to_owned())
                .unwrap_or_default(),
            tls: Arc::new(Tls::new(
                server.map_or(TlsMode::Off, |server| server.tls.clone()),
            )),
        },
        shapes: shapes(resolved),
        seed: 0,
        // Parameters whose list cannot be read are refused when they are resolved.
        ignored_errors: match dialect {
            Dialect::PostgreSql => IgnoredErrors::of_postgresql(),
            Dialect::MySql | Dialect::Sqlite => {
                ignored_errors(resolved).unwrap_or(IgnoredErrors::Codes(Vec::new()))
            }
        },
        protocol: match resolved.text("statements") {
            "text" => Protocol::Text,
            _ => Protocol::Prepared,
        },
        is_compiled: true,
        statement_watch: None,
        dry_run: false,
        limits: match command {
            "run" => Limits {
                computing: COMPUTING,
                memory_bytes: MEMORY_BYTES,
                ..Limits::default()
            },
            _ => Limits::default(),
        },
        cancel: match command {
            // Its clients end with their slice.
            "run" => Cancel::never(),
            _ => Cancel::default(),
        },
        sink: Sink::new(to_standard_error),
    }
}

/// Standard output belongs to the answers of the load process.
fn to_standard_error(message: Message<'_>) {
    use std::io::Write as _;
    let mut out = std::io::stderr().lock();
    // A failure here has no one to report to.
    let _ = match message {
        Message::Print(bytes) => out.write_all(bytes),
        Message::Fatal(text) => writeln!(out, "FATAL: {text}"),
        Message::Alert(text) => writeln!(out, "ALERT: {text}"),
        Message::Debug(text) => writeln!(out, "DEBUG: {text}"),
    };
}

fn shapes(resolved: Resolved<'_>) -> Shapes {
    let iterations = resolved.count("rand_spec_iter") as u32;
    let gaussian = Shape::Gaussian { iterations };
    let special = Shape::Special {
        iterations,
        band_percent: resolved.number("rand_spec_pct"),
        band_share_percent: resolved.number("rand_spec_res"),
    };
    let pareto = Shape::Pareto {
        h: resolved.number("rand_pareto_h"),
    };
    let zipfian = Shape::Zipfian {
        exponent: resolved.number("rand_zipfian_exp"),
    };
    let default = match resolved.text("rand_type") {
        "uniform" => Shape::Uniform,
        "gaussian" => gaussian,
        "pareto" => pareto,
        "zipfian" => zipfian,
        _ => special,
    };
    Shapes {
        default,
        gaussian,
        special,
        pareto,
        zipfian,
    }
}

/// The functions of the script that are classes of transactions.
pub(super) fn classes(parameters: &Parameters) -> Vec<String> {
    let text = Resolved(parameters).text("classes");
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The errors after which an event is retried.
///
/// # Errors
/// The word that is not an error number.
pub(super) fn ignored_errors(resolved: Resolved<'_>) -> Result<IgnoredErrors, String> {
    IgnoredErrors::read(resolved.text("ignore_errors").split(','))
}

/// The script's own options, as on a command line.
pub(super) fn written_options(parameters: &Parameters) -> Vec<(String, Option<String>)> {
    let own = parameters
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(OPTION)?, value)));
    own.map(|(name, value): (&str, &Value)| (name.to_owned(), Some(super::text(value))))
        .collect()
}
