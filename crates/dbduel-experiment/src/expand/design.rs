//! Builds the contenders of a design from two contenders and their differences.
//!
//! The contenders are added to the experiment as if written there, with the places of their sources.

use std::collections::BTreeSet;

use dbduel_record::design::{ChangeKind, Design, DesignChange, DesignFactor};
use dbduel_server::{Meaning, ServerName};
use dbduel_stats::attribution::FactorialDesign;
use dbduel_text::nearest;

use crate::experiment::attribute::{Attribute, WrittenFactor};
use crate::experiment::document::{Located, Report, Troubles};
use crate::experiment::{
    self, Contender, Experiment, ExperimentFile, Setting, WrittenParameter, normalised_name,
    resolved,
};

/// Name of the server among the factors.
const SERVER: &str = "server";
/// Limit of factors of a design: 32 servers.
const FACTORS_MAX: usize = 15;

/// A difference between the two contenders: its value in each.
struct Difference {
    change: DesignChange,
    values: [Value; 2],
}

#[derive(Clone)]
enum Value {
    Absent,
    Server(Located<String>),
    Setting(Setting),
    Table(WrittenParameter),
}

/// Adds the contenders of the design to the experiment; also returns the design.
///
/// # Errors
/// Names that do not exist or do not differ, and contenders whose difference cannot be divided, with line and column.
pub(super) fn designed(
    file: &ExperimentFile<'_>,
    attribute: &Attribute,
) -> Result<(Experiment, Design), Troubles> {
    let report = Report::new(file.path, file.text);
    let found = complete(&report, file.experiment, attribute);
    report.finish(())?;
    // Whatever left nothing to divide was reported.
    found.ok_or_else(|| Troubles {
        path: file.path.to_owned(),
        list: Vec::new(),
    })
}

fn complete(
    report: &Report<'_>,
    experiment: &Experiment,
    attribute: &Attribute,
) -> Option<(Experiment, Design)> {
    let [from, to] = ends(report, experiment, attribute)?;
    let [from, to] = [from, to].map(|end| resolved(&experiment.contenders, end));
    for end in [&from, &to] {
        let server = end.server.as_ref();
        let name = server.and_then(|server| ServerName::parse(&server.value).ok());
        if name.is_some_and(|name| matches!(name.meaning, Meaning::Running(_))) {
            let message = format!(
                "`{}` is a running server; contenders of a design have their own settings, so dbduel must start their servers",
                end.name.value
            );
            report.add(&end.server_span(), message);
            return None;
        }
    }
    let differences = differences(&from, &to);
    let factors = factors(report, attribute, &differences)?;
    if !(2..=FACTORS_MAX).contains(&factors.len()) {
        let message = match factors.len() {
            0 => format!(
                "`{}` and `{}` do not differ in any setting",
                from.name.value, to.name.value
            ),
            1 => format!(
                "`{}` and `{}` differ in one factor only, `{}`; their duel shows its effect",
                from.name.value, to.name.value, factors[0].name
            ),
            many => format!(
                "`{}` and `{}` differ in {many} factors, at most {FACTORS_MAX} are possible; list those that matter in \
                 `factors` of [attribute]; all others become one more factor",
                from.name.value, to.name.value
            ),
        };
        report.add(&attribute.span, message);
        return None;
    }
    let design = FactorialDesign::new(factors.len()).ok()?;
    let names: Vec<String> = design
        .runs()
        .iter()
        .map(|run| name_of(run, &from, &to))
        .collect();
    let mut own = experiment.clone();
    own.baseline = Some(from.name.clone());
    own.question.get_or_insert_with(|| {
        format!(
            "What makes `{}` differ from `{}`?",
            to.name.value, from.name.value
        )
    });
    let runs = design.runs().iter().zip(&names);
    own.contenders = runs
        .map(|(run, name)| contender(&from, &to, &differences, &factors, run, name))
        .collect();
    // That contenders differ in the factors is what was asked for.
    let settings = factors.iter().flat_map(|factor| &factor.changes);
    let settings = settings.filter(|change| change.kind == ChangeKind::Setting);
    own.about.extend(settings.map(|change| Located {
        value: change.name.clone(),
        span: attribute.span.clone(),
    }));
    let target = design
        .runs()
        .iter()
        .position(|run| run.iter().all(|is_second| *is_second))?;
    let design = Design {
        target,
        factors,
        runs: design.runs().to_vec(),
    };
    Some((own, design))
}

