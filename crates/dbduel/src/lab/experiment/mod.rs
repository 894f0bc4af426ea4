//! The experiment as a person wrote it: nothing derived, no default applied, every value with its
//! place in the file.
//!
//! [`Experiment::parse`] checks what can be seen in the file alone. Completing it is the business
//! of [`super::expand`].

pub mod document;
pub mod quantity;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::server::reserved;
use crate::judge::audit::codes::check_waiver;
use dbduel_load::workloads::script::{NAME, OPTION};
use document::{Located, Report, Section, Troubles, describe, integer, nearest, number, string};
use toml::Spanned;
use toml::de::DeValue;

/// Longest name of a contender, characters.
const NAME_CHARACTERS_MAX: usize = 60;
/// Most contenders of one experiment.
const CONTENDERS_MAX: usize = 16;
/// Starts of all servers: three before the first look, a hundred at most; one is no series.
const EPOCHS: std::ops::RangeInclusive<i64> = 3..=100;
/// Most clients of one load level.
const CLIENTS_MAX: i64 = 100_000;

/// A parsed experiment file.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// What the author wants to know.
    pub question: Option<String>,
    /// Relative difference below which contenders are equivalent.
    pub horizon: Option<f64>,
    /// Probability that a duel's statements are right.
    pub confidence: Option<f64>,
    /// Time for warm-up and slices.
    pub budget: Option<Located<Duration>>,
    /// Root of every random stream.
    pub seed: Option<u64>,
    /// Whom the others are compared with.
    pub baseline: Option<Located<String>>,
    /// In the order of the file.
    pub contenders: Vec<Contender>,
    /// What the clients do.
    pub workload: Workload,
    /// How many clients, and how fast.
    pub load: Load,
    /// How time is cut.
    pub schedule: Schedule,
    /// Deadlines.
    pub limits: Limits,
    /// A known handicap of one contender.
    pub injection: Option<Injection>,
    /// Findings of the audit that are accepted, with the reason.
    pub waivers: Vec<(Located<String>, Located<String>)>,
}

/// `[injection]`: a known handicap, to prove the lab.
#[derive(Debug, Clone)]
pub struct Injection {
    /// Whose server is stopped.
    pub contender: Located<String>,
    /// Share of its slices.
    pub stopped: Located<f64>,
    /// Time from one stop to the next.
    pub period: Option<Duration>,
}

/// One `[contenders.NAME]`.
#[derive(Debug, Clone)]
pub struct Contender {
    /// Its name.
    pub name: Located<String>,
    /// Name of a contender that this one starts from.
    pub like: Option<Located<String>>,
    /// Where the server comes from.
    pub server: Option<Located<String>>,
    /// Settings in the order of the file.
    pub settings: Vec<Setting>,
    /// File with the password of a running server.
    pub password_file: Option<Located<String>>,
    /// Parameters of the workload that it has of its own, in the order of the file.
    pub tables: Vec<WrittenParameter>,
}

/// A parameter of a workload: its name and its value.
pub type WrittenParameter = (Located<String>, Located<serde_json::Value>);

/// One server setting.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Name as written.
    pub name: Located<String>,
    /// Value as it goes to the configuration file.
    pub value: Located<String>,
}

/// `[workload]`.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Name of the workload.
    pub name: Located<String>,
    /// Its parameters, in the order of the file.
    pub parameters: Vec<WrittenParameter>,
}

/// `[load]`.
#[derive(Debug, Clone, Default)]
pub struct Load {
    /// One entry per load level.
    pub clients: Option<Located<Vec<u32>>>,
    /// How transactions fall due.
    pub arrival: Option<Located<ArrivalKind>>,
    /// Transactions per second of an open arrival; each makes load levels of its own.
    pub rate: Option<Located<Vec<f64>>>,
    /// The latency that every level is held against.
    pub objective: Option<Located<Objective>>,
    /// Pause of a client between two transactions of a closed arrival.
    pub think_time: Option<Located<Duration>>,
    /// Threads of the load process.
    pub threads: Option<u32>,
    /// Processors of the load process.
    pub cores: Option<Vec<u32>>,
    /// Processors of the servers.
    pub server_cores: Option<Vec<u32>>,
}

