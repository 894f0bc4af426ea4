//! A record as an audit case: the files that the lab kept about each contender.

mod stints;

use std::collections::{BTreeMap, BTreeSet};

use dbduel_audit::evidence::Connection;
use dbduel_audit::{Case, Product, ServerEvidence, Stage, Texts, Version};
use dbduel_record::Verdict;
use dbduel_record::foreign::{DOCUMENT_BYTES_MAX, read};
use dbduel_record::plan::Contender;
use dbduel_record::store::{ContenderFiles, contender_dir};
use dbduel_record::{Event, Record};

use crate::explain::Explanation;
use crate::summary::Duel;

/// The audit case of a record, with the waivers of its plan, the verdicts on its duels and the resources that differ
/// with them. The settings that the plan varies are the subject.
#[must_use]
pub fn case_of(record: &Record, duels: &[Duel], explanations: &[Explanation]) -> Case {
    let contenders = record.plan.contenders.iter().zip(&record.contenders);
    let contenders = contenders.map(|(contender, files)| evidence(record, contender, files));
    let mut case = Case::of(contenders.collect());
    case.baseline = record.plan.baseline;
    case.about.clone_from(&record.plan.about);
    case.waive(&record.plan.waivers);
    case.host = Some(record.host.clone());
    let was_measured = record
        .events
        .iter()
        .any(|event| matches!(event.what, Event::SliceFinished { .. }));
    case.stage = if was_measured {
        Stage::Results
    } else {
        Stage::Configuration
    };
    case.declare_design(&record.plan);
    case.declare_tables(&record.plan);
    case.set_sessions(&record.plan);
    case.set_hosts(&record.plan);
    case.declare_what_was_asked();
    // Verdicts are about chosen variants, other ones at other levels, so no variant has one of its own.
    case.margins = Some(match record.plan.variants {
        Some(_) => BTreeMap::new(),
        None => margins(duels),
    });
    case.explained = explained(explanations);
    case.clients = record.plan.levels.iter().map(|level| level.clients).max();
    for (index, contender) in record.plan.contenders.iter().enumerate() {
        case.contenders[index].data_bytes = data_bytes(record, &contender.name);
    }
    case
}

/// For each contender that is faster or slower, the throughput ratio farthest from 1 among its verdicts.
fn margins(duels: &[Duel]) -> BTreeMap<String, f64> {
    let mut margins = BTreeMap::new();
    let comparisons = duels.iter().flat_map(|duel| &duel.comparisons);
    let decided = comparisons
        .filter(|comparison| matches!(comparison.verdict, Verdict::Faster | Verdict::Slower));
    for comparison in decided {
        let Some(ratio) = comparison.ratio.value().filter(|ratio| *ratio > 0.0) else {
            continue;
        };
        let known = margins.entry(comparison.contender.clone()).or_insert(ratio);
        if ratio.ln().abs() > f64::ln(*known).abs() {
            *known = ratio;
        }
    }
    margins
}

/// Contenders with a resource that differs by enough that it may explain a result.
fn explained(explanations: &[Explanation]) -> BTreeSet<String> {
    let moved = explanations.iter().filter(|one| one.has_telling_resource());
    moved.map(|one| one.contender.clone()).collect()
}

fn evidence(record: &Record, contender: &Contender, files: &ContenderFiles) -> ServerEvidence {
    let shown = ServerEvidence::of_variables(&contender.name, lower(&files.variables_before));
    let mut evidence = shown.unwrap_or_else(|| {
        let build = files.build.clone().unwrap_or_default();
        let version = Version::parse(&build.version).unwrap_or_default();
        ServerEvidence::new(
            &contender.name,
            Product::recognise(&build.version, &build.product),
            version,
        )
    });
    evidence.source.clone_from(&contender.server);
    evidence.show_after(lower(&files.variables_after));
    evidence.session = lower(&files.session);
    stints::read(record, files, &mut evidence);
    evidence.build.clone_from(&files.build);
    evidence.proof.clone_from(&files.proof);
    for setting in &contender.settings {
        evidence.ask(&setting.name, &setting.value);
    }
    let text = |file: &str| {
        let path = contender_dir(&record.dir, &contender.name).join(file);
        read(&path, DOCUMENT_BYTES_MAX)
            .ok()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let table = |file: &str| -> Vec<Vec<String>> {
        let text = text(file).unwrap_or_default();
        text.lines()
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect()
    };
    let active = table("plugins.tsv")
        .into_iter()
        .filter(|row| row.get(1).is_some_and(|state| state == "ACTIVE"));
    evidence.plugins = active.filter_map(|row| row.into_iter().next()).collect();
    let probes = table("probe.tsv")
        .into_iter()
        .filter_map(|row| <[String; 2]>::try_from(row).ok());
    evidence.probe.extend(probes.map(<(String, String)>::from));
    if let Some(pools) = table("buffer-pool-instances.tsv")
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next())
    {
        evidence.probe.insert("buffer_pools".to_owned(), pools);
    }
    evidence.schema = text("schema.sql");
    evidence.engine_status_before = text("engine-status.before.txt");
    evidence.engine_status_after = text("engine-status.txt");
    evidence.error_log = text("server.log");
    evidence.connection = files
        .connection
        .as_ref()
        .map(Connection::of)
        .unwrap_or_default();
    evidence
}

/// Bytes of the loaded data by the sizes of their files: of compressed pages what they take in a buffer pool, and not on
/// the device. Unknown where the record does not separate data from other files: a data directory may be several times as
/// large as its data.
fn data_bytes(record: &Record, contender: &str) -> Option<u64> {
    let files = record.events.iter().find_map(|event| match &event.what {
        Event::DatasetReady {
            contender: name,
            files,
            ..
        } if name == contender => Some(*files),
        _ => None,
    })?;
    files
        .map(|files| files.data.bytes)
        .filter(|&bytes| bytes > 0)
}

fn lower(texts: &Texts) -> Texts {
    texts
        .iter()
        .map(|(name, value)| (name.to_lowercase(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests;
