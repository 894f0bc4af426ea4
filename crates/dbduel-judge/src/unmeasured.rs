//! What a run did not measure, listed so that silence is not taken for a measurement.

use dbduel_record::Record;
use dbduel_record::event::Event;

use super::summary::{Duel, Figure, Scope};

/// The list for this run, as sentences.
#[must_use]
pub fn list(scope: Scope, duels: &[Duel], record: &Record) -> Vec<String> {
    let mut list = Vec::new();
    if scope == Scope::TheseInstances {
        list.push(
            "Other starts of the same servers. A restart alone can change throughput by a percent or more; one set of \
             instances was compared."
                .to_owned(),
        );
    }
    list.extend([
        "Other machines, other storage, other data sizes and other mixes of transactions."
            .to_owned(),
        durability(record),
        "The cause of a difference. Counters are evidence; settings were not changed one at a time."
            .to_owned(),
        "Latency of failed transactions; the histograms hold committed ones only."
            .to_owned(),
    ]);
    let measures = || duels.iter().flat_map(|duel| &duel.contenders);
    let is_missing = |figure: &Figure| matches!(figure, Figure::NotMeasured { .. });
    if measures().any(|measures| is_missing(&measures.server_cpu_us_per_transaction)) {
        list.push("CPU time of the servers.".to_owned());
    }
    if measures().any(|measures| is_missing(&measures.client_cpu_us_per_transaction)) {
        list.push("CPU time of the load process.".to_owned());
    }
    if measures().any(|measures| measures.stalls.is_none()) {
        list.push("Stalls: the record has no throughput series within slices.".to_owned());
    }
    let without_variables: Vec<&str> = record
        .plan
        .contenders
        .iter()
        .zip(&record.contenders)
        .filter(|(_, files)| files.variables_before.is_empty())
        .map(|(contender, _)| contender.name.as_str())
        .collect();
    if !without_variables.is_empty() {
        list.push(format!(
            "Effective settings of {}.",
            without_variables.join(", ")
        ));
    }
    list
}

/// A crash during the run is a test of durability where the load keeps a log, and so are power cuts before it.
fn durability(record: &Record) -> String {
    let proofs = record.contenders.iter().map(|files| files.proof.as_ref());
    let cuts: Option<Vec<u32>> = proofs.map(|proof| Some(proof?.cuts)).collect();
    if let Some(fewest) = cuts.and_then(|cuts| cuts.into_iter().min())
        && fewest > 0
    {
        return format!(
            "Durability beyond {fewest} simulated power cuts of each contender: other loads, disk faults, and errors \
             that disks report."
        );
    }
    let is_compared = record.events.iter().any(|event| {
        matches!(&event.what, Event::Noticed { notice } if notice.rule.starts_with("data.commits-"))
    });
    let text = if is_compared {
        "Durability beyond the end of a server process: no OS crash or power cut was tested."
    } else {
        "Durability. Whether a committed transaction survives a crash or a power loss was not tested."
    };
    text.to_owned()
}