/// `objective = "p99 < 20 ms"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// Share of the transactions.
    pub share: f64,
    /// Time within which they are done.
    pub latency: Duration,
}

/// The word after `arrival =`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalKind {
    /// The next transaction follows the previous one.
    Closed,
    /// Equally spaced.
    Constant,
    /// Exponential gaps.
    Poisson,
}

/// `[schedule]`.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// Measured part of a slice.
    pub slice: Option<Located<Duration>>,
    /// Not counted after a switch.
    pub guard: Option<Located<Duration>>,
    /// Half-width of the draw of slice lengths.
    pub jitter: Option<f64>,
    /// Longest warm-up of a contender.
    pub warm_up: Option<Located<Duration>>,
    /// Starts of all servers.
    pub epochs: Option<Located<u32>>,
}

/// `[limits]`.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// A server must answer within this time after its start.
    pub server_start: Option<Duration>,
    /// A server must end within this time after it was asked to.
    pub server_stop: Option<Duration>,
    /// One administrative statement.
    pub statement: Option<Duration>,
    /// Loading one dataset.
    pub dataset: Option<Duration>,
    /// The contest stops when a file system has less room than this, bytes.
    pub free_disk: Option<u64>,
}

impl Experiment {
    /// Parses `text`, which was read from `path`.
    ///
    /// # Errors
    /// Everything that is wrong with it, with line and column.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Troubles> {
        let document = document::parse(path, text)?;
        let report = Report::new(path, text);
        let root = Section::new(&report, "the experiment", 0..0, document.get_ref());

        let question = root.get("question", string).map(|question| question.value);
        let horizon = root.get("horizon", |value| share_within(value, 0.0, 0.5));
        let confidence = root.get("confidence", |value| share_within(value, 0.5, 0.9999));
        let budget = root.get("budget", duration);
        let seed = root.get("seed", |value| integer(value, 0..=i64::MAX));
        let baseline = root.get("baseline", string);
        let contenders = read_contenders(&report, &root);
        check_contender_names(&report, &contenders, baseline.as_ref());
        let workload = read_workload(&report, &root);
        let load = root
            .section("load")
            .map(|section| read_load(&report, &section))
            .unwrap_or_default();
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
            .and_then(|section| read_injection(&report, &section));
        let waivers = root
            .section("waivers")
            .map(|section| read_waivers(&report, &section))
            .unwrap_or_default();
        root.refuse_unknown_keys();

        report.finish(Self {
            question,
            horizon: horizon.map(|horizon| horizon.value),
            confidence: confidence.map(|confidence| confidence.value),
            budget,
            seed: seed.map(|seed| seed.value.unsigned_abs()),
            baseline,
            contenders,
            workload,
            load,
            schedule,
            limits,
            injection,
            waivers,
        })
    }

    /// Where the setting `name` of `contender` is written, following `like`.
    #[must_use]
    pub fn setting_span(&self, contender: &str, name: &str) -> Option<std::ops::Range<usize>> {
        let wanted = normalised_name(name);
        let start = self
            .contenders
            .iter()
            .find(|candidate| candidate.name.value == contender)?;
        let mut settings = chain(&self.contenders, start)
            .into_iter()
            .flat_map(|contender| &contender.settings);
        settings
            .find(|setting| normalised_name(&setting.name.value) == wanted)
            .map(|setting| setting.name.span.clone())
    }
}

/// The contenders from `start` along `like`, each once.
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

/// Servers take `-` for `_` and any case in option names.
#[must_use]
pub fn normalised_name(name: &str) -> String {
    name.replace('-', "_").to_lowercase()
}

