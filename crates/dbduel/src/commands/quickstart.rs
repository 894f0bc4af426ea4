//! `dbduel quickstart`: a shipped first experiment, on SQLite or on the server at hand.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use dbduel_load::workloads::parameters::ScriptAccess;

use super::run;
use crate::console;
use crate::exit::Exit;
use crate::home;
use crate::lab::experiment::ExperimentFile;
use crate::lab::server::{Home, ServerName, Silent, install};

/// Options of `dbduel quickstart`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What contends.
    #[arg(value_enum, default_value_t = Product::Sqlite, value_name = "PRODUCT")]
    pub product: Product,
    /// Directory in which the record's directory is created.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
}

/// What a first experiment is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Product {
    /// A rollback journal against a write-ahead log, in a minute and with nothing but dbduel.
    Sqlite,
    /// With and without the doublewrite buffer, in five minutes: on the MariaDB or MySQL that is installed here, or on a
    /// MariaDB 10.11 that is fetched (about 21 MB).
    Mariadb,
}

/// The experiment on SQLite.
const OF_SQLITE: &str = include_str!("../../data/quickstart.toml");
/// The experiment on MariaDB.
const OF_MARIADB: &str = include_str!("../../data/quickstart-mariadb.toml");
/// The server that it names, fetched where none is installed.
const FETCHED: &str = "mariadb-10.11";
/// The installed servers that can take its place: those that have its settings.
const INSTALLED: [&str; 2] = ["installed:mariadbd", "installed:mysqld"];

/// Runs a shipped experiment.
///
/// # Errors
/// When the contest cannot be conducted.
pub fn quickstart(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let home = home::find(home)?;
    let text = match arguments.product {
        Product::Sqlite => OF_SQLITE.to_owned(),
        Product::Mariadb => on_server_at_hand(&home)?,
    };
    let path = Path::new("quickstart.toml");
    let (experiment, plan) = run::plan_of(path, &text, ScriptAccess::Confined)?;
    let file = ExperimentFile {
        path,
        text: &text,
        experiment: &experiment,
    };
    let options = run::RunOptions::default();
    run::start(&home, &arguments.results, &file, &plan, &options)
}

/// The experiment on an installed server where there is one.
fn on_server_at_hand(home: &Home) -> Result<String> {
    for name in INSTALLED {
        if let Ok(build) = install::install(&ServerName::parse(name)?, home, &Silent) {
            console::status_line(&format!(
                "using the server that is installed here: {}",
                build.daemon.display()
            ));
            return Ok(OF_MARIADB.replace(FETCHED, name));
        }
    }
    let is_here = install::installed(home)?
        .iter()
        .any(|server| server.id == FETCHED);
    console::status_line(if is_here {
        "no MariaDB or MySQL is installed here; MariaDB 10.11 was fetched earlier and is used"
    } else {
        "no MariaDB or MySQL is installed here; MariaDB 10.11 (about 21 MB) is fetched and unpacked privately"
    });
    Ok(OF_MARIADB.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_experiment_names_the_server_that_is_replaced() {
        assert_eq!(OF_MARIADB.matches(FETCHED).count(), 1);
    }

    #[test]
    fn no_installed_server_without_the_settings_of_the_experiment_is_taken() {
        for name in INSTALLED {
            let text = OF_MARIADB.replace(FETCHED, name);
            run::plan_of(Path::new("quickstart.toml"), &text, ScriptAccess::Confined)
                .unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert!(name.starts_with("installed:") && !name.ends_with("postgres"));
        }
    }
}
