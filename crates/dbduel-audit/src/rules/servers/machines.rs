//! Contenders whose servers run on different machines.

use dbduel_record::event::Severity;
use dbduel_record::facts::{Host, ServerHost};
use dbduel_text::bytes;

use crate::Case;
use crate::finding::{Finding, FindingKind, Side};
use crate::reading::Read;

/// A fact of a machine as text, where it is known.
type MachineFact = fn(&Host) -> Option<String>;

/// Facts by which machines are compared.
const FACTS: [(&str, MachineFact); 6] = [
    ("processors", |host| {
        host.cpus.map(|_| host.processors_label())
    }),
    ("memory", |host| host.memory_bytes.map(bytes)),
    ("kernel", |host| host.kernel.clone()),
    ("virtualisation", |host| host.virtualisation.clone()),
    ("file system", |host| host.file_system.clone()),
    ("disk model", |host| host.disk_model.clone()),
];

const ONE_MACHINE: &str =
    "To compare servers, run all of them on one machine (`servers` in [hosts]).";

pub fn several(case: &Case) -> Vec<Finding> {
    case.others()
        .filter_map(|other| {
            let [first, second] = [case.baseline, other].map(|index| machine_of(case, index));
            let machines = [first?, second?];
            (machines[0].name != machines[1].name).then(|| compared(case, other, machines))
        })
        .collect()
}

/// The machine of a contender, where its plan names it and its facts are known.
fn machine_of(case: &Case, contender: usize) -> Option<&ServerHost> {
    let name = case.contenders[contender].host.as_ref()?;
    let mut machines = case.host.as_ref()?.server_hosts.iter();
    machines.find(|machine| machine.name == *name)
}

/// The finding about a contender whose machine is not the baseline's.
fn compared(case: &Case, other: usize, machines: [&ServerHost; 2]) -> Finding {
    let pair = case.pair(other);
    let place = format!(
        "`{}` runs on {} and `{}` on {}",
        pair[0], machines[0].name, pair[1], machines[1].name
    );
    let mut differences = Vec::new();
    let mut reads: [Vec<Read>; 2] = Default::default();
    for (title, fact) in FACTS {
        let texts = machines.map(|machine| fact(&machine.facts));
        if texts[0] == texts[1] {
            continue;
        }
        let texts = texts.map(|text| text.unwrap_or_else(|| "not available".to_owned()));
        differences.push(format!("{title}: {} and {}", texts[0], texts[1]));
        for (reads, value) in reads.iter_mut().zip(texts) {
            let name = title.to_owned();
            reads.push(Read { name, value });
        }
    }
    if differences.is_empty() {
        let titles = FACTS.map(|(title, _)| title).join(", ");
        let claim = format!(
            "{place}, machines with equal facts ({titles}). The ratio includes what differs between them and the networks to \
             them, and a disturbance of one machine affects only its contender."
        );
        return Finding::new(Severity::Note, &pair, claim, ONE_MACHINE).of(FindingKind::Relevance);
    }
    let [one, two] = [case.baseline, other].map(|index| &case.contenders[index]);
    // What an experiment sets differently for one build is its question.
    let is_asked = (one.product, one.version) == (two.product, two.version);
    let (severity, kind, remark) = match is_asked {
        true => (
            Severity::Note,
            FindingKind::Declared,
            "; the contest compares these machines",
        ),
        false => (Severity::Doubt, FindingKind::Advantage, ""),
    };
    let remedy = match is_asked {
        true => ONE_MACHINE.to_owned(),
        false => format!(
            "{ONE_MACHINE} If the machines are part of the question, declare them in the experiment: {}.",
            crate::declaration(&case.about, &["R51"])
        ),
    };
    let claim = format!(
        "{place}, and these machines differ in {}{remark}. The ratio includes these differences and those of the networks, and a \
         disturbance of one machine affects only its contender.",
        differences.join("; ")
    );
    let sides = reads.into_iter().zip(pair).map(|(from, contender)| {
        let values: Vec<&str> = from.iter().map(|read| read.value.as_str()).collect();
        Side {
            contender: contender.to_owned(),
            value: values.join(", "),
            from,
        }
    });
    let finding = Finding {
        evidence: sides.collect(),
        ..Finding::new(severity, &pair, claim, &remedy)
    };
    finding.of(kind)
}
