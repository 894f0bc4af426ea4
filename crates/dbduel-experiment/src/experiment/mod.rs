//! The experiment as written: nothing derived, no default applied, every value with its position in the file.
//!
//! [`Experiment::parse`] checks the file by itself; [`super::expand`] completes it.

pub mod attribute;
mod conduct;
mod contenders;
mod data;
pub mod document;
mod file;
mod hosts;
mod load;
pub mod quantity;
mod suite;
pub mod sweep;
#[cfg(test)]
mod tests;
mod value;
mod workload;

use std::path::Path;
use std::time::Duration;

pub use attribute::Attribute;
use attribute::read_attribute;
pub use conduct::{STOP_PERIOD_S, STOPPED_SHARE, check_stalls};
use conduct::{read_about, read_injection, read_limits, read_schedule, read_waivers};
use contenders::{ContenderCount, check_contender_names, read_contenders};
use data::read_data;
pub use data::{Data, DataServer, DataSource};
use dbduel_record::plan::{InjectedStalls, IoLimit, SuitePhase};
use document::{Located, Report, Section, Troubles, integer, string};
pub use file::ExperimentFile;
use hosts::read_hosts;
pub use hosts::{Hosts, ServersPlace};
pub use load::CLIENTS_MAX;
use load::{read_load, read_search};
use suite::read_suite;
use sweep::read_sweep;
use value::{duration, share_within};
use workload::read_workload;

/// Title of the table of an experiment's own keys.
const TOP: &str = "the experiment";
/// Every table with a fixed set of keys, empty.
const TABLES: &str = "[contenders.NAME]\n[data]\n[load]\n[hosts]\n[suite]\n[schedule]\n[limits]\n[injection]\n[search]\n[attribute]\n";

/// Size limit of an experiment file, bytes; hand-written ones have a few kilobytes.
pub const EXPERIMENT_BYTES_MAX: u64 = 1 << 20;

/// A parsed experiment file.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The author's question.
    pub question: Option<String>,
    /// Relative difference below which contenders are equivalent.
    pub horizon: Option<f64>,
    /// Probability that all statements of a duel are right.
    pub confidence: Option<f64>,
    /// Time for warm-up and slices.
    pub budget: Option<Located<Duration>>,
    /// Root seed of every random stream.
    pub seed: Option<u64>,
    /// The contender that the others are compared with.
    pub baseline: Option<Located<String>>,
    /// In the order of the file.
    pub contenders: Vec<Contender>,
    /// The work of the clients; in a suite, what its workloads share.
    pub workload: Workload,
    /// Tables that are loaded from a file.
    pub data: Option<Data>,
    /// Several workloads on the same running servers.
    pub suite: Option<Suite>,
    /// Number of clients, and their arrival.
    pub load: Load,
    /// Separate machines for load and servers.
    pub hosts: Option<Hosts>,
    /// How the budget is divided.
    pub schedule: Schedule,
    /// Deadlines.
    pub limits: Limits,
    /// A known handicap of one contender.
    pub injection: Option<Injection>,
    /// Names in the audit of intended differences between contenders.
    pub about: Vec<Located<String>>,
    /// Accepted findings of the audit, each with the reason.
    pub waivers: Vec<(Located<String>, Located<String>)>,
    /// Parameters of the search for the highest rate.
    pub search: Search,
    /// Factors besides the contenders and the load, in the order of the file.
    pub sweep: Vec<SweptFactor>,
    /// Divides the difference of two contenders among their settings.
    pub attribute: Option<Attribute>,
}

/// `[suite]`.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Its place.
    pub span: std::ops::Range<usize>,
    /// Whether blocks are mirrored.
    pub mirrored: Option<bool>,
    /// Time without load between writes and the following reads.
    pub settle: Option<Duration>,
    /// Directory whose scripts are added as workloads.
    pub scripts: Option<Located<String>>,
    /// In the order of the file.
    pub workloads: Vec<SuiteWorkload>,
}

