//! The command line: what a person may type. Nothing here does anything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::fail_if::{FailIf, quantity_named};
use crate::commands::http::Loopback;
use crate::judge::summary::Quantity;
use crate::lab::experiment::quantity::{duration, share};

/// Stages fair duels between database servers and says which is faster, by how much, and how sure
/// that is.
#[derive(Debug, Parser)]
#[command(name = "dbduel", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct Cli {
    /// Where servers, datasets and sandboxes are kept [default: $XDG_DATA_HOME/dbduel or
    /// ~/.local/share/dbduel].
    #[arg(long, global = true, env = "DBDUEL_HOME", value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXIT_CODES: &str = "Exit codes:
  0    done; of a contest: every duel is decided
  1    something in the surroundings failed (a download, a server, a disk)
  2    the command line or the experiment file is wrong
  3    at least one duel is undecided; of verify: it cannot be told
  4    at least one duel is void; of verify: the record was changed
  5    a rule of --fail-if is hit (an undecided duel alone is no failure then), or history shows a
       new change for the worse
  130  interrupted; `dbduel run DIR` goes on with the record";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// A first duel in a few minutes: what does the doublewrite buffer cost?
    Quickstart(Quickstart),
    /// Run an experiment file, or go on with the record in a directory.
    Run(Run),
    /// Drive a server that runs already, without a contest.
    Load(Box<Load>),
    /// sysbench's own command line: its options, tests and scripts, and its output.
    Sysbench(Sysbench),
    /// Render the report of a record again.
    Report(Report),
    /// What changed over many records of one experiment, and when?
    History(History),
    /// What can the lab tell apart on this machine, and what does it cost? Two equal contenders.
    Selftest(Selftest),
    /// The tables behind a report, for other programs.
    Export(Export),
    /// Follow a running contest in a browser on this machine.
    Watch(Watch),
    /// Do the tables hold what the workload promises of them?
    Check(Check),
    /// Was it fair? Compares what servers do with their settings; runs no load.
    Audit(Box<Audit>),
    /// Is a record whole and unedited, and do its figures follow from it?
    Verify(Verify),
    /// Servers that can be had, and those that are here.
    #[command(subcommand)]
    Servers(Servers),
    /// Snapshots of loaded datasets.
    #[command(subcommand)]
    Datasets(Datasets),
    /// The workloads and their parameters.
    Workloads(Workloads),
    /// The load process; started by `run`, takes orders on standard input.
    #[command(hide = true)]
    Drive(Drive),
}

/// `dbduel sysbench`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Sysbench {
    /// Options, a test or script, and a command, as sysbench takes them; `--help` lists the options.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WORDS"
    )]
    pub words: Vec<String>,
}

/// `dbduel quickstart`.
#[derive(Debug, Args)]
pub struct Quickstart {
    /// Directory that gets the record's directory.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
}

/// `dbduel run`.
#[derive(Debug, Args)]
pub struct Run {
    /// An experiment file (TOML), or the directory of a record to go on with.
    pub target: PathBuf,
    /// Directory that gets the record's directory.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// Print the plan as JSON and stop; starts nothing.
    #[arg(long)]
    pub plan: bool,
    /// Keep the servers' sandboxes after the contest.
    #[arg(long)]
    pub keep: bool,
    /// Give a record so much more time; what comes beyond the plan is decided by the reserve of the
    /// error probability that was kept for it.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub budget: Option<Duration>,
    /// Exit with 5 when this is the case, such as `slower than 3 %`: the whole interval is beyond.
    /// `possibly slower than 3 %`: some of it is. Also `p99 higher than 10 %` (p50, p95, p99, cpu,
    /// written). Can be given several times.
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<FailIf>,
    /// Tell how the contest stands as OpenMetrics text, at http://ADDRESS/metrics while it runs; 127.0.0.1:0
    /// takes a free port. A loopback address only: whoever collects elsewhere comes through a tunnel.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_addr: Option<Loopback>,
    /// Show the report in a browser on this machine while it grows, as `dbduel watch` does; the address is
    /// printed. A page that is open is made anew every 10 s at most, which takes processor time beside the
    /// contest.
    #[arg(long)]
    pub live: bool,
}

