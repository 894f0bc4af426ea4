//! Address and connection options of a PostgreSQL server: as in libpq, which sysbench's driver uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dbduel_client::run::IgnoredErrors;
use dbduel_driver::address::Address;
use dbduel_driver::pgpass;
use dbduel_driver::{Credentials, Dialect, TlsMode};

use super::super::Stop;
use super::super::logger::Logger;
use super::super::parsed_options::ParsedOptions;
use super::Login;

/// Words that `--pgsql-db` may set. Host, port and user have their own options, which take precedence in libpq too.
const WORDS: [&str; 4] = ["dbname", "password", "sslmode", "sslrootcert"];

/// Reads the options, and warns of words without effect.
///
/// # Errors
/// An invalid value.
pub(super) fn login(given: &ParsedOptions, voice: Logger) -> Result<Login, Stop> {
    let mut words = connection_words(given.text("pgsql-db"))?;
    for word in words.keys().filter(|word| !WORDS.contains(&word.as_str())) {
        voice.warning(&format!(
            "`{word}` in --pgsql-db has no effect; it may set {}",
            WORDS.join(", ")
        ));
    }
    let mut setting = |word: &str, variable: &str| {
        let set = words.remove(word).or_else(|| std::env::var(variable).ok());
        set.unwrap_or_default()
    };
    let user = given.text("pgsql-user").to_owned();
    let address = address(given)?;
    let mut password = match given.text("pgsql-password") {
        "" => setting("password", "PGPASSWORD"),
        password => password.to_owned(),
    };
    if password.is_empty() {
        let found = pgpass::password(&address, &user);
        let found = found.map_err(|error| Stop::Fatal(format!("{error:#}")))?;
        password = found.unwrap_or_default();
    }
    let mode = match given.is_written("pgsql-sslmode") {
        true => given.text("pgsql-sslmode").to_owned(),
        false => setting("sslmode", "PGSSLMODE"),
    };
    let authority = setting("sslrootcert", "PGSSLROOTCERT");
    let tls = match (tls(&mode, &authority)?, &address) {
        (_, Address::Unix { .. } | Address::File { .. }) => TlsMode::Off,
        (tls, Address::Tcp { .. }) => tls,
    };
    Ok(Login {
        dialect: Dialect::PostgreSql,
        addresses: vec![address],
        database: words.remove("dbname").unwrap_or_else(|| user.clone()),
        credentials: Credentials::new(user, password),
        tls,
        ignored: IgnoredErrors::of_postgresql(),
        is_dry: false,
    })
}

/// The host's name, or the folder of its socket.
fn address(given: &ParsedOptions) -> Result<Address, Stop> {
    let port = given.number("pgsql-port");
    if port.fract() != 0.0 || !(1.0..=f64::from(u16::MAX)).contains(&port) {
        return Err(Stop::Fatal(format!(
            "Invalid value for --pgsql-port: {port}; it takes a port"
        )));
    }
    let port = port as u16;
    let host = given.text("pgsql-host");
    Ok(match host {
        "" => {
            return Err(Stop::Fatal("--pgsql-host names no server".to_owned()));
        }
        folder if folder.starts_with('/') => Address::Unix {
            path: Path::new(folder).join(format!(".s.PGSQL.{port}")),
        },
        host => Address::Tcp {
            host: host.to_owned(),
            port,
        },
    })
}

/// The words of a connection string such as `dbname=x sslmode=disable`; a text without `=` is the name of the database.
fn connection_words(text: &str) -> Result<BTreeMap<String, String>, Stop> {
    let mut words = BTreeMap::new();
    if !text.contains('=') {
        if !text.is_empty() {
            words.insert("dbname".to_owned(), text.to_owned());
        }
        return Ok(words);
    }
    // The text may hold a password, so it is not repeated.
    let refused = || {
        Stop::Fatal(
            "Invalid value for --pgsql-db: it takes the name of a database, or words such as `dbname=sbtest sslmode=disable`"
                .to_owned(),
        )
    };
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=').ok_or_else(refused)?;
        let name = name.trim_end();
        let is_word = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(refused());
        }
        let (value, behind) = word_value(behind.trim_start()).ok_or_else(refused)?;
        words.insert(name.to_owned(), value);
        rest = behind.trim_start();
    }
    Ok(words)
}

/// The value at the beginning of the text, and the rest; none when its quotation mark is not closed. A backslash
/// escapes the next character.
fn word_value(text: &str) -> Option<(String, &str)> {
    let (quoted, text) = match text.strip_prefix('\'') {
        Some(quoted) => (true, quoted),
        None => (false, text),
    };
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.push(letters.next()?.1),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            space if !quoted && space.is_ascii_whitespace() => return Some((value, &text[at..])),
            letter => value.push(letter),
        }
    }
    (!quoted).then_some((value, ""))
}

/// As libpq's `sslmode`; without one, TLS if the server offers it. `allow` would try without TLS first, a difference
/// that only the server sees.
fn tls(mode: &str, authority: &str) -> Result<TlsMode, Stop> {
    let ca = match authority {
        "" => std::env::home_dir()
            .unwrap_or_default()
            .join(".postgresql/root.crt"),
        path => PathBuf::from(path),
    };
    match mode {
        "disable" => Ok(TlsMode::Off),
        "" | "prefer" | "allow" => Ok(TlsMode::Preferred),
        // With an authority at hand libpq verifies here too.
        "require" if ca.exists() => Ok(TlsMode::VerifyCa { ca }),
        "require" => Ok(TlsMode::Required),
        "verify-ca" => Ok(TlsMode::VerifyCa { ca }),
        "verify-full" => Ok(TlsMode::VerifyIdentity { ca }),
        other => Err(Stop::Fatal(format!(
            "Invalid value for --pgsql-sslmode, or for sslmode in --pgsql-db or PGSSLMODE: '{other}'; it takes disable, allow, prefer, require, verify-ca or verify-full"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<(String, String)>, Stop> {
        connection_words(text).map(|words| words.into_iter().collect())
    }

    #[test]
    fn a_database_is_named_alone_or_in_words() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(words("sbtest").unwrap(), [pair("dbname", "sbtest")]);
        assert!(words("").unwrap().is_empty());
        assert_eq!(
            words("sslmode = disable  dbname='it\\'s a \\\\'").unwrap(),
            [pair("dbname", "it's a \\"), pair("sslmode", "disable")]
        );
        assert_eq!(
            words("dbname=x user=").unwrap(),
            [pair("dbname", "x"), pair("user", "")]
        );
        for bad in [
            "dbname=x sslmode",
            "dbname='x",
            "=x",
            "postgresql://h/d?sslmode=x",
        ] {
            let error = words(bad).unwrap_err().to_string();
            assert!(
                error.contains("--pgsql-db") && !error.contains("h/d"),
                "{error}"
            );
        }
    }

    #[test]
    fn encryption_is_asked_for_as_by_libpq() {
        assert_eq!(tls("", "").unwrap(), TlsMode::Preferred);
        assert_eq!(tls("disable", "").unwrap(), TlsMode::Off);
        let dir = tempfile::tempdir().unwrap();
        let none = dir.path().join("none").display().to_string();
        assert_eq!(tls("require", &none).unwrap(), TlsMode::Required);
        let ca = PathBuf::from("/ca.pem");
        assert_eq!(
            tls("verify-full", "/ca.pem").unwrap(),
            TlsMode::VerifyIdentity { ca }
        );
        assert!(tls("maybe", "").is_err());
    }
}