/// One `[[suite.workload]]`.
#[derive(Debug, Clone)]
pub struct SuiteWorkload {
    /// Name in reports.
    pub name: Located<String>,
    /// The work of its clients, without the shared parameters.
    pub workload: Workload,
    /// Group; its workloads are summarised together.
    pub group: Option<String>,
    /// Its phase; absent where dbduel derives it.
    pub phase: Option<SuitePhase>,
    /// Number of clients, where it differs from the suite's.
    pub clients: Option<u32>,
    /// Measured part of its slices, where it differs from the schedule's.
    pub slice: Option<Duration>,
}

/// One factor of `[sweep]`.
#[derive(Debug, Clone)]
pub struct SweptFactor {
    /// Name in reports.
    pub name: Located<String>,
    /// What its levels change.
    pub target: SweptTarget,
    /// Its levels, in the order of the file.
    pub levels: Vec<Located<SweptLevel>>,
}

/// What the levels of a factor change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SweptTarget {
    /// The parameter of the workload that the factor is named after.
    Parameter,
    /// The processors of the servers.
    ServerCores,
    /// The I/O limit of the servers.
    ServerIo,
    /// A setting.
    Setting {
        /// Its name as written.
        name: String,
        /// Contender whose setting it is; absent for all contenders.
        contender: Option<String>,
    },
}

impl SweptTarget {
    /// True for a setting that is changed for this contender.
    #[must_use]
    pub fn is_of(&self, contender: &Contender) -> bool {
        match self {
            Self::Setting {
                contender: Some(name),
                ..
            } => contender.name.value == *name,
            Self::Setting { .. } => true,
            _ => false,
        }
    }
}

/// A level of a factor.
#[derive(Debug, Clone, PartialEq)]
pub enum SweptLevel {
    /// A value of a parameter of the workload, or the text of a setting in the configuration file.
    Value(serde_json::Value),
    /// Processors of the servers.
    ServerCores(ServerCores),
    /// I/O limit of servers; `None` for no limit.
    ServerIo(Option<IoLimit>),
}

/// Number or list of the servers' processors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerCores {
    /// That many of the processors that they may use.
    Count(u32),
    /// These processor numbers.
    These(Vec<u32>),
}

/// `[injection]`: a known handicap, to prove the lab.
#[derive(Debug, Clone)]
pub struct Injection {
    /// Contender whose server is stopped.
    pub contender: Located<String>,
    /// When and how long it is stopped.
    pub stops: InjectedStops,
}

/// When and for how long a handicapped server is stopped.
#[derive(Debug, Clone, Copy)]
pub enum InjectedStops {
    /// Short stops, for a share of each period.
    Pulses {
        /// The part of each period in which it is stopped.
        share: f64,
        /// Time from one stop to the next; absent for the default.
        period: Option<Duration>,
    },
    /// Stops of a given length.
    Stalls(InjectedStalls),
}

/// One `[contenders.NAME]`.
#[derive(Debug, Clone)]
pub struct Contender {
    /// The name of the section.
    pub name: Located<String>,
    /// Name of a contender that this one starts from.
    pub like: Option<Located<String>>,
    /// Source of the server.
    pub server: Option<Located<String>>,
    /// Settings in the order of the file.
    pub settings: Vec<Setting>,
    /// File with the password of a running server.
    pub password_file: Option<Located<String>>,
    /// Name of the agent that runs the server on its machine.
    pub host: Option<Located<String>>,
    /// Its own parameters of the workload, in the order of the file.
    pub tables: Vec<WrittenParameter>,
    /// Settings with their candidate values; all combinations compete within the contender.
    pub variants: Vec<(Located<String>, Vec<Located<String>>)>,
}

impl Contender {
    /// Position of its server, or of its name where the server is inherited.
    #[must_use]
    pub fn server_span(&self) -> std::ops::Range<usize> {
        let server = self.server.as_ref();
        server
            .map_or(&self.name.span, |server| &server.span)
            .clone()
    }
}