/// The two contenders whose difference is divided.
fn ends<'e>(
    report: &Report<'_>,
    experiment: &'e Experiment,
    attribute: &Attribute,
) -> Option<[&'e Contender; 2]> {
    let contenders = &experiment.contenders;
    let named = |name: &Located<String>| {
        let found = contenders.iter().find(|one| one.name.value == name.value);
        if found.is_none() {
            let names = contenders.iter().map(|one| one.name.value.as_str());
            let hint = nearest(&name.value, names).map(|near| format!("; did you mean `{near}`?"));
            let message = format!(
                "there is no contender `{}`{}",
                name.value,
                hint.unwrap_or_default()
            );
            report.add(&name.span, message);
        }
        found
    };
    let from = match &experiment.baseline {
        Some(baseline) => named(baseline)?,
        None => contenders.first()?,
    };
    let mut others = contenders
        .iter()
        .filter(|one| one.name.value != from.name.value);
    let to = match (&attribute.to, others.next(), others.next()) {
        (Some(name), ..) => named(name)?,
        (None, Some(only), None) => only,
        _ => {
            let message = "there are several contenders besides the baseline; name one with `to` in [attribute]";
            report.add(&attribute.span, message);
            return None;
        }
    };
    if from.name.value == to.name.value {
        let message = format!(
            "`{}` is the baseline; `to` needs another contender",
            to.name.value
        );
        report.add(
            attribute.to.as_ref().map_or(&attribute.span, |to| &to.span),
            message,
        );
        return None;
    }
    Some([from, to])
}

/// All differences of two complete contenders: the server, settings in the order of the file, parameters of tables.
fn differences(from: &Contender, to: &Contender) -> Vec<Difference> {
    let server = [from, to].map(|end| end.server.clone().map_or(Value::Absent, Value::Server));
    let setting = |end: &Contender, name: &str| {
        let mut settings = end.settings.iter();
        let found = settings.find(|setting| normalised_name(&setting.name.value) == name);
        found.cloned().map_or(Value::Absent, Value::Setting)
    };
    let table = |end: &Contender, name: &str| {
        let found = end
            .tables
            .iter()
            .find(|(key, _)| normalised_name(&key.value) == name);
        found.cloned().map_or(Value::Absent, Value::Table)
    };
    let both = || [from, to].into_iter();
    let settings = unique(
        both()
            .flat_map(|end| &end.settings)
            .map(|setting| &setting.name),
    );
    let tables = unique(both().flat_map(|end| &end.tables).map(|(key, _)| key));
    let settings = settings.iter().map(|name| {
        (
            ChangeKind::Setting,
            name.clone(),
            [from, to].map(|end| setting(end, name)),
        )
    });
    let tables = tables.iter().map(|name| {
        (
            ChangeKind::Table,
            name.clone(),
            [from, to].map(|end| table(end, name)),
        )
    });
    let all = std::iter::once((ChangeKind::Server, SERVER.to_owned(), server))
        .chain(settings)
        .chain(tables);
    let found = all.filter_map(|(kind, name, values)| {
        let [from, to] = values.each_ref().map(text);
        let is_same = match (&from, &to) {
            (Some(from), Some(to)) => from.trim().eq_ignore_ascii_case(to.trim()),
            (None, None) => true,
            _ => false,
        };
        (!is_same).then_some(Difference {
            change: DesignChange {
                kind,
                name,
                from,
                to,
            },
            values,
        })
    });
    found.collect()
}

/// Normalised names in order, without duplicates.
fn unique<'n>(names: impl Iterator<Item = &'n Located<String>>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names = names.map(|name| normalised_name(&name.value));
    names.filter(|name| seen.insert(name.clone())).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Absent => None,
        Value::Server(server) => Some(server.value.clone()),
        Value::Setting(setting) => Some(setting.value.value.clone()),
        Value::Table((_, value)) => Some(match value.value.as_str() {
            Some(text) => text.to_owned(),
            None => value.value.to_string(),
        }),
    }
}