fn read_contenders(report: &Report<'_>, root: &Section<'_, '_>) -> Vec<Contender> {
    let Some(section) = root.section("contenders") else {
        report.add(
            &(0..0),
            "there is no [contenders.NAME]; a duel needs at least two",
        );
        return Vec::new();
    };
    let mut contenders = Vec::new();
    for (name, value) in section.entries() {
        let DeValue::Table(table) = value.get_ref() else {
            report.add(
                &value.span(),
                format!(
                    "expected a table [contenders.{}], found {}",
                    name.value,
                    describe(value.get_ref())
                ),
            );
            continue;
        };
        if let Some(rest) = split_name(table) {
            let message = format!(
                "a name with a dot is written in quotes: [contenders.\"{}.{rest}\"]",
                name.value
            );
            report.add(&name.span, message);
            continue;
        }
        if let Err(message) = check_name(&name.value) {
            report.add(&name.span, message);
        }
        let title = format!("[contenders.{}]", name.value);
        let section = Section::new(report, title, value.span(), table);
        contenders.push(read_contender(report, &section, name));
    }
    match section.entries().count() {
        count @ 0..2 => {
            let message = format!(
                "a duel needs at least two contenders, found {count}; to compare a server with itself give it a second \
                 name with `like`"
            );
            report.add(&section.span(), message);
        }
        count if count > CONTENDERS_MAX => {
            report.add(
                &section.span(),
                format!("at most {CONTENDERS_MAX} contenders, found {count}"),
            );
        }
        _ => {}
    }
    contenders
}

/// The second half of a name that TOML split at its dot, as in `[contenders.mysql-5.6]`: a table
/// under a key that starts with a digit, which no key of ours does.
fn split_name<'d>(table: &'d toml::de::DeTable<'_>) -> Option<&'d str> {
    let (key, _) = table.iter().find(|(key, value)| {
        value.get_ref().is_table()
            && key
                .get_ref()
                .starts_with(|first: char| first.is_ascii_digit())
    })?;
    Some(key.get_ref())
}

fn check_name(name: &str) -> Result<(), String> {
    let characters = name.chars().count();
    if characters == 0 || characters > NAME_CHARACTERS_MAX {
        return Err(format!(
            "the name of a contender has 1 to {NAME_CHARACTERS_MAX} characters, this one has {characters}"
        ));
    }
    if name.chars().any(char::is_control) {
        return Err("the name of a contender has no control characters".to_owned());
    }
    Ok(())
}

fn read_contender(
    report: &Report<'_>,
    section: &Section<'_, '_>,
    name: Located<String>,
) -> Contender {
    let like = section.get("like", string);
    let server = section.get("server", string);
    let password_file = section.get("password_file", string);
    let settings = section
        .section("settings")
        .map(|settings| read_settings(report, &settings))
        .unwrap_or_default();
    let tables = section
        .section("tables")
        .map(|tables| read_parameters(report, "tables", tables.entries()))
        .unwrap_or_default();
    let is_nowhere = section.value("like").is_none() && section.value("server").is_none();
    // A misspelt key was reported already and is probably the one that is missing.
    if section.refuse_unknown_keys() && is_nowhere {
        let message = format!("contender `{}` has neither `server` nor `like`", name.value);
        report.add(&name.span, message);
    }
    Contender {
        name,
        like,
        server,
        settings,
        password_file,
        tables,
    }
}

fn read_settings(report: &Report<'_>, section: &Section<'_, '_>) -> Vec<Setting> {
    let mut seen = BTreeSet::new();
    let mut settings = Vec::new();
    for (name, value) in section.entries() {
        if !seen.insert(normalised_name(&name.value)) {
            report.add(
                &name.span,
                format!("`{}` is set twice (`-` and `_` are the same)", name.value),
            );
            continue;
        }
        let text = match setting_text(value) {
            Ok(text) => text,
            Err(message) => {
                report.add(
                    &value.span(),
                    format!("setting `{}`: {message}", name.value),
                );
                continue;
            }
        };
        if let Some(reason) = reserved(&name.value, &text) {
            report.add(
                &name.span,
                format!("`{}` cannot be set: {reason}", name.value),
            );
            continue;
        }
        settings.push(Setting {
            name,
            value: Located {
                value: text,
                span: value.span(),
            },
        });
    }
    settings
}

fn setting_text(value: &Spanned<DeValue<'_>>) -> Result<String, String> {
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(true) => "ON".to_owned(),
        DeValue::Boolean(false) => "OFF".to_owned(),
        other => {
            return Err(format!(
                "expected a string, a number or true/false, found {}",
                describe(other)
            ));
        }
    };
    if text.chars().any(char::is_control) {
        return Err("a value has no control characters".to_owned());
    }
    Ok(text)
}

