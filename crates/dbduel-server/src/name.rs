//! The user's text in `server = "…"`.
//!
//! Parses the text and determines its source; fetches and starts nothing.

use std::fmt;

use dbduel_driver::address::{AddressError, ServerAddress};
use dbduel_text::nearest;

use super::catalogue::{self, CATALOGUE, Known};
use super::database_file::SQLITE;
use super::sources::{self, SOURCES, Source};

/// A server as the user named it.
#[derive(Clone)]
pub struct ServerName {
    /// The text as written.
    pub written: String,
    /// Its meaning.
    pub meaning: Meaning,
}

/// Meaning of a server's name.
#[derive(Clone)]
pub enum Meaning {
    /// A server that the lab fetches from a source and runs itself.
    Provided {
        /// Its source.
        source: &'static Source,
        /// Locator within the source.
        locator: String,
        /// Its entry in the catalogue, if named by one.
        known: Option<&'static Known>,
    },
    /// SQLite, which has no server and runs in the load process.
    InProcess,
    /// A running server. The lab connects to it and never starts, freezes or stops it.
    Running(ServerAddress),
}

/// Why a server's name is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Neither a known server nor a scheme.
    #[error("unknown server `{written}`{}; `dbduel servers list` lists the known ones", did_you_mean(.suggestion))]
    Unknown {
        /// The text as written.
        written: String,
        /// The nearest valid name.
        suggestion: Option<String>,
    },
    /// A known scheme with an invalid locator.
    #[error("invalid server `{written}`: {reason}")]
    Malformed {
        /// The text as written.
        written: String,
        /// The fault, and the correct form.
        reason: String,
    },
    /// A password in an address. The error does not repeat it.
    #[error(
        "the server's address contains a password, which must not be in a file that the record keeps; write `tcp://user@host`"
    )]
    Password,
    /// A user in the address of an archive or image, perhaps with a password. The error does not repeat it.
    #[error(
        "the address contains a login, which must not be in a file that the record keeps; put the login into ~/.netrc (an archive), or run `skopeo login HOST` (an image)"
    )]
    WebLogin,
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion
        .as_ref()
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}

impl ServerName {
    /// Why agents, which run other people's experiments, refuse this server; `None` for one that they run.
    #[must_use]
    pub fn objection_of_agents(&self) -> Option<String> {
        let is_permitted = match &self.meaning {
            Meaning::Provided { source, known, .. } => {
                known.is_some() || source.scheme == "installed"
            }
            Meaning::InProcess => true,
            Meaning::Running(_) => false,
        };
        (!is_permitted).then(|| {
            format!(
                "agents run servers of `dbduel servers list`, `installed` ones and `sqlite`; `{}` would let the experiment's author run any \
                 program or write to any database",
                self.written
            )
        })
    }

    /// Parses a server's name.
    ///
    /// # Errors
    /// [`NameError`] states the fault and suggests the nearest name.
    pub fn parse(written: &str) -> Result<Self, NameError> {
        let malformed = |reason: String| NameError::Malformed {
            written: written.to_owned(),
            reason,
        };
        let named = |meaning| ServerName {
            written: written.to_owned(),
            meaning,
        };
        if ServerAddress::is_meant_by(written) {
            let address = ServerAddress::parse(written).map_err(|error| match error {
                // The text holds a password; it must not get into an error, which may end in a log.
                AddressError::Password => NameError::Password,
                other => malformed(other.to_string()),
            })?;
            return Ok(named(Meaning::Running(address)));
        }
        if written == SQLITE {
            return Ok(named(Meaning::InProcess));
        }
        let (scheme, locator) = written.split_once(':').unwrap_or((written, ""));
        if let Some(source) = sources::by_scheme(scheme) {
            if sources::names_user(scheme, locator) {
                return Err(NameError::WebLogin);
            }
            (source.check)(locator).map_err(malformed)?;
            return Ok(named(Meaning::Provided {
                source,
                locator: locator.to_owned(),
                known: None,
            }));
        }
        let unknown = || NameError::Unknown {
            written: written.to_owned(),
            suggestion: suggest(written, scheme),
        };
        let known = catalogue::find(written).ok_or_else(unknown)?;
        let source = sources::by_scheme(known.source).ok_or_else(unknown)?;
        Ok(named(Meaning::Provided {
            source,
            locator: known.locator.to_owned(),
            known: Some(known),
        }))
    }

    /// A folder name: the catalogue's id where there is one, otherwise derived from the text.
    pub fn id(&self) -> String {
        match &self.meaning {
            Meaning::Provided {
                known: Some(known), ..
            } => known.id.to_owned(),
            Meaning::InProcess => self.written.clone(),
            Meaning::Provided { .. } | Meaning::Running(_) => folder_name(&self.written),
        }
    }
}

