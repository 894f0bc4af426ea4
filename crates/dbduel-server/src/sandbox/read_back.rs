//! Verifies on a running server that the lab's own settings are in effect: paths, login, no TCP port.

use std::path::Path;

use anyhow::Context as _;
use dbduel_driver::Connection;
use dbduel_text::shortened;

use super::super::products::ReadBack;
use super::start::StartError;

/// Most characters shown of a server's value.
const FOUND_CHARACTERS: usize = 200;

/// A server that runs with another value of a reserved setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server runs with `{name}` = `{found}`, but dbduel set `{expected}` to isolate it in its sandbox; \
     remove the contender's setting that changes it"
)]
pub struct NotOurs {
    name: &'static str,
    found: String,
    expected: String,
}

/// Compares the server's settings with those of the lab.
///
/// # Errors
/// [`NotOurs`]; or the server does not answer.
pub fn check(connection: &mut Connection, expected: &ReadBack) -> Result<(), StartError> {
    let answer = connection
        .query(expected.settings)
        .context("could not read back the lab's own settings")?;
    let variables: Vec<(String, String)> = (0..answer.rows.len())
        .map(|row| {
            let text = |column| answer.text(row, column).unwrap_or_default();
            (text(0).to_ascii_lowercase(), text(1))
        })
        .collect();
    compare(&variables, expected)?;
    let user = connection
        .query(expected.account)
        .context("could not read back who is logged in")?
        .text(0, 0)
        .unwrap_or_default();
    same("current_user", &user, &expected.expected_account)?;
    Ok(())
}

fn compare(variables: &[(String, String)], expected: &ReadBack) -> Result<(), NotOurs> {
    let value = |name: &str| {
        let found = variables.iter().find(|(variable, _)| variable == name);
        found.map(|(_, value)| value.as_str())
    };
    for (name, wanted) in &expected.values {
        same(name, value(name).unwrap_or_default(), wanted)?;
    }
    for (name, wanted) in &expected.values_if_present {
        if let Some(found) = value(name) {
            same(name, found, wanted)?;
        }
    }
    for (name, path) in &expected.paths {
        let found = value(name).unwrap_or_default();
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
        found: shortened(found, FOUND_CHARACTERS).into_owned(),
        expected: expected.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::products::{self, Places};
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
            listen: None,
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
        let product = products::by_name("mysql").unwrap();
        compare(&variables, &product.read_back(&places))
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

    #[test]
    fn a_long_value_is_shown_in_part() {
        let wrong = found(&[("init_file", &"x".repeat(30 << 20))]).unwrap_err();
        assert!(wrong.to_string().len() < 500);
    }
}