fn check_contender_names(
    report: &Report<'_>,
    contenders: &[Contender],
    baseline: Option<&Located<String>>,
) {
    let names = || {
        contenders
            .iter()
            .map(|contender| contender.name.value.as_str())
    };
    let references = contenders
        .iter()
        .filter_map(|contender| contender.like.as_ref())
        .chain(baseline);
    for reference in references {
        if names().any(|name| name == reference.value) {
            continue;
        }
        let hint =
            nearest(&reference.value, names()).map(|near| format!("; did you mean `{near}`?"));
        report.add(
            &reference.span,
            format!(
                "there is no contender `{}`{}",
                reference.value,
                hint.unwrap_or_default()
            ),
        );
    }
    for contender in contenders {
        let mut current = contender;
        for _ in 0..contenders.len() {
            let Some(like) = &current.like else { break };
            let Some(next) = contenders.iter().find(|c| c.name.value == like.value) else {
                break;
            };
            if next.name.value == contender.name.value {
                report.add(
                    &like.span,
                    format!(
                        "contender `{}` is `like` itself, through {}",
                        contender.name.value, current.name.value
                    ),
                );
                break;
            }
            current = next;
        }
    }
}

fn read_workload(report: &Report<'_>, root: &Section<'_, '_>) -> Workload {
    let nowhere = || Located {
        value: String::new(),
        span: 0..0,
    };
    let Some(section) = root.section("workload") else {
        report.add(
            &(0..0),
            "there is no [workload]; see `dbduel workloads` for what there is",
        );
        return Workload {
            name: nowhere(),
            parameters: Vec::new(),
        };
    };
    let script = section.get("script", string);
    let name = section.get("name", string);
    match (&name, &script) {
        (Some(_), Some(script)) => report.add(
            &script.span,
            "[workload] has a `name` and a `script`; it can only be one of them",
        ),
        (None, None) if section.value("name").is_none() && section.value("script").is_none() => {
            report.add(
                &section.span(),
                "[workload] has neither `name` nor `script`; see `dbduel workloads` for what there is",
            );
        }
        _ => {}
    }
    // A workload may take a line of options; those of a script are a table.
    let options = section
        .value("options")
        .filter(|options| options.get_ref().is_table());
    let written = section
        .entries()
        .filter(|(key, _)| key.value != "name" && !(key.value == "options" && options.is_some()));
    let mut parameters = read_parameters(report, "workload", written);
    if options.is_some()
        && let Some(options) = section.section("options")
    {
        if script.is_none() {
            report.add(
                &options.span(),
                "a table of `options` in [workload] goes with `script`",
            );
        }
        let named = options.entries().map(|(mut key, value)| {
            key.value = format!("{OPTION}{}", key.value);
            (key, value)
        });
        parameters.extend(read_parameters(report, "workload", named));
    }
    let by_script = script.map(|script| Located {
        value: NAME.to_owned(),
        span: script.span,
    });
    Workload {
        name: name.or(by_script).unwrap_or_else(nowhere),
        parameters,
    }
}

/// Parameters of a workload under `[title]`.
fn read_parameters<'d, 't: 'd>(
    report: &Report<'_>,
    title: &str,
    entries: impl Iterator<Item = (Located<String>, &'d Spanned<DeValue<'t>>)>,
) -> Vec<WrittenParameter> {
    let mut parameters = Vec::new();
    for (key, value) in entries {
        match parameter(value.get_ref()) {
            Ok(parameter) => parameters.push((
                key,
                Located {
                    value: parameter,
                    span: value.span(),
                },
            )),
            Err(message) => report.add(
                &value.span(),
                format!("`{}` in [{title}]: {message}", key.value),
            ),
        }
    }
    parameters
}

fn parameter(value: &DeValue<'_>) -> Result<serde_json::Value, String> {
    match value {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Boolean(value) => Ok((*value).into()),
        DeValue::Integer(_) => integer(value, i64::MIN..=i64::MAX).map(Into::into),
        DeValue::Float(_) => number(value).map(Into::into),
        other => Err(format!(
            "expected a string, a number or true/false, found {}",
            describe(other)
        )),
    }
}

