//! `dbduel capture import`.

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use dbduel_capture::import::{ImportOptions, ImportStage, import as import_log};
use dbduel_capture::logs::LogProduct;
use dbduel_capture::show::overview;
use dbduel_capture::store::Capture;
use dbduel_machine::interrupt;
use dbduel_server::{Progress as _, ProgressUnit};

use super::show;
use crate::console::{self, Console};
use crate::exit::Exit;

/// Options of `dbduel capture import`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The log: one file, or its pieces from the oldest to the newest, plain or compressed with gzip; - is standard input.
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Directory of the capture; must not exist.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// PostgreSQL's log_line_prefix, for a stderr log, such as '%m [%p] %c '.
    #[arg(long, value_name = "PREFIX", allow_hyphen_values = true)]
    pub prefix: Option<OsString>,
    /// Time zone of a log whose times name none, such as +02:00 [default: UTC].
    #[arg(long, value_name = "OFFSET", value_parser = offset_s, allow_hyphen_values = true)]
    pub timezone: Option<i32>,
    /// Default database of sessions whose log does not say it.
    #[arg(long, value_name = "NAME")]
    pub schema: Option<OsString>,
    /// Product that wrote the log, where it does not say so: mysql, mariadb or postgresql.
    #[arg(long, value_name = "PRODUCT", value_parser = product)]
    pub product: Option<LogProduct>,
}

/// Imports a log and prints what the capture holds.
///
/// # Errors
/// When the log cannot be read or the capture not be written; nothing of the capture remains then.
pub fn import(arguments: &Arguments) -> Result<Exit> {
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let bytes = |text: &OsString| text.clone().into_vec();
    let options = ImportOptions {
        logs: arguments.logs.clone(),
        target: arguments.output.clone(),
        prefix: arguments.prefix.as_ref().map(bytes),
        timezone_offset_s: arguments.timezone,
        schema: arguments.schema.as_ref().map(bytes),
        product: arguments.product,
    };
    let console = Console::new();
    console.stage("reading the log");
    let is_ordering = Cell::new(false);
    let mut observe = |stage: ImportStage| -> io::Result<()> {
        interrupt::check().map_err(io::Error::other)?;
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
    let imported = import_log(&options, &mut observe);
    console.finish();
    // What the import failed with is its consequence.
    interrupt::check()?;
    imported?;
    let capture = Capture::open(&arguments.output)?;
    let text = show::head(&arguments.output, &overview(&capture, 0));
    console::print(&text)?;
    Ok(Exit::Done)
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
    fn products_are_known_by_name() {
        assert_eq!(product("mariadb"), Ok(LogProduct::Mariadb));
        let error = product("postgres").unwrap_err();
        assert!(error.contains("did you mean `postgresql`"), "{error}");
    }
}
