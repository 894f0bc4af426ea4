//! `[suite]`: several workloads on the same running servers.

use std::collections::BTreeMap;

use dbduel_record::plan::SuitePhase;
use toml::Spanned;
use toml::de::DeValue;

use super::document::{Located, Report, Section, boolean, describe, integer, string};
use super::load::CLIENTS_MAX;
use super::value::{duration, duration_within};
use super::workload::read_any;
use super::{Load, Suite, SuiteWorkload};

/// Keys of a workload that are not parameters.
const OWN_KEYS: [&str; 6] = ["name", "workload", "group", "phase", "clients", "slice"];

pub(super) fn read_suite(report: &Report<'_>, section: &Section<'_, '_>, load: &Load) -> Suite {
    let entries = section
        .value("workload")
        .map(|value| match value.get_ref() {
            DeValue::Array(entries) => entries
                .iter()
                .filter_map(|entry| read_entry(report, entry))
                .collect(),
            other => {
                let message = format!(
                    "expected tables `[[suite.workload]]`, found {}",
                    describe(other)
                );
                report.add(&value.span(), message);
                Vec::new()
            }
        });
    let suite = Suite {
        span: section.span(),
        mirrored: section
            .get("mirrored", boolean)
            .map(|mirrored| mirrored.value),
        settle: section.get("settle", duration).map(|time| time.value),
        scripts: section.get("scripts", string),
        workloads: entries.unwrap_or_default(),
    };
    section.refuse_unknown_keys();
    if suite.workloads.is_empty() && section.value("scripts").is_none() {
        let message = "[suite] has no workload; add `[[suite.workload]]` tables, each with `name` and `workload`, or `scripts`, a \
                       directory of sysbench scripts";
        report.add(&suite.span, message);
    }
    check_names(report, &suite);
    if let Some(clients) = load
        .clients
        .as_ref()
        .filter(|clients| clients.value.len() > 1)
    {
        let message =
            "a suite has one number of clients; set `clients` of single workloads to vary it";
        report.add(&clients.span, message);
    }
    for span in [
        load.rate.as_ref().map(|rate| &rate.span),
        load.arrival.as_ref().map(|arrival| &arrival.span),
        load.objective.as_ref().map(|objective| &objective.span),
    ]
    .into_iter()
    .flatten()
    {
        let message = "a suite has closed arrival only: clients begin their next transaction when the previous one is done";
        report.add(span, message);
    }
    suite
}

fn read_entry(report: &Report<'_>, entry: &Spanned<DeValue<'_>>) -> Option<SuiteWorkload> {
    const TITLE: &str = "[[suite.workload]]";
    let DeValue::Table(table) = entry.get_ref() else {
        let message = format!("expected a table, found {}", describe(entry.get_ref()));
        report.add(&entry.span(), message);
        return None;
    };
    let section = Section::new(report, TITLE, entry.span(), table);
    let name = section.get("name", string);
    if name.is_none() && section.value("name").is_none() {
        report.add(
            &section.span(),
            "this workload of the suite has no `name`, which reports need",
        );
    }
    let group = section.get("group", string);
    let phase = section.get("phase", phase);
    let clients = section
        .get("clients", |value| integer(value, 1..=CLIENTS_MAX))
        .map(|clients| clients.value as u32);
    let slice = section.get("slice", |value| duration_within(value, 0.05, 3600.0));
    let workload = read_any(report, &section, "workload", TITLE, &OWN_KEYS);
    Some(SuiteWorkload {
        name: name?,
        workload,
        group: group.map(|group| group.value),
        phase: phase.map(|phase| phase.value),
        clients,
        slice: slice.map(|slice| slice.value),
    })
}

fn phase(value: &DeValue<'_>) -> Result<SuitePhase, String> {
    match value.as_str() {
        Some("fresh") => Ok(SuitePhase::Fresh),
        Some("write") => Ok(SuitePhase::Write),
        Some("read") => Ok(SuitePhase::Read),
        Some("last") => Ok(SuitePhase::Last),
        _ => Err(format!(
            "expected \"fresh\", \"write\", \"read\" or \"last\", found {}",
            describe(value)
        )),
    }
}

/// Checks names, which identify workloads in reports, series of records and random streams.
fn check_names(report: &Report<'_>, suite: &Suite) {
    let mut seen: BTreeMap<&str, ()> = BTreeMap::new();
    for Located { value, span } in suite.workloads.iter().map(|workload| &workload.name) {
        if value.trim().is_empty() {
            report.add(span, "the `name` of a workload is empty");
        } else if seen.insert(value, ()).is_some() {
            report.add(
                span,
                format!("two workloads of the suite are called `{value}`"),
            );
        }
    }
}