fn read_load(report: &Report<'_>, section: &Section<'_, '_>) -> Load {
    let load = Load {
        clients: section.get("clients", clients),
        arrival: section.get("arrival", arrival),
        rate: section.get("rate", rates),
        objective: section.get("objective", objective),
        think_time: section.get("think_time", duration),
        threads: section
            .get("threads", |value| integer(value, 1..=1024))
            .map(|threads| threads.value as u32),
        cores: section
            .get("cores", |value| integers(value, 0..=4095))
            .map(|cores| cores.value),
        server_cores: section
            .get("server_cores", |value| integers(value, 0..=4095))
            .map(|cores| cores.value),
    };
    section.refuse_unknown_keys();
    let is_open = load
        .arrival
        .as_ref()
        .is_some_and(|arrival| arrival.value != ArrivalKind::Closed);
    match (&load.arrival, &load.rate) {
        (Some(arrival), None) if is_open => report.add(&arrival.span, "this arrival needs `rate`, in transactions per second"),
        (_, Some(rate)) if !is_open => report.add(&rate.span, "`rate` goes with arrival \"constant\" or \"poisson\"; closed clients go as fast as the server lets them"),
        _ => {}
    }
    if let (Some(think_time), true) = (&load.think_time, is_open) {
        report.add(
            &think_time.span,
            "`think_time` goes with arrival \"closed\"",
        );
    }
    load
}

fn read_schedule(section: &Section<'_, '_>) -> Schedule {
    let schedule = Schedule {
        slice: section.get("slice", |value| duration_within(value, 0.5, 3600.0)),
        guard: section.get("guard", |value| duration_within(value, 0.0, 600.0)),
        jitter: section
            .get("jitter", |value| share_within(value, 0.0, 0.5))
            .map(|jitter| jitter.value),
        warm_up: section.get("warm_up", |value| duration_within(value, 0.0, 86_400.0)),
        epochs: section.get("epochs", |value| {
            integer(value, EPOCHS).map(|epochs| epochs as u32)
        }),
    };
    section.refuse_unknown_keys();
    schedule
}

fn read_limits(section: &Section<'_, '_>) -> Limits {
    let get = |key| {
        section
            .get(key, |value| duration_within(value, 0.1, 86_400.0))
            .map(|limit| limit.value)
    };
    let limits = Limits {
        server_start: get("server_start"),
        server_stop: get("server_stop"),
        statement: get("statement"),
        dataset: get("dataset"),
        free_disk: section.get("free_disk", size).map(|size| size.value),
    };
    section.refuse_unknown_keys();
    limits
}

fn read_injection(report: &Report<'_>, section: &Section<'_, '_>) -> Option<Injection> {
    let contender = section.get("contender", string);
    let stopped = section.get("stopped", |value| share_within(value, 0.001, 0.9));
    let period = section.get("period", |value| duration_within(value, 0.005, 1.0));
    let is_complete = ["contender", "stopped"]
        .into_iter()
        .all(|key| section.value(key).is_some());
    if section.refuse_unknown_keys() && !is_complete {
        report.add(
            &section.span(),
            "[injection] needs `contender`, whose server is stopped, and `stopped`, the share of its slices",
        );
    }
    Some(Injection {
        contender: contender?,
        stopped: stopped?,
        period: period.map(|period| period.value),
    })
}

fn read_waivers(
    report: &Report<'_>,
    section: &Section<'_, '_>,
) -> Vec<(Located<String>, Located<String>)> {
    let mut waivers = Vec::new();
    for (class, value) in section.entries() {
        if let Err(message) = check_waiver(&class.value) {
            report.add(&class.span, message);
        }
        match string(value.get_ref()) {
            Ok(reason) if !reason.trim().is_empty() => {
                waivers.push((
                    class,
                    Located {
                        value: reason,
                        span: value.span(),
                    },
                ));
            }
            Ok(_) => report.add(
                &value.span(),
                format!(
                    "the waiver of `{}` needs a reason; it is printed in the report",
                    class.value
                ),
            ),
            Err(message) => report.add(
                &value.span(),
                format!("waiver of `{}`: {message}", class.value),
            ),
        }
    }
    waivers
}

