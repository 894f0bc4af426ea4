//! `dbduel capture import`.

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use dbduel_capture::import::{ImportOptions, ImportStage, import as import_log};
use dbduel_capture::logs::LogProduct;
use dbduel_capture::show::overview;
use dbduel_capture::store::Capture;
use dbduel_machine::interrupt::{self, Interrupted};
use dbduel_server::{Progress as _, ProgressUnit};

use super::{from_server, show};
use crate::commands::connection::{Tls, TlsUse};
use crate::console::{self, Console};
use crate::exit::Exit;

/// Longest time for which the log of a server is on, minutes: a week.
const MINUTES_MAX: f64 = 7.0 * 24.0 * 60.0;

/// Options of `dbduel capture import`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The log: one file, or its pieces from the oldest to the newest, plain or compressed with gzip; - is standard input.
    #[arg(
        required_unless_present = "from",
        conflicts_with = "from",
        value_name = "LOG"
    )]
    pub logs: Vec<PathBuf>,
    /// Turn on the general log of this running MySQL or MariaDB for --minutes and import it: tcp://user@host:3306 or
    /// unix:/path/to/socket. Without --yes only says what it would do and what it costs.
    #[arg(long, value_name = "ADDRESS", requires = "minutes")]
    pub from: Option<String>,
    /// How long the log of --from is on.
    #[arg(long, value_name = "N", value_parser = minutes, requires = "from")]
    pub minutes: Option<f64>,
    /// Agree to what --from does.
    #[arg(long, requires = "from")]
    pub yes: bool,
    /// File whose first line is the password for --from [default: $DBDUEL_PASSWORD or $MYSQL_PWD].
    #[arg(long, value_name = "FILE", requires = "from")]
    pub password_file: Option<PathBuf>,
    #[command(flatten)]
    pub tls: Tls,
    /// Directory of the capture; must not exist.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// PostgreSQL's log_line_prefix, for a stderr log, such as '%m [%p] %c '.
    #[arg(
        long,
        value_name = "PREFIX",
        allow_hyphen_values = true,
        conflicts_with = "from"
    )]
    pub prefix: Option<OsString>,
    /// Time zone of a log whose times name none, such as +02:00 [default: UTC].
    #[arg(long, value_name = "OFFSET", value_parser = offset_s, allow_hyphen_values = true, conflicts_with = "from")]
    pub timezone: Option<i32>,
    /// Default database of sessions whose log does not say it.
    #[arg(long, value_name = "NAME")]
    pub schema: Option<OsString>,
    /// Product that wrote the log, where it does not say so: mysql, mariadb or postgresql.
    #[arg(long, value_name = "PRODUCT", value_parser = product, conflicts_with = "from")]
    pub product: Option<LogProduct>,
}

/// Imports a log and prints what the capture holds.
///
/// # Errors
/// When the log cannot be read or the capture not be written; nothing of the capture remains then.
pub fn import(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    if let Some(address) = &arguments.from {
        return from_server::import_from(home, address, arguments);
    }
    if arguments.tls.mode != TlsUse::Off {
        bail!("--tls applies to the connection of --from, and the log comes from files");
    }
    from_server::warn_of_leftovers(home);
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    run(&options(arguments))?;
    Ok(Exit::Done)
}

/// What the user says about the log and the capture.
pub fn options(arguments: &Arguments) -> ImportOptions {
    let bytes = |text: &OsString| text.clone().into_vec();
    ImportOptions {
        logs: arguments.logs.clone(),
        target: arguments.output.clone(),
        prefix: arguments.prefix.as_ref().map(bytes),
        timezone_offset_s: arguments.timezone,
        schema: arguments.schema.as_ref().map(bytes),
        product: arguments.product,
        source: None,
    }
}

