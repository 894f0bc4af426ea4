//! Reads from a running server that the lab's own settings are in effect: its place, who may log in, no TCP port.

use std::path::Path;

use anyhow::Context as _;
use dbduel_load::driver::Connection;

use super::account::USER;
use super::config::Places;
use super::start::StartError;

/// A server that runs with another value of a setting that belongs to the lab.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server runs with `{name}` = `{found}` where the lab set `{expected}`, so it would not be alone in its sandbox; \
     remove the setting of the contender that changes it"
)]
pub struct NotOurs {
    name: &'static str,
    found: String,
    expected: String,
}

const QUERY: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
                     ('bind_address', 'datadir', 'init_file', 'skip_networking', 'socket', 'tmpdir')";

/// Compares what the server runs with to what the lab set.
///
/// # Errors
/// [`NotOurs`]; or the server does not answer.
pub fn check(connection: &mut Connection, places: &Places<'_>) -> Result<(), StartError> {
    let answer = connection
        .query(QUERY)
        .context("could not read back the lab's own settings")?;
    let variables: Vec<(String, String)> = (0..answer.rows.len())
        .map(|row| {
            let text = |column| answer.text(row, column).unwrap_or_default();
            (text(0).to_ascii_lowercase(), text(1))
        })
        .collect();
    compare(&variables, places)?;
    // Where the tables of accounts are skipped, every login is accepted, as another account.
    let user = connection
        .query("SELECT CURRENT_USER()")
        .context("could not read back who is logged in")?
        .text(0, 0)
        .unwrap_or_default();
    same("current_user()", &user, &format!("{USER}@localhost"))?;
    Ok(())
}

fn compare(variables: &[(String, String)], places: &Places<'_>) -> Result<(), NotOurs> {
    let value = |name: &str| {
        let found = variables.iter().find(|(variable, _)| variable == name);
        found.map(|(_, value)| value.as_str())
    };
    same(
        "skip_networking",
        value("skip_networking").unwrap_or("unknown"),
        "ON",
    )?;
    same("init_file", value("init_file").unwrap_or_default(), "")?;
    // Before 5.6 it is no variable.
    if let Some(found) = value("bind_address") {
        same("bind_address", found, "127.0.0.1")?;
    }
    let paths = [
        ("datadir", places.data),
        ("socket", places.socket),
        ("tmpdir", places.tmp),
    ];
    for (name, path) in paths {
        let found = value(name).unwrap_or_default();
        // Servers resolve links, and end a folder's name with a slash.
        if !is_same_path(Path::new(found), path) {
            same(name, found, &path.display().to_string())?;
        }
    }
    Ok(())
}

fn is_same_path(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

fn same(name: &'static str, found: &str, expected: &str) -> Result<(), NotOurs> {
    if found == expected {
        return Ok(());
    }
    Err(NotOurs {
        name,
        found: found.to_owned(),
        expected: expected.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(changes: &[(&str, &str)]) -> Result<(), NotOurs> {
        let dir = tempfile::tempdir().unwrap();
        let (data, tmp) = (dir.path().join("data"), dir.path().join("tmp"));
        let socket = dir.path().join("s.sock");
        let places = Places {
            data: &data,
            tmp: &tmp,
            socket: &socket,
            pid_file: Path::new("/pid"),
            log: None,
        };
        let mut variables = vec![
            ("skip_networking".to_owned(), "ON".to_owned()),
            ("init_file".to_owned(), String::new()),
            ("bind_address".to_owned(), "127.0.0.1".to_owned()),
            ("datadir".to_owned(), format!("{}/", data.display())),
            ("socket".to_owned(), socket.display().to_string()),
            ("tmpdir".to_owned(), tmp.display().to_string()),
        ];
        for &(name, value) in changes {
            variables.retain(|(variable, _)| variable != name);
            variables.push((name.to_owned(), value.to_owned()));
        }
        compare(&variables, &places)
    }

    #[test]
    fn what_a_server_changed_of_ours_is_found() {
        assert_eq!(found(&[]), Ok(()));
        for (name, value) in [
            ("skip_networking", "OFF"),
            ("init_file", "/x.sql"),
            ("bind_address", "*"),
            ("datadir", "/elsewhere/"),
            ("socket", "/elsewhere/s"),
            ("tmpdir", "/tmp"),
        ] {
            let wrong = found(&[(name, value)]).unwrap_err();
            assert_eq!((wrong.name, wrong.found.as_str()), (name, value));
        }
    }
}
