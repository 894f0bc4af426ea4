//! `dbduel capture`: a server's own SQL, imported from its logs.

mod import;
mod show;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;

/// Verbs of `dbduel capture`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Import a log of MySQL, MariaDB or PostgreSQL into a new capture.
    Import(import::Arguments),
    /// Show what a capture holds, what a replay leaves out, and what its log lacks.
    Show(show::Arguments),
}

/// Imports or shows a capture.
///
/// # Errors
/// When a log or a capture cannot be read, or a capture not be written.
pub fn capture(verb: &Action) -> Result<Exit> {
    match verb {
        Action::Import(arguments) => import::import(arguments),
        Action::Show(arguments) => show::show(arguments),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use dbduel_machine::interrupt::{self, Interrupted};
    use dbduel_text::terminal::silence;

    use super::*;

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
            output: dir.join("shop.cap"),
            prefix: None,
            timezone: None,
            schema: None,
            product: None,
        }
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
        assert_eq!(import::import(&imported).unwrap(), Exit::Done);
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
            import::import(&imported).is_err(),
            "captures are not replaced"
        );
    }

    #[test]
    fn an_interrupted_import_leaves_nothing() {
        let _silence = silence::keep();
        let _user = interrupt::simulated::begin();
        let dir = tempfile::tempdir().unwrap();
        let imported = arguments(dir.path());
        interrupt::request();
        let error = import::import(&imported).unwrap_err();
        assert!(error.is::<Interrupted>(), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