/// A server that runs already.
#[derive(Debug, Args)]
pub struct Server {
    /// The server: tcp://user@host:3306, unix:/path/to/socket or unix://user@/path/to/socket; the user
    /// is root unless named. The password comes from --password-file, DBDUEL_PASSWORD or MYSQL_PWD.
    #[arg(long = "server", value_name = "ADDRESS")]
    pub address: String,
    /// File whose first line is the password.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

/// `dbduel history`.
#[derive(Debug, Args)]
pub struct History {
    /// Records, or directories of records.
    #[arg(required = true, value_name = "DIR")]
    pub records: Vec<PathBuf>,
    /// Follow this in place of throughput: p50, p95, p99, cpu or written.
    #[arg(long, value_name = "QUANTITY", value_parser = quantity)]
    pub quantity: Option<Quantity>,
    /// Smallest change of the ratio that is told.
    #[arg(long, default_value = "1 %", value_name = "SHARE", value_parser = share)]
    pub magnitude: f64,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// `dbduel selftest`.
#[derive(Debug, Args)]
pub struct Selftest {
    /// The server [default: the installed one, or mariadb-10.11].
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,
    /// What the clients do.
    #[arg(long, default_value = "oltp-point-select", value_name = "NAME")]
    pub workload: String,
    /// Connections.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub clients: u32,
    /// Time for warm-up and slices of one duel; 40 s or more.
    #[arg(long, default_value = "3 min", value_name = "TIME", value_parser = duration)]
    pub budget: Duration,
    /// Conduct so many duels and count the right verdicts, in place of one for the resolution.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub duels: Option<u32>,
    /// Stop the second server for this share of its slices, a difference that is known: `10 %`.
    #[arg(long, value_name = "SHARE", value_parser = injected, requires = "duels")]
    pub inject: Option<f64>,
    /// Within this the two are called equivalent in a series.
    #[arg(long, default_value = "5 %", value_name = "SHARE", value_parser = share)]
    pub horizon: f64,
    /// Directory that gets the records' directories.
    #[arg(long, default_value = "results", value_name = "DIR")]
    pub results: PathBuf,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// `dbduel load`.
#[derive(Debug, Args)]
pub struct Load {
    /// Which server, and how to log in.
    #[command(flatten)]
    pub server: Server,
    /// What the clients do; `dbduel workloads` lists the names.
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// Parameters of the workload; `dbduel workloads NAME` lists them.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_and_value)]
    pub set: Vec<(String, String)>,
    /// Connections, each with one transaction at a time.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: u32,
    /// Transactions that fall due per second, whatever the server does; without it every client
    /// starts its next transaction when the last one is done.
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    pub rate: Option<f64>,
    /// How transactions that fall due at a rate are spread.
    #[arg(long, value_enum, default_value_t = LoadArrival::Constant, requires = "rate")]
    pub arrival: LoadArrival,
    /// Pause of a client between two transactions, such as `5 ms`.
    #[arg(long, default_value = "0 s", value_name = "TIME", value_parser = duration, conflicts_with = "rate")]
    pub think_time: Duration,
    /// How long to measure.
    #[arg(long, default_value = "30 s", value_name = "TIME", value_parser = duration)]
    pub duration: Duration,
    /// Load before that, which is not counted.
    #[arg(long, default_value = "5 s", value_name = "TIME", value_parser = duration)]
    pub warm_up: Duration,
    /// Database with the workload's tables.
    #[arg(long, default_value = "dbduel", value_name = "NAME")]
    pub database: String,
    /// How the clients use TLS, and the connections that fill and drop tables.
    #[arg(long, value_enum, default_value_t = LoadTls::Off)]
    pub tls: LoadTls,
    /// Certificates of the authority (PEM), for the modes that check the server's.
    #[arg(long, value_name = "FILE", required_if_eq_any = [("tls", "verify-ca"), ("tls", "verify-identity")])]
    pub tls_ca: Option<PathBuf>,
    /// Create the database and fill the tables before the load.
    #[arg(long)]
    pub prepare: bool,
    /// Drop the workload's tables after the load.
    #[arg(long)]
    pub cleanup: bool,
    /// Threads that drive clients [default: a quarter of the processors, but at least two].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Root of the clients' random values [default: another one each time].
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Write the latencies as a HdrHistogram interval log.
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    /// Write what the server acknowledged as committed, also when it crashed meanwhile, for
    /// `dbduel check --against`. Only workloads that keep such a log have something to write.
    #[arg(long, value_name = "FILE")]
    pub commits: Option<PathBuf>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// How transactions that fall due at a rate are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadArrival {
    /// Equally spaced.
    Constant,
    /// At random: exponentially distributed gaps.
    Poisson,
}

/// `dbduel report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The directory of a record.
    pub record: PathBuf,
    /// What to render.
    #[arg(long, value_enum, default_value_t = ReportFormat::Terminal)]
    pub format: ReportFormat,
    /// List what a reader must be told, and what of it the record has, in place of the report.
    #[arg(long)]
    pub disclosure: bool,
    /// Write to this file in place of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit with 5 when this is the case, as in `dbduel run`.
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<FailIf>,
}

/// `dbduel export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The directory of a record.
    pub record: PathBuf,
    /// Directory for the files; it is made, and must not hold files of the same names.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
}

/// `dbduel watch`.
#[derive(Debug, Args)]
pub struct Watch {
    /// The directory of a record.
    pub record: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Plain text.
    Terminal,
    /// One self-contained page.
    Html,
    /// For code forges and wikis.
    Markdown,
    /// For programs.
    Json,
}

impl ReportFormat {
    /// Its name in the table of formats.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Terminal => "terminal",
            ReportFormat::Html => "html",
            ReportFormat::Markdown => "markdown",
            ReportFormat::Json => "json",
        }
    }
}

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

