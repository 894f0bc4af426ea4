//! Optional parts of an experiment: planned restarts, a known handicap, confinement, an objective, a proof of
//! durability.

use dbduel_machine::host;
use dbduel_powercut::mount;
use dbduel_record::plan::{Contender, Injection, Schedule, Workload};
use dbduel_server::{Meaning, ServerName};

use super::Surroundings;
use super::schedule::budget_for;
use crate::experiment::document::{Located, Report};
use crate::experiment::{self, Experiment, InjectedStops};
use crate::power_cuts;

/// Least length of a slice as a multiple of the objective's limit.
const SLICE_PER_OBJECTIVE: f64 = 5.0;
/// Time from one stop of a handicapped server to the next, seconds: many in the shortest slice.
const INJECTION_PERIOD_S: f64 = 0.05;

/// Finds the contender, whose server dbduel must start.
pub(super) fn complete_injection(
    report: &Report<'_>,
    written: &experiment::Injection,
    contenders: &[Contender],
) -> Option<Injection> {
    let name = &written.contender;
    let Some(contender) = contenders.iter().position(|one| one.name == name.value) else {
        report.add(
            &name.span,
            format!("there is no contender `{}`", name.value),
        );
        return None;
    };
    if let Ok(server) = ServerName::parse(&contenders[contender].server) {
        let message = match server.meaning {
            Meaning::Running(_) => "is a running server, which dbduel must not stop",
            Meaning::InProcess => "runs in the load process, which must not stop",
            Meaning::Provided { .. } => "",
        };
        if !message.is_empty() {
            report.add(&name.span, format!("`{}` {message}", name.value));
        }
    }
    Some(match written.stops {
        InjectedStops::Pulses { share, period } => Injection {
            contender,
            stopped_share: share,
            period_s: period.map_or(INJECTION_PERIOD_S, |period| period.as_secs_f64()),
            stalls: None,
        },
        InjectedStops::Stalls(stalls) => Injection::of_stalls(contender, stalls),
    })
}

/// Refuses an impossible proof of durability before anything is started.
pub(super) fn check_proof(
    report: &Report<'_>,
    experiment: &Experiment,
    workload: &Workload,
    contenders: &[Contender],
    surroundings: &Surroundings,
) {
    let written = experiment.limits.prove.as_ref();
    let Some(written) = written.filter(|prove| prove.value) else {
        return;
    };
    if experiment.suite.is_some() {
        let message = "`prove` needs one workload, and a suite has several; prove the servers' durability in a contest of its own";
        report.add(&written.span, message);
    } else if let Err(error) = power_cuts::check_cuttable(workload, contenders) {
        report.add(&written.span, format!("`prove` is not possible: {error}"));
    } else if surroundings.runs_here
        && let Err(error) = mount::check()
    {
        report.add(&written.span, format!("`prove` is not possible: {error}"));
    }
}

/// Error for two contenders on one running server.
#[must_use]
pub fn same_server(one: &str, other: &str) -> String {
    format!("`{one}` and `{other}` are the same running server; each contender needs its own")
}

/// Refuses contenders with the same address of a running server: each would work on the other's data.
pub(super) fn check_running_once(
    report: &Report<'_>,
    experiment: &Experiment,
    contenders: &[Contender],
) {
    let address = |contender: &Contender| match ServerName::parse(&contender.server).ok()?.meaning {
        Meaning::Running(address) => Some(address.place),
        Meaning::Provided { .. } | Meaning::InProcess => None,
    };
    for (index, contender) in contenders.iter().enumerate() {
        let Some(own) = address(contender) else {
            continue;
        };
        let earlier = contenders[..index].iter();
        if let Some(same) = earlier
            .clone()
            .find(|one| address(one).is_some_and(|other| other.is_same_place(&own)))
        {
            let written = &experiment.contenders[index];
            report.add(
                &written.server_span(),
                same_server(&same.name, &contender.name),
            );
        }
    }
}

/// The listed processors, which must exist where the contest runs; empty without confinement.
pub(super) fn processors(
    report: &Report<'_>,
    written: &Option<Located<Vec<u32>>>,
    surroundings: &Surroundings,
) -> Vec<u32> {
    let Some(Located { value, span }) = written else {
        return Vec::new();
    };
    if surroundings.runs_here
        && let Err(missing) = host::find_processors(value, &surroundings.processors)
    {
        report.add(span, missing.to_string());
    }
    value.clone()
}

/// Refuses processors and limits for servers that dbduel does not start.
pub(super) fn check_confinement(
    report: &Report<'_>,
    experiment: &Experiment,
    contenders: &[Contender],
) {
    let Some(limit) = &experiment.load.server_io else {
        return;
    };
    let running = contenders.iter().find(|contender| {
        ServerName::parse(&contender.server)
            .is_ok_and(|server| !matches!(server.meaning, Meaning::Provided { .. }))
    });
    if let Some(running) = running {
        let message = format!(
            "`{}` is not a server that dbduel starts, so `server_io` cannot limit it",
            running.name
        );
        report.add(&limit.span, message);
    }
}

/// Refuses an objective that slices are too short for: transactions due in the last moments of a slice have no known
/// latency.
pub(super) fn check_objective(report: &Report<'_>, experiment: &Experiment, schedule: &Schedule) {
    let Some(objective) = &experiment.load.objective else {
        return;
    };
    let needed_s = SLICE_PER_OBJECTIVE * objective.value.latency.as_secs_f64();
    if schedule.slice_s < needed_s {
        let message = format!(
            "an objective of {} s needs slices of {needed_s} s or more, but they have {} s; set a longer `slice` in \
             [schedule] or a larger budget",
            objective.value.latency.as_secs_f64(),
            schedule.slice_s
        );
        report.add(&objective.span, message);
    }
}

/// Refuses epochs without room for a block, and epochs of servers that dbduel does not start.
pub(super) fn check_epochs(
    report: &Report<'_>,
    experiment: &Experiment,
    schedule: &Schedule,
    contenders: usize,
    levels: usize,
) {
    let (Some(written), Some(epochs)) = (&experiment.schedule.epochs, schedule.epochs) else {
        return;
    };
    if epochs.blocks == 0 {
        let enough_s = budget_for(schedule, contenders, levels, epochs.count as usize);
        let message = format!(
            "the budget of {:.0} s holds less than one block per load level in each of {} epochs: use a budget of {:.0} s or \
             more, fewer epochs, or shorter slices",
            schedule.budget_s,
            epochs.count,
            enough_s.ceil()
        );
        report.add(&written.span, message);
    }
    for contender in &experiment.contenders {
        if let Some(server) = &contender.server
            && let Ok(name) = ServerName::parse(&server.value)
            && matches!(name.meaning, Meaning::Running(_))
        {
            let message = format!(
                "`{}` is a running server, which dbduel cannot restart; remove `epochs`",
                contender.name.value
            );
            report.add(&written.span, message);
        }
    }
}
