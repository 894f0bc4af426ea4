//! A record as a case: what the lab kept about each contender.

use dbduel_record::Record;

use super::evidence::{Case, ServerEvidence, Stage, Texts};
use super::server::{Product, Version};
use super::value::variable_name;

/// The case that a record makes. Waivers and subject are for the caller to add.
#[must_use]
pub fn case_of(record: &Record) -> Case {
    let contenders = record.plan.contenders.iter().zip(&record.contenders).map(|(contender, files)| {
        let mut evidence = ServerEvidence::of_variables(&contender.name, lower(&files.variables_before)).unwrap_or_else(|| {
            let build = files.build.clone().unwrap_or_default();
            let version = Version::parse(&build.version).unwrap_or_default();
            ServerEvidence::new(&contender.name, Product::recognise(&build.version, &build.product), version)
        });
        evidence.source = contender.server.clone();
        evidence.variables_after = lower(&files.variables_after);
        evidence.status_before = lower(&files.status_before);
        evidence.status_after = lower(&files.status_after);
        evidence.build.clone_from(&files.build);
        evidence.data_bytes = files.size.map(|size| size.before_bytes).filter(|&bytes| bytes > 0);
        for setting in &contender.settings {
            evidence.asked.insert(variable_name(&setting.name), setting.value.clone());
        }
        // The load's one client library talks to all contenders alike.
        evidence.connection.compression = Some(false);
        evidence
    });
    let mut case = Case::of(contenders.collect());
    case.baseline = record.plan.baseline;
    case.host = Some(record.host.clone());
    case.stage = Stage::Results;
    case.clients = record.plan.levels.iter().map(|level| level.clients).max();
    case
}

fn lower(texts: &Texts) -> Texts {
    texts.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect()
}
