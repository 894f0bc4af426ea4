//! What to log in to a running server with. Passwords come from files and the environment, never from
//! a command line, an address or an experiment, and are never written anywhere.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_load::blocking::Credentials;

/// Account that is used when an address names none.
const USER: &str = "root";
/// Environment variable with the password of any server.
pub const PASSWORD: &str = "DBDUEL_PASSWORD";
/// The one that clients of MySQL read; asked last.
const PASSWORD_OF_CLIENTS: &str = "MYSQL_PWD";

/// Credentials for a server: the first line of `file`; without a file `DBDUEL_PASSWORD_NAME` for the
/// contender `name`, `DBDUEL_PASSWORD`, `MYSQL_PWD`, or no password.
///
/// # Errors
/// When the file cannot be read.
pub fn credentials(
    user: Option<&str>,
    file: Option<&Path>,
    name: Option<&str>,
) -> Result<Credentials> {
    let password = match file {
        Some(file) => first_line(file)?,
        None => of_environment(name, |variable| std::env::var(variable).ok()),
    };
    Ok(Credentials::new(user.unwrap_or(USER), password))
}

fn first_line(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("could not read the password file `{}`", file.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn of_environment(name: Option<&str>, read: impl Fn(&str) -> Option<String>) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let own = name.map(|name| {
        format!(
            "{PASSWORD}_{}",
            name.chars().map(letter).collect::<String>()
        )
    });
    own.and_then(|own| read(&own))
        .or_else(|| read(PASSWORD))
        .or_else(|| read(PASSWORD_OF_CLIENTS))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_password_wins() {
        let environment = |names: &'static [&'static str]| {
            move |asked: &str| names.contains(&asked).then(|| asked.to_owned())
        };
        let all = &["MYSQL_PWD", "DBDUEL_PASSWORD", "DBDUEL_PASSWORD_MY_SQL"];
        assert_eq!(of_environment(Some("my-sql"), environment(all)), all[2]);
        assert_eq!(of_environment(Some("other"), environment(all)), all[1]);
        assert_eq!(of_environment(None, environment(&["MYSQL_PWD"])), all[0]);
        assert_eq!(of_environment(None, environment(&[])), "");
    }

    #[test]
    fn a_password_file_is_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        fs::write(&file, "of the first line\r\nmore\n").unwrap();
        let credentials = credentials(None, Some(&file), Some("a")).unwrap();
        assert_eq!(
            (credentials.user.as_str(), credentials.password.as_str()),
            ("root", "of the first line")
        );
        let missing = super::credentials(None, Some(&folder.path().join("none")), None);
        assert!(missing.unwrap_err().to_string().contains("password file"));
    }
}