/// A parameter of a workload: its name and its value.
pub type WrittenParameter = (Located<String>, Located<serde_json::Value>);

/// One server setting.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Name as written.
    pub name: Located<String>,
    /// Text of the value in the configuration file.
    pub value: Located<String>,
}

/// `[workload]`: the work of the clients.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Name of a workload, or path of a script.
    pub name: Located<String>,
    /// Its parameters, in the order of the file.
    pub parameters: Vec<WrittenParameter>,
}

/// `[load]`: number of clients, and their arrival.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// One entry per load level.
    pub clients: Option<Located<Vec<u32>>>,
    /// How transactions fall due.
    pub arrival: Option<Located<ArrivalKind>>,
    /// Transactions per second of an open arrival; each rate makes its own load levels.
    pub rate: Option<Located<Rates>>,
    /// The latency objective of every level.
    pub objective: Option<Located<Objective>>,
    /// Pause of a client between two transactions of a closed arrival.
    pub think_time: Option<Located<Duration>>,
    /// Threads of the load process.
    pub threads: Option<u32>,
    /// How long their waits poll before sleeping.
    pub busy_poll: Option<Duration>,
    /// Processors of the load process.
    pub cores: Option<Located<Vec<u32>>>,
    /// Processors of the servers.
    pub server_cores: Option<Located<Vec<u32>>>,
    /// I/O limit of servers.
    pub server_io: Option<Located<IoLimit>>,
}

/// Rates of an open arrival.
#[derive(Debug, Clone, PartialEq)]
pub enum Rates {
    /// These rates, ascending.
    These(Vec<f64>),
    /// Search for the highest rate that meets the objective.
    Searched,
}

/// `[search]`: parameters of the search for the highest rate.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The first rate.
    pub from: Option<f64>,
    /// Relative difference of the bracket's rates that is narrow enough.
    pub precision: Option<f64>,
    /// Limit of rates.
    pub rates: Option<u32>,
}

/// `objective = "p99 < 20 ms"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Share of the transactions.
    pub share: f64,
    /// Their latency limit.
    pub latency: Duration,
}

/// The value of `arrival`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalKind {
    /// The next transaction follows the previous one.
    Closed,
    /// Equally spaced.
    Constant,
    /// Exponential gaps.
    Poisson,
}

/// `[schedule]`: how the budget is divided.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// Measured part of a slice.
    pub slice: Option<Located<Duration>>,
    /// Uncounted load after a switch.
    pub guard: Option<Located<Duration>>,
    /// Half-width of the draw of slice lengths.
    pub jitter: Option<f64>,
    /// Longest warm-up of a contender.
    pub warm_up: Option<Located<Duration>>,
    /// Starts of all servers.
    pub epochs: Option<Located<u32>>,
}

/// `[limits]`: deadlines and other limits.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Timeout from a server's start to its first answer.
    pub server_start: Option<Duration>,
    /// Timeout from a stop request to a server's end.
    pub server_stop: Option<Duration>,
    /// Timeout of one administrative statement.
    pub statement: Option<Duration>,
    /// Timeout of loading one dataset.
    pub dataset: Option<Duration>,
    /// Least free space of a file system, bytes; below it the contest stops.
    pub free_disk: Option<u64>,
    /// Whether to test the claim that commits survive a power cut.
    pub prove: Option<Located<bool>>,
}