/// Imports a log and prints what the capture holds.
///
/// # Errors
/// As [`import`].
pub fn run(options: &ImportOptions) -> Result<()> {
    let console = Console::new();
    console.stage("reading the log");
    let is_ordering = Cell::new(false);
    let mut observe = |stage: ImportStage| -> io::Result<()> {
        if interrupt::gives_up() {
            return Err(io::Error::other(Interrupted));
        }
        match stage {
            ImportStage::Reading { bytes, total } => {
                console.advance(bytes, total, ProgressUnit::Bytes);
            }
            ImportStage::Ordering if is_ordering.get() => {}
            ImportStage::Ordering => {
                is_ordering.set(true);
                console.stage("sorting statements by session");
            }
        }
        Ok(())
    };
    let imported = import_log(options, &mut observe);
    console.finish();
    // What the import failed with is its consequence.
    if interrupt::gives_up() {
        return Err(Interrupted.into());
    }
    imported?;
    let capture = Capture::open(&options.target)?;
    let text = show::head(&options.target, &overview(&capture, 0));
    Ok(console::print(&text)?)
}

/// Minutes above zero, at most a week.
fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok();
    minutes
        .filter(|minutes| *minutes > 0.0 && *minutes <= MINUTES_MAX)
        .ok_or_else(|| format!("expected minutes above 0, at most {MINUTES_MAX}, found `{text}`"))
}

/// Seconds east of UTC: `+02:00`, `-0530`, `Z`.
fn offset_s(text: &str) -> Result<i32, String> {
    let wrong = || format!("expected an offset such as +02:00, found `{text}`");
    if ["Z", "UTC", "GMT"]
        .iter()
        .any(|name| text.eq_ignore_ascii_case(name))
    {
        return Ok(0);
    }
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        _ => return Err(wrong()),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |text: &str, max: i32| -> Result<i32, String> {
        let is_short = text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<i32>().ok().filter(|number| *number <= max);
        number.filter(|_| is_short).ok_or_else(wrong)
    };
    Ok(sign * (3600 * number(hours, 15)? + 60 * number(minutes, 59)?))
}

fn product(text: &str) -> Result<LogProduct, String> {
    let known = LogProduct::NAMES.iter().find(|(name, _)| *name == text);
    known.map(|(_, product)| *product).ok_or_else(|| {
        let names = LogProduct::NAMES.map(|(name, _)| name);
        let near = dbduel_text::nearest(text, names);
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("expected one of {}{near}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_seconds_east_of_utc() {
        for (text, expected) in [
            ("+02:00", 7200),
            ("-05:30", -19_800),
            ("+0545", 20_700),
            ("+2", 7200),
            ("Z", 0),
            ("utc", 0),
        ] {
            assert_eq!(offset_s(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "2",
            "+",
            "+2:",
            "+25:00",
            "+02:60",
            "Europe/Berlin",
            "+0é0",
            "+-1:00",
        ] {
            assert!(offset_s(text).is_err(), "{text}");
        }
    }

    #[test]
    fn minutes_are_bounded() {
        assert_eq!(minutes("0.5"), Ok(0.5));
        for text in ["0", "-1", "nan", "inf", "10081", "x", ""] {
            assert!(minutes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_describes_a_file_is_refused_beside_a_server() {
        let command = Arguments::augment_args(clap::Command::new("import"));
        let given = [
            "import",
            "--from",
            "tcp://root@db",
            "--minutes",
            "1",
            "-o",
            "shop.cap",
        ];
        assert!(command.clone().try_get_matches_from(given).is_ok());
        for option in ["--prefix=%m", "--timezone=+02:00", "--product=mysql"] {
            let all = given.into_iter().chain([option]);
            let refused = command.clone().try_get_matches_from(all).unwrap_err();
            assert_eq!(
                refused.kind(),
                clap::error::ErrorKind::ArgumentConflict,
                "{option}"
            );
        }
    }

    #[test]
    fn products_are_known_by_name() {
        assert_eq!(product("mariadb"), Ok(LogProduct::Mariadb));
        let error = product("postgres").unwrap_err();
        assert!(error.contains("did you mean `postgresql`"), "{error}");
    }
}
