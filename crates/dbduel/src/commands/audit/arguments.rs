//! Options of `dbduel audit`: two servers, or one target with both, and the options of each side.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use dbduel_experiment::quantity::size;

use crate::commands::connection::Tls;

/// Options of `dbduel audit`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Two servers, each as a dump of SHOW VARIABLES, an option file, a directory with such files, or an
    /// address (tcp://user@host:3306, unix:/path); or one record, one directory of results, or one
    /// experiment file.
    #[arg(required_unless_present = "codes", num_args = 1..=2, value_name = "TARGET")]
    pub targets: Vec<String>,
    /// List classes, facts and rules: the names that --waive and --about accept.
    #[arg(long)]
    pub codes: bool,
    /// Name of the first server in the output.
    #[arg(long, value_name = "NAME")]
    pub name_a: Option<String>,
    /// Name of the second server in the output.
    #[arg(long, value_name = "NAME")]
    pub name_b: Option<String>,
    /// Product of the first option file: mysql, mariadb, percona or postgresql.
    #[arg(long, value_name = "PRODUCT")]
    pub product_a: Option<String>,
    /// Product of the second option file.
    #[arg(long, value_name = "PRODUCT")]
    pub product_b: Option<String>,
    /// Version of the first option file's server.
    #[arg(long, value_name = "VERSION")]
    pub version_a: Option<String>,
    /// Version of the second option file's server.
    #[arg(long, value_name = "VERSION")]
    pub version_b: Option<String>,
    /// Logical processors of the machine that option files are for; some defaults follow from them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: Option<u32>,
    /// Memory of the machine that option files are for, such as "64 GiB"; some defaults follow from it.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Directory that stands for the root of the option files' machine; option files may include from it. Without it,
    /// they may include only from their own directory.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// File with the password of the first running server [default: $DBDUEL_PASSWORD or $MYSQL_PWD].
    #[arg(long, value_name = "FILE")]
    pub password_file_a: Option<PathBuf>,
    /// File with the password of the second running server [default: $DBDUEL_PASSWORD or $MYSQL_PWD].
    #[arg(long, value_name = "FILE")]
    pub password_file_b: Option<PathBuf>,
    /// TLS of the connections to running servers.
    #[command(flatten)]
    pub tls: Tls,
    /// What the contest claims to be.
    #[arg(long, value_enum, default_value_t = AuditContest::Equalised)]
    pub contest: AuditContest,
    /// A class, fact or variable that differs on purpose, because the contest is about it. Repeatable.
    #[arg(long, value_name = "SUBJECT")]
    pub about: Vec<String>,
    /// Accept the findings of a class, fact or rule: NAME=REASON. The reason is printed. Repeatable.
    #[arg(long, value_name = "NAME=REASON")]
    pub waive: Vec<String>,
    /// Largest number of clients of the run.
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Do not start the servers of an experiment: use recorded defaults and its settings.
    #[arg(long)]
    pub dry: bool,
    /// Run the top level of the experiment's workload script with the permissions of this process, to read its options.
    /// Without this flag the script has no os, io or ffi library.
    #[arg(long)]
    pub run_script: bool,
    /// Exit with an error on any doubt, not only when the servers are not comparable.
    #[arg(long)]
    pub strict: bool,
    /// Write an experiment file with settings that make the servers equal.
    #[arg(long, value_name = "FILE")]
    pub fix: Option<PathBuf>,
    /// Also print every fact, and the evidence of notes.
    #[arg(long)]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What a contest claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuditContest {
    /// Performance settings are equal.
    Equalised,
    /// Servers with their default settings.
    OutOfTheBox,
    /// Each server tuned by an expert.
    Tuned,
}

/// Options for one side of an audit.
#[derive(Debug, Clone, Copy)]
pub struct AuditSide<'a> {
    /// Name in the output.
    pub name: Option<&'a str>,
    pub product: Option<&'a str>,
    pub version: Option<&'a str>,
    pub password_file: Option<&'a Path>,
}

impl Arguments {
    /// The first side.
    #[must_use]
    pub fn a(&self) -> AuditSide<'_> {
        AuditSide {
            name: self.name_a.as_deref(),
            product: self.product_a.as_deref(),
            version: self.version_a.as_deref(),
            password_file: self.password_file_a.as_deref(),
        }
    }

    /// The second side.
    #[must_use]
    pub fn b(&self) -> AuditSide<'_> {
        AuditSide {
            name: self.name_b.as_deref(),
            product: self.product_b.as_deref(),
            version: self.version_b.as_deref(),
            password_file: self.password_file_b.as_deref(),
        }
    }
}