/// The factors: those listed, and one more for all other differences; without a list one for each difference.
fn factors(
    report: &Report<'_>,
    attribute: &Attribute,
    differences: &[Difference],
) -> Option<Vec<DesignFactor>> {
    let find = |name: &str| {
        let name = normalised_name(name);
        differences.iter().find(|one| one.change.name == name)
    };
    if attribute.factors.is_empty() {
        let alone = |one: &Difference| factor(vec![one.change.clone()], true, None);
        return Some(differences.iter().map(alone).collect());
    }
    let mut is_known = true;
    let mut used = BTreeSet::new();
    for name in attribute.factors.iter().flat_map(|factor| &factor.names) {
        let message = match find(&name.value) {
            None => {
                let names = differences.iter().map(|one| one.change.name.as_str());
                let hint =
                    nearest(&name.value, names).map(|near| format!("; did you mean `{near}`?"));
                format!(
                    "the contenders do not differ in `{}`{}",
                    name.value,
                    hint.unwrap_or_default()
                )
            }
            Some(one) if used.insert(one.change.name.clone()) => continue,
            Some(_) => format!("`{}` is listed twice in `factors`", name.value),
        };
        report.add(&name.span, message);
        is_known = false;
    }
    if !is_known {
        return None;
    }
    let written = |written: &WrittenFactor| {
        let changes = written.names.iter().filter_map(|name| find(&name.value));
        let changes = changes.map(|one| one.change.clone()).collect();
        factor(changes, true, written.grouped_because.clone())
    };
    let mut factors: Vec<DesignFactor> = attribute.factors.iter().map(written).collect();
    let others = differences
        .iter()
        .filter(|one| !used.contains(&one.change.name));
    let others: Vec<DesignChange> = others.map(|one| one.change.clone()).collect();
    if !others.is_empty() {
        factors.push(factor(others, false, None));
    }
    Some(factors)
}

fn factor(
    changes: Vec<DesignChange>,
    is_listed: bool,
    grouped_because: Option<String>,
) -> DesignFactor {
    let first = changes.first().map_or("", |change| change.name.as_str());
    let name = match changes.len() {
        1 => first.to_owned(),
        2 => format!("{first} + {}", changes[1].name),
        count if is_listed => format!("{first} + {} others", count - 1),
        count => format!("{count} differences that are not listed"),
    };
    DesignFactor {
        name,
        is_listed,
        changes,
        grouped_because,
    }
}

/// Name of a contender: the two ends keep theirs, the others get a letter for each changed factor (the standard
/// notation of factorial designs: Yates 1937).
fn name_of(run: &[bool], from: &Contender, to: &Contender) -> String {
    if run.iter().all(|is_second| !is_second) {
        return from.name.value.clone();
    }
    if run.iter().all(|is_second| *is_second) {
        return to.name.value.clone();
    }
    let letters = ('a'..='z').zip(run).filter(|(_, is_second)| **is_second);
    let mut name: String = letters.map(|(letter, _)| letter).collect();
    while name == from.name.value || name == to.name.value {
        name.insert(0, '+');
    }
    name
}

