//! Status and agents of a fleet as text.

use std::fmt::Write as _;

use dbduel_report::words;
use dbduel_text::counts;
use dbduel_text::table::{columns, row};

use dbduel_fleet::agent::AgentState;
use dbduel_fleet::clock::ClockOffset;
use dbduel_fleet::status::{CellFailure, FleetStatus};

/// Most failures shown with their reasons.
const FAILURES_MAX: usize = 20;
/// Most lines shown of a reason.
const REASON_LINES: usize = 3;

/// Status of a fleet as text.
pub(super) fn status(status: &FleetStatus) -> String {
    let mut text = format!(
        "Fleet at {} (nats-server {}, protocol {})\n\n",
        status.url, status.server, status.protocol
    );
    let mut rows = vec![row(&[
        "campaign",
        "cells",
        "waiting",
        "running",
        "done",
        "failed",
        "done twice",
    ])];
    for campaign in &status.campaigns {
        let counted = [
            campaign.cells,
            campaign.waiting,
            campaign.running,
            campaign.done,
            campaign.failed,
            campaign.repeated,
        ];
        let mut cells = vec![campaign.name.clone()];
        cells.extend(counted.map(counts::of));
        rows.push(cells);
    }
    match status.campaigns.is_empty() {
        true => text.push_str("no cells; `dbduel fleet submit EXPERIMENT` adds them\n"),
        false => text.push_str(&columns(&rows, &[])),
    }
    if let Some(left_s) = status.left_s {
        let _ = writeln!(text, "\nabout {} left", words::duration(left_s));
    }
    if status.not_queued > 0 {
        let _ = writeln!(
            text,
            "\n{} with neither a result nor a place in the queue: a submission was interrupted; \
             submit the same experiments again",
            counts::things(status.not_queued, "cell")
        );
    }
    text.push('\n');
    let mut rows = vec![row(&["agent", "state", "for", "delivered", "cell"])];
    rows.extend(status.agents.iter().map(working));
    match status.agents.is_empty() {
        true => {
            text.push_str("no agent answers; start some with `dbduel agent --nats URL --work`\n");
        }
        false => text.push_str(&columns(&rows, &[1, 4])),
    }
    for agent in &status.agents {
        if let Some(trouble) = &agent.trouble {
            let _ = writeln!(text, "\n{}: {trouble}", agent.name);
        }
    }
    failures(&mut text, &status.failures);
    if !status.unreadable.is_empty() {
        text.push_str(
            "\nEntries that cannot be parsed; remove them with `nats kv del dbduel-fleet KEY`\n",
        );
    }
    for entry in &status.unreadable {
        let _ = writeln!(text, "{entry}");
    }
    text
}

fn working(agent: &AgentState) -> Vec<String> {
    let (state, passed, cell) = match &agent.cell {
        Some(cell) => (
            cell.phase.as_str(),
            words::duration(cell.for_s),
            format!("{} {}", cell.entry.short(), cell.entry.name()),
        ),
        None if agent.works => ("idle", String::new(), String::new()),
        None => ("takes no cells", String::new(), String::new()),
    };
    vec![
        agent.name.clone(),
        state.to_owned(),
        passed,
        counts::of(agent.delivered),
        cell,
    ]
}

fn failures(text: &mut String, failures: &[CellFailure]) {
    if failures.is_empty() {
        return;
    }
    text.push_str("\nFailures\n");
    for failure in failures.iter().take(FAILURES_MAX) {
        let _ = writeln!(
            text,
            "{} {}, {} on {}",
            failure.cell.short(),
            failure.cell.name(),
            if failure.is_final {
                "failed"
            } else {
                "will be retried, failed"
            },
            failure.agent
        );
        // The end says why.
        let lines: Vec<&str> = failure.why.lines().collect();
        for line in &lines[lines.len().saturating_sub(REASON_LINES)..] {
            let _ = writeln!(text, "    {line}");
        }
    }
    if failures.len() > FAILURES_MAX {
        let _ = writeln!(
            text,
            "and {} more; --json has all",
            failures.len() - FAILURES_MAX
        );
    }
}

/// The agents of a fleet.
pub(super) fn agents(agents: &[AgentState], clocks: &[Option<ClockOffset>]) -> String {
    if agents.is_empty() {
        return "no agent answers; start some with `dbduel agent --nats URL`\n".to_owned();
    }
    let mut rows = vec![row(&[
        "agent", "dbduel", "protocol", "cpus", "memory", "kernel", "clock", "offers",
    ])];
    for (agent, clock) in agents.iter().zip(clocks) {
        rows.push(vec![
            agent.name.clone(),
            agent.dbduel.clone(),
            agent.protocol.to_string(),
            agent.cpus.map(|cpus| cpus.to_string()).unwrap_or_default(),
            agent.memory_bytes.map(words::bytes).unwrap_or_default(),
            agent.kernel.clone().unwrap_or_default(),
            clock.map(clock_text).unwrap_or_default(),
            offered(agent),
        ]);
    }
    columns(&rows, &[1, 5, 7])
}

fn offered(agent: &AgentState) -> String {
    match (agent.works, agent.loads, agent.serves, &agent.drives_for) {
        (true, ..) => "runs cells".to_owned(),
        (_, true, _, Some(contest)) => format!("load, drives {contest}"),
        (_, true, _, None) => "load".to_owned(),
        (_, _, true, Some(contest)) => format!("servers, runs those of {contest}"),
        (_, _, true, None) => "servers".to_owned(),
        _ => "nothing".to_owned(),
    }
}

fn clock_text(clock: ClockOffset) -> String {
    format!("{:+.0} ± {:.0} µs", clock.offset_us, clock.uncertainty_us)
}