/// `dbduel datasets`.
#[derive(Debug, Subcommand)]
pub enum Datasets {
    /// List the snapshots.
    List {
        /// For programs.
        #[arg(long)]
        json: bool,
    },
    /// Remove snapshots.
    Remove {
        /// Identifiers as `datasets list` shows them, or `all`.
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// `dbduel workloads`.
#[derive(Debug, Args)]
pub struct Workloads {
    /// Show this one with its parameters.
    pub name: Option<String>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// `dbduel drive`.
#[derive(Debug, Args)]
pub struct Drive {
    /// Threads that drive clients.
    #[arg(long)]
    pub threads: u32,
    /// Processors to stay on, separated by commas.
    #[arg(long, value_delimiter = ',', num_args = 0..)]
    pub cores: Vec<String>,
}

/// How the clients use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoadTls {
    /// Never.
    Off,
    /// If the server offers it; its certificate is not looked at.
    Preferred,
    /// Always; its certificate is not looked at.
    Required,
    /// Always; the certificate must come from the authority.
    VerifyCa,
    /// Always; the certificate must come from the authority and bear the host's name.
    VerifyIdentity,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("expected KEY=VALUE such as `tables=4`, found `{text}`"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn quantity(text: &str) -> Result<Quantity, String> {
    quantity_named(text)
        .ok_or_else(|| format!("expected p50, p95, p99, cpu or written, found `{text}`"))
}

fn injected(text: &str) -> Result<f64, String> {
    share(text).and_then(|share| match (0.001..=0.9).contains(&share) {
        true => Ok(share),
        false => Err(format!("expected from 0.1 % to 90 %, found `{text}`")),
    })
}

/// A time that is not nothing.
fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("is no time at all; give it as `20 min`".to_owned()),
        time => Ok(time),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate| *rate > 0.0 && *rate <= 1e9)
        .ok_or_else(|| "expected a number of transactions per second above 0".to_owned())
}

/// `dbduel check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Which server, and how to log in.
    #[command(flatten)]
    pub server: Server,
    /// Whose conditions; `dbduel workloads` lists the names. A record given to --against names its own.
    #[arg(long, value_name = "NAME", required_unless_present = "against")]
    pub workload: Option<String>,
    /// Parameters that the tables were loaded with; a record given to --against has its own.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_and_value)]
    pub set: Vec<(String, String)>,
    /// Database with the workload's tables.
    #[arg(long, default_value = "dbduel", value_name = "NAME")]
    pub database: String,
    /// Check also what holds only before the first transaction.
    #[arg(long)]
    pub fresh: bool,
    /// Compare with what a server had acknowledged: a record, or a file that `load --commits` wrote.
    #[arg(long, value_name = "RECORD|FILE")]
    pub against: Option<PathBuf>,
    /// Whose log of the record it is, when the record has several contenders.
    #[arg(long, value_name = "NAME", requires = "against")]
    pub contender: Option<String>,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// `dbduel audit`.
#[derive(Debug, Args)]
pub struct Audit {
    /// Two servers, each as a dump of SHOW VARIABLES, an option file, a directory with such files, or an
    /// address (tcp://user@host:3306, unix:/path); or one record, one directory of results, or one
    /// experiment file.
    #[arg(required = true, num_args = 1..=2, value_name = "TARGET")]
    pub targets: Vec<String>,
    /// What to call the first server.
    #[arg(long, value_name = "NAME")]
    pub name_a: Option<String>,
    /// What to call the second server.
    #[arg(long, value_name = "NAME")]
    pub name_b: Option<String>,
    /// Product of the first option file: mysql, mariadb or percona.
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
    /// File with the password of the first running server [default: $DBDUEL_PASSWORD or $MYSQL_PWD].
    #[arg(long, value_name = "FILE")]
    pub password_file_a: Option<PathBuf>,
    /// File with the password of the second running server [default: $DBDUEL_PASSWORD or $MYSQL_PWD].
    #[arg(long, value_name = "FILE")]
    pub password_file_b: Option<PathBuf>,
    /// What the contest claims to be.
    #[arg(long, value_enum, default_value_t = AuditContest::Equalised)]
    pub contest: AuditContest,
    /// A class, fact or variable that the contest is about, so that it differs on purpose.
    #[arg(long, value_name = "SUBJECT")]
    pub about: Vec<String>,
    /// Accept a finding: CLASS=REASON. The reason is printed.
    #[arg(long, value_name = "CLASS=REASON")]
    pub waive: Vec<String>,
    /// Largest number of clients of the run.
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Do not start the servers of an experiment: take recorded defaults with its settings.
    #[arg(long)]
    pub dry: bool,
    /// Fail on any doubt, not only when the servers are not comparable.
    #[arg(long)]
    pub strict: bool,
    /// Write an experiment in which the servers are equal.
    #[arg(long, value_name = "FILE")]
    pub fix: Option<PathBuf>,
    /// Print every fact and the evidence of notes too.
    #[arg(long)]
    pub all: bool,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// `dbduel verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// The directory of a record.
    pub record: PathBuf,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

/// What a contest claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuditContest {
    /// Performance settings are meant to be equal.
    Equalised,
    /// Servers as they come.
    OutOfTheBox,
    /// Each side set by somebody who knows it.
    Tuned,
}

/// What the command line says about one side of an audit.
#[derive(Debug, Clone, Copy)]
pub struct AuditSide<'a> {
    /// What to call it.
    pub name: Option<&'a str>,
    /// Its product.
    pub product: Option<&'a str>,
    /// Its version.
    pub version: Option<&'a str>,
    /// File with its password.
    pub password_file: Option<&'a Path>,
}

impl Audit {
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