/// The contender with some factors of `to` and all else of `from`.
fn contender(
    from: &Contender,
    to: &Contender,
    differences: &[Difference],
    factors: &[DesignFactor],
    run: &[bool],
    name: &str,
) -> Contender {
    let changed = factors.iter().zip(run).filter(|(_, is_second)| **is_second);
    let changed = changed.flat_map(|(factor, _)| &factor.changes);
    let changed: BTreeSet<(&str, bool)> = changed
        .map(|change| (change.name.as_str(), change.kind == ChangeKind::Table))
        .collect();
    let mut own = experiment::Contender {
        name: Located {
            value: name.to_owned(),
            span: to.name.span.clone(),
        },
        ..from.clone()
    };
    if name == to.name.value {
        own.name = to.name.clone();
    }
    let is_taken = |one: &&Difference| {
        changed.contains(&(
            one.change.name.as_str(),
            one.change.kind == ChangeKind::Table,
        ))
    };
    for difference in differences.iter().filter(is_taken) {
        let is_it = |name: &Located<String>| normalised_name(&name.value) == difference.change.name;
        match difference.change.kind {
            ChangeKind::Server => {}
            ChangeKind::Setting => own.settings.retain(|setting| !is_it(&setting.name)),
            ChangeKind::Table => own.tables.retain(|(key, _)| !is_it(key)),
        }
        match difference.values[1].clone() {
            Value::Absent => {}
            Value::Server(server) => own.server = Some(server),
            Value::Setting(setting) => own.settings.push(setting),
            Value::Table(parameter) => own.tables.push(parameter),
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TEXT: &str = r#"
[contenders.slow]
server = "mariadb-10.11"
settings = { innodb_doublewrite = 1, sync_binlog = 1, innodb_buffer_pool_size = "1G" }
[contenders.fast]
like = "slow"
settings = { innodb-doublewrite = 0, sync_binlog = 0, innodb_lru_scan_depth = 100 }
[workload]
name = "oltp-read-write"
"#;

    fn design(attribute: &str) -> Result<(Experiment, Design), Troubles> {
        let text = format!("{TEXT}[attribute]\n{attribute}\n");
        let path = Path::new("duel.toml");
        let experiment = Experiment::parse(path, &text).unwrap();
        let file = ExperimentFile {
            path,
            text: &text,
            experiment: &experiment,
        };
        designed(&file, experiment.attribute.as_ref().unwrap())
    }

    #[test]
    fn every_setting_that_differs_is_a_factor() {
        let (experiment, design) = design("").unwrap();
        let names: Vec<&str> = design.factors.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            ["innodb_doublewrite", "sync_binlog", "innodb_lru_scan_depth"]
        );
        assert!(design.factors[2].changes[0].from.is_none());
        let names: Vec<&str> = experiment
            .contenders
            .iter()
            .map(|one| one.name.value.as_str())
            .collect();
        assert_eq!(names, ["slow", "fast", "a", "b", "c", "ab", "ac", "bc"]);
        let settings = |number: usize| {
            let settings = experiment.contenders[number].settings.iter();
            let written = settings
                .map(|one| format!("{}={}", normalised_name(&one.name.value), one.value.value));
            let mut written: Vec<String> = written.collect();
            written.sort();
            written.join(" ")
        };
        assert_eq!(
            settings(0),
            "innodb_buffer_pool_size=1G innodb_doublewrite=1 sync_binlog=1"
        );
        assert_eq!(
            settings(1),
            "innodb_buffer_pool_size=1G innodb_doublewrite=0 innodb_lru_scan_depth=100 sync_binlog=0"
        );
        assert_eq!(
            settings(6),
            "innodb_buffer_pool_size=1G innodb_doublewrite=0 innodb_lru_scan_depth=100 sync_binlog=1"
        );
        assert_eq!(design.runs[6], [true, false, true]);
    }

    #[test]
    fn what_is_not_listed_is_one_factor_and_what_is_grouped_changes_as_one() {
        let (_, listed) = design("factors = [\"sync-binlog\"]").unwrap();
        assert_eq!(listed.factors.len(), 2);
        assert!(listed.factors[0].is_listed && !listed.factors[1].is_listed);
        assert_eq!(
            listed.factors[1].name,
            "innodb_doublewrite + innodb_lru_scan_depth"
        );
        let (experiment, grouped) = design(
            "factors = [[\"sync_binlog\", \"innodb_doublewrite\"], \"innodb_lru_scan_depth\"]",
        )
        .unwrap();
        assert_eq!(grouped.factors[0].name, "sync_binlog + innodb_doublewrite");
        assert_eq!(experiment.contenders.len(), 4);
    }

    #[test]
    fn what_cannot_be_divided_is_refused_in_its_place() {
        let refused = |attribute: &str| design(attribute).unwrap_err().to_string();
        assert_eq!(
            refused("factors = [\"sync_binlogs\"]"),
            "duel.toml:11:12: the contenders do not differ in `sync_binlogs`; did you mean `sync_binlog`?"
        );
        assert_eq!(
            refused("factors = [\"sync_binlog\", \"sync_binlog\"]"),
            "duel.toml:11:27: `sync_binlog` is listed twice in `factors`"
        );
        assert_eq!(
            refused("to = \"fats\""),
            "duel.toml:11:6: there is no contender `fats`; did you mean `fast`?"
        );
        assert!(refused("to = \"slow\"").contains("`to` needs another contender"));
        let all =
            "factors = [[\"sync_binlog\", \"innodb_doublewrite\", \"innodb_lru_scan_depth\"]]";
        assert!(refused(all).contains("differ in one factor only"));
    }
}