impl Experiment {
    /// Parses `text`, which was read from `path`.
    ///
    /// # Errors
    /// All errors in it, with line and column.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Troubles> {
        Self::parse_for(path, text, ContenderCount::Several)
    }

    /// Parses as [`Experiment::parse`] an experiment with one contender, whose server a bisection replaces.
    ///
    /// # Errors
    /// All errors in it, with line and column.
    pub fn parse_single(path: &Path, text: &str) -> Result<Self, Troubles> {
        Self::parse_for(path, text, ContenderCount::One)
    }

    fn parse_for(path: &Path, text: &str, count: ContenderCount) -> Result<Self, Troubles> {
        let document = document::parse(path, text)?;
        let report = Report::new(path, text);
        let root = Section::new(&report, TOP, 0..0, document.get_ref());
        let experiment = Self::read(&report, &root, count);
        report.finish(experiment)
    }

    /// The experiment as far as it can be read; `report` has the errors.
    fn read(report: &Report<'_>, root: &Section<'_, '_>, count: ContenderCount) -> Self {
        let question = root.get("question", string).map(|question| question.value);
        let horizon = root.get("horizon", |value| share_within(value, 0.0, 0.5));
        let confidence = root.get("confidence", |value| share_within(value, 0.5, 0.9999));
        let budget = root.get("budget", duration);
        let seed = root.get("seed", |value| integer(value, 0..=i64::MAX));
        let baseline = root.get("baseline", string);
        let about = read_about(report, root);
        let contenders = read_contenders(report, root, count);
        check_contender_names(report, &contenders, baseline.as_ref());
        let suite = root.section("suite");
        let workload = read_workload(report, root, suite.is_some());
        let data = root
            .section("data")
            .and_then(|section| read_data(report, &section));
        let load = root
            .section("load")
            .map(|section| read_load(report, &section))
            .unwrap_or_default();
        let hosts = root
            .section("hosts")
            .and_then(|section| read_hosts(report, &section));
        let suite = suite.map(|section| read_suite(report, &section, &load));
        let schedule = root
            .section("schedule")
            .map(|section| read_schedule(&section))
            .unwrap_or_default();
        let limits = root
            .section("limits")
            .map(|section| read_limits(&section))
            .unwrap_or_default();
        let injection = root
            .section("injection")
            .and_then(|section| read_injection(report, &section));
        let waivers = root
            .section("waivers")
            .map(|section| read_waivers(report, &section))
            .unwrap_or_default();
        let search = root
            .section("search")
            .map(|section| read_search(report, &section, &load))
            .unwrap_or_default();
        let sweep = root
            .section("sweep")
            .map(|section| read_sweep(report, &section, &workload, &contenders))
            .unwrap_or_default();
        let attribute = root
            .section("attribute")
            .map(|section| read_attribute(report, &section));
        if let Some(attribute) = attribute.as_ref().filter(|_| !sweep.is_empty()) {
            let message =
                "[attribute] and [sweep] cannot be combined; divide the difference of one cell";
            report.add(&attribute.span, message);
        }
        if let Some(rate) = load.rate.as_ref().filter(|_| !sweep.is_empty())
            && rate.value == Rates::Searched
        {
            let message = "a search tries different rates in every cell of a [sweep], so cells could not be compared; list \
                           the rates, or remove [sweep]";
            report.add(&rate.span, message);
        }
        if let Some(suite) = &suite
            && (!sweep.is_empty() || schedule.epochs.is_some())
        {
            let message = "a suite has no [sweep] and no `epochs`: its workloads share one start of the servers";
            report.add(&suite.span, message);
        }
        root.refuse_unknown_keys();

        Self {
            question,
            horizon: horizon.map(|horizon| horizon.value),
            confidence: confidence.map(|confidence| confidence.value),
            budget,
            seed: seed.map(|seed| seed.value.unsigned_abs()),
            baseline,
            contenders,
            workload,
            data,
            suite,
            load,
            hosts,
            schedule,
            limits,
            injection,
            about,
            waivers,
            search,
            sweep,
            attribute,
        }
    }

    /// True when a contender has competing variants.
    #[must_use]
    pub fn has_variants(&self) -> bool {
        let mut contenders = self.contenders.iter();
        contenders.any(|contender| !contender.variants.is_empty())
    }

    /// Position of the workload's name; `None` where the file names none.
    #[must_use]
    pub fn workload_span(&self) -> Option<std::ops::Range<usize>> {
        let span = self.workload.name.span.clone();
        (!span.is_empty()).then_some(span)
    }

    /// The contender in the file from which a plan's `contender` is made.
    #[must_use]
    pub fn written(&self, contender: &str) -> Option<&Contender> {
        // A variant is called by its contender and its values: `mysql [0, 96]`.
        let is_it = |candidate: &&Contender| {
            let rest = contender.strip_prefix(&candidate.name.value);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ["))
        };
        self.contenders.iter().find(is_it)
    }

    /// Position of the setting `name` of `contender`, following `like`.
    #[must_use]
    pub fn setting_span(&self, contender: &str, name: &str) -> Option<std::ops::Range<usize>> {
        let wanted = normalised_name(name);
        let start = self.written(contender)?;
        let chain = || chain(&self.contenders, start).into_iter();
        let variants = chain().flat_map(|one| one.variants.iter().map(|(name, _)| name));
        let settings = chain().flat_map(|one| one.settings.iter().map(|setting| &setting.name));
        let mut names = variants.chain(settings);
        names
            .find(|name| normalised_name(&name.value) == wanted)
            .map(|name| name.span.clone())
    }
}

