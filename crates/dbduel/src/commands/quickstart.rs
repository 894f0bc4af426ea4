//! `dbduel quickstart`: a shipped first experiment, on SQLite or on an installed server.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use dbduel_experiment::ExperimentFile;
use dbduel_server::{Home, ServerName, Silent, install};
use dbduel_workloads::parameters::ScriptAccess;

use super::run;
use crate::console;
use crate::exit::Exit;
use crate::home;

/// Options of `dbduel quickstart`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Product to run it on.
    #[arg(value_enum, default_value_t = Product::Sqlite, value_name = "PRODUCT")]
    pub product: Product,
    /// Directory in which the record's directory is created.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
}

/// Product of a first experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Product {
    /// A rollback journal against a write-ahead log, in a minute and with nothing but dbduel.
    Sqlite,
    /// Cost of a durable commit, in two minutes: on an installed MariaDB or MySQL, else on a fetched MariaDB.
    Mariadb,
    /// Cost of a durable commit, in two minutes: on an installed PostgreSQL, else on a fetched one.
    Postgresql,
}

/// The experiment on SQLite.
const OF_SQLITE: &str = include_str!("../../data/quickstart.toml");

/// An experiment on servers.
struct OnServers {
    text: &'static str,
    /// The server that it names, fetched where none is installed.
    fetched: &'static str,
    /// The installed servers that can replace it: those that have its settings.
    installed: &'static [&'static str],
}

const OF_MARIADB: OnServers = OnServers {
    text: include_str!("../../data/quickstart-mariadb.toml"),
    fetched: "mariadb-10.11",
    installed: &["installed:mariadbd", "installed:mysqld"],
};
const OF_POSTGRESQL: OnServers = OnServers {
    text: include_str!("../../data/quickstart-postgresql.toml"),
    fetched: "postgresql-17",
    installed: &["installed:postgres"],
};

/// Runs a shipped experiment.
///
/// # Errors
/// When the contest cannot be conducted.
pub fn quickstart(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let home = home::find(home)?;
    let text = match arguments.product {
        Product::Sqlite => OF_SQLITE.to_owned(),
        Product::Mariadb => OF_MARIADB.on_server_at_hand(&home)?,
        Product::Postgresql => OF_POSTGRESQL.on_server_at_hand(&home)?,
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

impl OnServers {
    /// The experiment on an installed server if there is one, else on the fetched one.
    fn on_server_at_hand(&self, home: &Home) -> Result<String> {
        for name in self.installed {
            if let Ok(build) = install::install(&ServerName::parse(name)?, home, &Silent) {
                console::status_line(&format!(
                    "using the installed server {}",
                    build.daemon.display()
                ));
                return Ok(self.text.replace(self.fetched, name));
            }
        }
        let is_here = install::installed(home)?
            .iter()
            .any(|server| server.id == self.fetched);
        let what = match is_here {
            true => "was fetched earlier and is used instead",
            false => "is fetched and unpacked privately instead",
        };
        console::status_line(&format!(
            "no suitable server is installed; {} {what}",
            self.fetched
        ));
        Ok(self.text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_experiments_name_the_server_that_is_replaced() {
        for one in [OF_MARIADB, OF_POSTGRESQL] {
            assert_eq!(one.text.matches(one.fetched).count(), 1, "{}", one.fetched);
        }
    }

    #[test]
    fn no_installed_server_without_the_settings_of_the_experiment_is_taken() {
        for one in [OF_MARIADB, OF_POSTGRESQL] {
            for name in one.installed {
                let text = one.text.replace(one.fetched, name);
                run::plan_of(Path::new("quickstart.toml"), &text, ScriptAccess::Confined)
                    .unwrap_or_else(|error| panic!("{name}: {error:#}"));
                let is_postgresql = name.ends_with("postgres");
                assert_eq!(
                    is_postgresql,
                    one.fetched.starts_with("postgresql"),
                    "{name}"
                );
            }
        }
    }
}
