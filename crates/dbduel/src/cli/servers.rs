//! `dbduel servers`: those that can be had, and those that are here.

use clap::Subcommand;

/// `dbduel servers`.
#[derive(Debug, Subcommand)]
pub enum Servers {
    /// List known and present servers.
    List {
        /// For programs.
        #[arg(long)]
        json: bool,
    },
    /// Fetch servers and unpack them privately; nothing is installed system-wide.
    Install {
        /// Names such as mariadb-10.11 or mysql-8.0.33.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Remove unpacked servers.
    Remove {
        /// Names as `servers list` shows them.
        #[arg(required = true)]
        names: Vec<String>,
    },
}