/// The contenders from `start` along `like`, without repetition.
#[must_use]
pub fn chain<'e>(contenders: &'e [Contender], start: &'e Contender) -> Vec<&'e Contender> {
    let mut chain = vec![start];
    while let Some(like) = &chain[chain.len() - 1].like
        && chain.len() <= contenders.len()
        && let Some(next) = contenders
            .iter()
            .find(|candidate| candidate.name.value == like.value)
    {
        chain.push(next);
    }
    chain
}

/// The contender with everything that it inherits by `like`: the nearest value of each setting, in the order and with
/// the spelling of the furthest.
#[must_use]
pub fn resolved(contenders: &[Contender], start: &Contender) -> Contender {
    let chain = chain(contenders, start);
    let mut settings: Vec<Setting> = Vec::new();
    let mut tables: Vec<WrittenParameter> = Vec::new();
    for contender in chain.iter().rev() {
        for own in &contender.settings {
            let name = normalised_name(&own.name.value);
            let known = settings.iter_mut();
            match known
                .rev()
                .find(|setting| normalised_name(&setting.name.value) == name)
            {
                Some(known) => {
                    known.name.span = own.name.span.clone();
                    known.value = own.value.clone();
                }
                None => settings.push(own.clone()),
            }
        }
        for (key, value) in &contender.tables {
            let name = normalised_name(&key.value);
            let known = tables
                .iter_mut()
                .find(|(known, _)| normalised_name(&known.value) == name);
            match known {
                Some(known) => *known = (key.clone(), value.clone()),
                None => tables.push((key.clone(), value.clone())),
            }
        }
    }
    Contender {
        name: start.name.clone(),
        like: None,
        server: chain.iter().find_map(|contender| contender.server.clone()),
        settings,
        password_file: chain
            .iter()
            .find_map(|contender| contender.password_file.clone()),
        host: chain.iter().find_map(|contender| contender.host.clone()),
        tables,
        variants: chain
            .iter()
            .map(|contender| &contender.variants)
            .find(|variants| !variants.is_empty())
            .cloned()
            .unwrap_or_default(),
    }
}

/// The name with `_` for `-` and in lower case, as servers treat option names.
#[must_use]
pub fn normalised_name(name: &str) -> String {
    name.replace('-', "_").to_lowercase()
}

/// Where `key` belongs in an experiment, such as `in [load]`; `None` for a key of no table.
pub(crate) fn home_of(key: &str) -> Option<String> {
    let path = Path::new("");
    let document = document::parse(path, TABLES).ok()?;
    let report = Report::new(path, TABLES);
    Experiment::read(
        &report,
        &Section::new(&report, TOP, 0..0, document.get_ref()),
        ContenderCount::Several,
    );
    let titles = report.tables_with(key);
    let places = titles.into_iter().map(|title| match title.as_str() {
        TOP => "at the top of the file, before the first table".to_owned(),
        table => format!("in {table}"),
    });
    let places: Vec<String> = places.collect();
    (!places.is_empty()).then(|| places.join(" or "))
}