/// True when `server` is SQLite: a file of the lab or an existing one.
#[must_use]
pub fn runs_in_process(server: &str) -> bool {
    match ServerName::parse(server).map(|name| name.meaning) {
        Ok(Meaning::InProcess) => true,
        Ok(Meaning::Running(address)) => address.dialect.is_in_process(),
        Ok(Meaning::Provided { .. }) | Err(_) => false,
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerName")
            .field("written", &self.written)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// A short folder name that is unique for each text.
fn folder_name(written: &str) -> String {
    let readable: String = written
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .take(40)
        .collect();
    let digest = blake3::hash(written.as_bytes()).to_hex();
    format!("{}-{}", readable.trim_matches(['-', '.']), &digest[..8])
}

fn suggest(written: &str, scheme: &str) -> Option<String> {
    let schemes = || SOURCES.iter().map(|source| source.scheme);
    if written.contains(':') {
        let near = nearest(scheme, schemes())?;
        let source = SOURCES.iter().find(|source| source.scheme == near)?;
        return Some(source.example.to_owned());
    }
    if let Some(near) = nearest(written, schemes().chain([SQLITE])) {
        return Some(near.to_owned());
    }
    // A plain version number most likely lacks its product.
    if written.starts_with(|c: char| c.is_ascii_digit()) {
        return CATALOGUE
            .iter()
            .find(|known| known.version.starts_with(written))
            .map(|known| known.id.to_owned());
    }
    catalogue::nearest(written).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_running_servers() {
        for (written, shown, user) in [
            ("tcp://bench@db1:3307", "tcp://db1:3307", Some("bench")),
            (
                "unix:/run/mysqld/mysqld.sock",
                "unix:/run/mysqld/mysqld.sock",
                None,
            ),
            (
                "postgresql://bench@db1",
                "postgresql://db1:5432",
                Some("bench"),
            ),
            (
                "postgresql:/run/postgresql",
                "postgresql:/run/postgresql/.s.PGSQL.5432",
                None,
            ),
        ] {
            let Meaning::Running(address) = ServerName::parse(written).unwrap().meaning else {
                panic!("`{written}` is taken for a server to start");
            };
            assert_eq!(address.to_string(), shown);
            assert_eq!(address.user.as_deref(), user);
        }
    }

    #[track_caller]
    fn refused(written: &str, part: &str) {
        let error = ServerName::parse(written).unwrap_err().to_string();
        assert!(error.contains(part), "`{written}`: {error}");
    }

    #[test]
    fn what_is_not_understood_says_why() {
        refused("tcp://host:99999", "not a port");
        refused("unix:mysqld.sock", "absolute");
        refused("mysql-5.8", "did you mean `mysql-5.7`");
        refused("mariadb-10.4", "did you mean `mariadb-10.5`");
        refused("instaled", "did you mean `installed`");
        refused("pth:/opt/mysql", "did you mean `path:");
        refused("10.11", "did you mean `mariadb-10.11");
        refused("", "unknown server ``");
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        let error = ServerName::parse("tcp://u:secret@host").unwrap_err();
        assert_eq!(error, NameError::Password);
        assert!(!format!("{error} {error:?}").contains("secret"));
        for written in [
            "url:https://u:secret@h/x.tar.gz",
            "oci:u:secret@h.example/x:1",
        ] {
            let error = ServerName::parse(written).unwrap_err();
            assert_eq!(error, NameError::WebLogin);
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }

    #[test]
    fn a_name_from_the_catalogue_is_its_folder() {
        assert_eq!(
            ServerName::parse("mariadb-10.1").unwrap().id(),
            "mariadb-10.1.23"
        );
    }

    #[test]
    fn two_paths_do_not_share_a_folder() {
        let one = ServerName::parse("path:/opt/mysql-a").unwrap().id();
        let two = ServerName::parse("path:/opt/mysql_a").unwrap().id();
        assert_ne!(one, two);
        assert!(one.starts_with("path--opt-mysql-a-"), "{one}");
    }

    #[test]
    fn the_example_of_every_source_is_understood_by_that_source() {
        for source in SOURCES {
            match ServerName::parse(source.example).unwrap().meaning {
                Meaning::Provided { source: found, .. } => {
                    assert_eq!(found.scheme, source.scheme);
                }
                Meaning::InProcess | Meaning::Running(_) => {
                    panic!("`{}` is not a running server", source.example)
                }
            }
        }
    }
}