/// One rate, or several in ascending order.
fn rates(value: &DeValue<'_>) -> Result<Vec<f64>, String> {
    let one = |value| positive(value, "transactions per second");
    let Some(list) = value.as_array() else {
        return Ok(vec![one(value)?]);
    };
    let rates: Vec<f64> = list
        .iter()
        .map(|entry| one(entry.get_ref()))
        .collect::<Result<_, _>>()?;
    if rates.is_empty() || !rates.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err("expected rates in ascending order, at least one".to_owned());
    }
    Ok(rates)
}

fn objective(value: &DeValue<'_>) -> Result<Objective, String> {
    let text = string(value)?;
    let expected = || format!("expected an objective such as \"p99 < 20 ms\", found {text:?}");
    let (quantile, limit) = text.split_once('<').ok_or_else(expected)?;
    let percent = quantile.trim().strip_prefix('p').ok_or_else(expected)?;
    let percent: f64 = percent.parse().map_err(|_| expected())?;
    let latency = quantity::duration(limit)?;
    if !(1.0..100.0).contains(&percent) || latency.is_zero() {
        return Err(expected());
    }
    Ok(Objective {
        share: percent / 100.0,
        latency,
    })
}

fn clients(value: &DeValue<'_>) -> Result<Vec<u32>, String> {
    let levels = match value {
        DeValue::Integer(_) => vec![integer(value, 1..=CLIENTS_MAX)? as u32],
        _ => integers(value, 1..=CLIENTS_MAX)?,
    };
    if levels.is_empty() {
        return Err("expected at least one number of clients".to_owned());
    }
    let distinct: BTreeSet<u32> = levels.iter().copied().collect();
    if distinct.len() != levels.len() {
        return Err("a number of clients is listed twice".to_owned());
    }
    Ok(levels)
}

fn integers(value: &DeValue<'_>, range: std::ops::RangeInclusive<i64>) -> Result<Vec<u32>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("expected a list of numbers, found {}", describe(value)))?;
    list.iter()
        .map(|entry| integer(entry.get_ref(), range.clone()).map(|number| number as u32))
        .collect()
}

fn arrival(value: &DeValue<'_>) -> Result<ArrivalKind, String> {
    match value.as_str() {
        Some("closed") => Ok(ArrivalKind::Closed),
        Some("constant") => Ok(ArrivalKind::Constant),
        Some("poisson") => Ok(ArrivalKind::Poisson),
        _ => Err(format!(
            "expected \"closed\", \"constant\" or \"poisson\", found {}",
            describe(value)
        )),
    }
}

fn positive(value: &DeValue<'_>, unit: &str) -> Result<f64, String> {
    let number = number(value)?;
    if number > 0.0 {
        Ok(number)
    } else {
        Err(format!("expected more than 0 {unit}, found {number}"))
    }
}

fn duration(value: &DeValue<'_>) -> Result<Duration, String> {
    match value {
        DeValue::String(text) => quantity::duration(text),
        other => Err(format!(
            "expected a duration such as \"20 min\", found {}",
            describe(other)
        )),
    }
}

fn size(value: &DeValue<'_>) -> Result<u64, String> {
    match value {
        DeValue::String(text) => quantity::size(text),
        other => Err(format!(
            "expected a size such as \"256 MiB\", found {}",
            describe(other)
        )),
    }
}

fn duration_within(value: &DeValue<'_>, least_s: f64, most_s: f64) -> Result<Duration, String> {
    let duration = duration(value)?;
    if (least_s..=most_s).contains(&duration.as_secs_f64()) {
        return Ok(duration);
    }
    Err(format!(
        "expected between {least_s} s and {most_s} s, found {} s",
        duration.as_secs_f64()
    ))
}

fn share_within(value: &DeValue<'_>, above: f64, below: f64) -> Result<f64, String> {
    let share = match value {
        DeValue::String(text) => quantity::share(text)?,
        other => number(other)?,
    };
    if share >= above && share < below {
        return Ok(share);
    }
    Err(format!(
        "expected a share from {above} to less than {below} (or \"{} %\" to \"{} %\"), found {share}",
        above * 100.0,
        below * 100.0
    ))
}
