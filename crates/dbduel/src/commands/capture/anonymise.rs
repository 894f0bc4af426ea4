//! `dbduel capture anonymise`.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use dbduel_capture::anonymise::{Destination, KEY_BYTES, Replacer, anonymise as anonymise_capture};
use dbduel_capture::store::{Capture, Manifest, StoreError};
use dbduel_dump::anonymise::{Anonymised, anonymise as anonymise_dump, learn};
use dbduel_machine::interrupt::{self, Interrupted};
use dbduel_machine::random::secret;
use dbduel_server::{Progress as _, ProgressUnit};
use dbduel_text::counts;

use crate::console::{self, Console};
use crate::exit::Exit;

/// Name of the capture in the output.
const CAPTURE: &str = "capture";
/// Name of the dump in the output.
const DUMP: &str = "dump.sql.gz";

/// Options of `dbduel capture anonymise`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a capture.
    pub capture: PathBuf,
    /// The dump with the capture's data: its values are replaced by the same ones, so that keys meet their rows.
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,
    /// File with the secret key that chooses the values; is made if it does not exist. Destroy it afterwards.
    #[arg(long, value_name = "FILE")]
    pub key_file: PathBuf,
    /// Directory for the new capture and dump; must not exist.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
}

/// Writes a capture, and its dump, with other values. [`Exit::Void`] where rows of the dump were dropped: what is written is complete without
/// them.
///
/// # Errors
/// When they cannot be read or written; nothing of the output remains then.
pub fn anonymise(arguments: &Arguments) -> Result<Exit> {
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let capture = Capture::open(&arguments.capture)?;
    let output = &arguments.output;
    if output.symlink_metadata().is_ok() {
        return Err(StoreError::Exists(output.clone()).into());
    }
    let key = key(&arguments.key_file)?;
    let made = DirBuilder::new().mode(0o700).create(output);
    made.with_context(|| format!("could not create `{}`", output.display()))?;
    let console = Console::new();
    let done = write(arguments, &capture, &key, &console);
    console.finish();
    let (text, missing) = match done {
        Ok(done) => done,
        Err(error) => {
            // The error that led here is the one to report.
            let _ = fs::remove_dir_all(output);
            // What the work failed with is its consequence.
            return Err(match interrupt::gives_up() {
                true => Interrupted.into(),
                false => error,
            });
        }
    };
    console::print(&text)?;
    let Some(missing) = missing else {
        return Ok(Exit::Done);
    };
    console::status_line(&missing);
    Ok(Exit::Void)
}

/// Writes them. Returns what to print, and which rows of the dump are missing.
fn write(
    arguments: &Arguments,
    capture: &Capture,
    key: &[u8; KEY_BYTES],
    console: &Console,
) -> Result<(String, Option<String>)> {
    let check = || match interrupt::gives_up() {
        true => Err(io::Error::other(Interrupted)),
        false => Ok(()),
    };
    let mut replacer = Replacer::new(key);
    let mut text = String::new();
    let mut missing = None;
    if let Some(dump) = &arguments.dump {
        let total = dump.metadata().ok().map(|metadata| metadata.len());
        let mut observe = |bytes| {
            console.advance(bytes, total, ProgressUnit::Bytes);
            check()
        };
        console.stage("reading the definitions of the dump");
        learn(dump, &mut replacer, &mut observe)?;
        // Names of databases stay in the dump as they do in the capture.
        for schema in &capture.manifest().schemas {
            replacer.keep(&dbduel_capture::store::manifest::unescaped(schema));
        }
        console.stage("replacing the values of the dump");
        let target = arguments.output.join(DUMP);
        let found = anonymise_dump(dump, &target, &mut replacer, &mut observe)?;
        text += &dump_text(&target, &found);
        missing = missing_rows(&target, &found);
    }
    console.stage("replacing the values of the capture");
    let target = arguments.output.join(CAPTURE);
    let destination = Destination {
        target: &target,
        check: &mut |_| check(),
    };
    let manifest = anonymise_capture(capture, &mut replacer, destination)?;
    text += &capture_text(&target, &manifest);
    if arguments.dump.is_none() {
        text += "\nWithout --dump the capture's keys meet no rows: anonymise the dump with the same key.\n";
    }
    let _ = writeln!(
        text,
        "\nDestroy the key `{}` once all parts are anonymised: with it every value can be guessed and confirmed.\nNumbers keep their order and, within 3.2 %, their size; dates keep their distances; texts keep their length, and equal beginnings stay equal.",
        arguments.key_file.display()
    );
    Ok((text, missing))
}

