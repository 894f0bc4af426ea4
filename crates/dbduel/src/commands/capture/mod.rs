//! `dbduel capture`: a server's own SQL, imported from its logs.

mod anonymise;
mod from_server;
mod general_log;
mod import;
mod show;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
pub use from_server::ConsentMissing;
pub use general_log::OtherProduct;

/// Verbs of `dbduel capture`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Import a log of MySQL, MariaDB or PostgreSQL into a new capture.
    Import(Box<import::Arguments>),
    /// Show what a capture holds, what a replay leaves out, and what its log lacks.
    Show(show::Arguments),
    /// Replace the values of a capture and its dump, each one by the same value everywhere.
    Anonymise(anonymise::Arguments),
    /// Restore the log settings of servers that an import which did not end left changed.
    Restore(from_server::RestoreArguments),
}

/// Imports, shows or anonymises a capture, or restores what an import changed.
///
/// # Errors
/// When a log or a capture cannot be read, or a capture not be written, or a server not be reached.
pub fn capture(home: Option<PathBuf>, verb: &Action) -> Result<Exit> {
    match verb {
        Action::Import(arguments) => import::import(home, arguments),
        Action::Show(arguments) => {
            from_server::warn_of_leftovers(home);
            show::show(arguments)
        }
        Action::Anonymise(arguments) => anonymise::anonymise(arguments),
        Action::Restore(arguments) => from_server::restore(home, arguments),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use dbduel_machine::interrupt::{self, Interrupted};
    use dbduel_text::terminal::silence;

    use super::*;
    use crate::commands::connection::{Tls, TlsUse};

    const LOG: &str = "\
mysqld, Version: 8.0.33 (MySQL Community Server - GPL). started with:
Tcp port: 0  Unix socket: SOCKET
Time                 Id Command    Argument
2026-11-28T00:00:01.000000Z\t    7 Connect\tapp@localhost on shop using Socket
2026-11-28T00:00:01.000100Z\t    7 Query\tSELECT a FROM t WHERE id = 1
2026-11-28T00:00:01.000200Z\t    7 Query\tSELECT a FROM t WHERE id = 2
2026-11-28T00:00:01.000300Z\t    7 Query\tSHUTDOWN
2026-11-28T00:00:01.000400Z\t    7 Quit\t
";

    fn arguments(dir: &Path) -> import::Arguments {
        let log = dir.join("general.log");
        fs::write(&log, LOG).unwrap();
        import::Arguments {
            logs: vec![log],
            from: None,
            minutes: None,
            yes: false,
            password_file: None,
            tls: Tls {
                mode: TlsUse::Off,
                ca: None,
            },
            output: dir.join("shop.cap"),
            prefix: None,
            timezone: None,
            schema: None,
            product: None,
        }
    }

    fn home(dir: &tempfile::TempDir) -> Option<PathBuf> {
        Some(dir.path().join("home"))
    }

    fn show(capture: &Path) -> show::Arguments {
        show::Arguments {
            capture: capture.to_owned(),
            classes: 20,
            class: None,
            left_out: false,
            verify: true,
            json: false,
        }
    }

    #[test]
    fn a_log_is_imported_and_shown_in_every_form() {
        let _silence = silence::keep();
        let dir = tempfile::tempdir().unwrap();
        let imported = arguments(dir.path());
        assert_eq!(import::import(home(&dir), &imported).unwrap(), Exit::Done);
        for json in [false, true] {
            let all = show(&imported.output);
            let forms = [
                show::Arguments {
                    left_out: true,
                    ..show(&imported.output)
                },
                all,
            ];
            for form in forms {
                let form = show::Arguments { json, ..form };
                assert_eq!(show::show(&form).unwrap(), Exit::Done);
            }
        }
        let unknown = show::Arguments {
            class: Some("none".to_owned()),
            ..show(&imported.output)
        };
        assert!(show::show(&unknown).is_err());
        assert!(
            import::import(home(&dir), &imported).is_err(),
            "captures are not replaced"
        );
    }

    #[test]
    fn a_running_server_is_changed_with_consent_only() {
        let _silence = silence::keep();
        let dir = tempfile::tempdir().unwrap();
        let from = |address: &str| {
            let arguments = import::Arguments {
                logs: Vec::new(),
                from: Some(address.to_owned()),
                minutes: Some(1.0),
                ..arguments(dir.path())
            };
            import::import(home(&dir), &arguments).unwrap_err()
        };
        assert!(from("tcp://app@db.example:3306").is::<ConsentMissing>());
        for address in ["postgresql://app@db.example", "sqlite:/srv/shop.db"] {
            assert!(from(address).is::<OtherProduct>(), "{address}");
        }
        let error = from("tcp://app:secret@db.example:3306").to_string();
        assert!(!error.contains("secret"), "{error}");
        // Nothing is left of it, and nothing is to be restored.
        let restored = from_server::RestoreArguments {
            password_file: None,
            tls: arguments(dir.path()).tls,
        };
        assert_eq!(
            from_server::restore(home(&dir), &restored).unwrap(),
            Exit::Done
        );
        assert!(!dir.path().join("home").exists());
    }

    #[test]
    fn an_interrupted_import_leaves_nothing() {
        let _silence = silence::keep();
        let _user = interrupt::simulated::begin();
        let dir = tempfile::tempdir().unwrap();
        let imported = arguments(dir.path());
        interrupt::request();
        let error = import::import(home(&dir), &imported).unwrap_err();
        assert!(error.is::<Interrupted>(), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