/// Reads the key, or makes one.
fn key(path: &Path) -> Result<[u8; KEY_BYTES]> {
    let failed = |action: &str| format!("could not {action} key file `{}`", path.display());
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = secret(KEY_BYTES).context("the system returned no random bytes")?;
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path);
            let mut file = file.with_context(|| failed("create"))?;
            writeln!(file, "{text}")
                .and_then(|()| file.sync_all())
                .with_context(|| failed("write"))?;
            text
        }
        Err(error) => return Err(error).with_context(|| failed("read")),
    };
    let mut key = [0; KEY_BYTES];
    let digits = text.trim().as_bytes();
    let is_key = digits.len() == 2 * KEY_BYTES && digits.iter().all(u8::is_ascii_hexdigit);
    if !is_key {
        bail!(
            "key file `{}` does not have {} hexadecimal digits; name a file that does not exist, and a key is made",
            path.display(),
            2 * KEY_BYTES
        );
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |place: usize| char::from(pair[place]).to_digit(16).unwrap_or_default() as u8;
        *byte = digit(0) << 4 | digit(1);
    }
    Ok(key)
}

fn dump_text(path: &Path, found: &Anonymised) -> String {
    let mut text = format!(
        "{}: {}, {} rows of COPY\n",
        path.display(),
        counts::things(found.statements, "statement"),
        counts::of(found.copied_rows),
    );
    for (what, count) in &found.dropped {
        let _ = writeln!(text, "  dropped: {what}: {}", counts::of(*count));
    }
    text
}

/// The rows of the dump that were dropped, why, and what to do; `None` where there are none.
fn missing_rows(path: &Path, found: &Anonymised) -> Option<String> {
    let reasons = found.dropped_with_rows.iter();
    let reasons: Vec<String> = reasons
        .map(|(why, count)| format!("{why}: {}", counts::of(*count)))
        .collect();
    let all = found.dropped_with_rows.values().sum();
    let copied = match found.dropped_copied_rows {
        0 => String::new(),
        rows => format!(", {} of COPY among them", counts::things(rows, "row")),
    };
    (all > 0).then(|| {
        format!(
            "dropped {} with rows ({}){copied}: the tables in `{}` lack these rows. Correct them in the dump and anonymise it again, \
             or accept that statements find fewer rows",
            counts::things(all, "statement"),
            reasons.join("; "),
            path.display()
        )
    })
}

fn capture_text(path: &Path, manifest: &Manifest) -> String {
    let all = &manifest.counts;
    let mut text = format!(
        "{}: {}, {}, {}, {}\n",
        path.display(),
        counts::things(all.statements, "statement"),
        counts::things(all.sessions, "session"),
        counts::things(all.transactions, "transaction"),
        counts::things(all.classes, "class"),
    );
    if let Some(found) = &manifest.anonymised {
        for dropped in &found.dropped {
            let _ = writeln!(
                text,
                "  dropped: {}: {}",
                dropped.what,
                counts::of(dropped.count)
            );
        }
        for note in &found.notes {
            let _ = writeln!(text, "  {} ({})", note.what, counts::of(note.count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let made = key(&path).unwrap();
        assert_eq!(key(&path).unwrap(), made);
        assert_ne!(made, [0; KEY_BYTES]);
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(&path, "secret").unwrap();
        let error = key(&path).unwrap_err().to_string();
        assert!(error.contains("64 hexadecimal digits") && !error.contains("secret"));
    }
}
