//! Rules about the order-entry workload: requirements of its specification for a run.

use dbduel_audit::Finding;
use dbduel_record::event::Severity;
use dbduel_record::order_entry::{
    PACED_NOPM_PER_WAREHOUSE, ROLLED_BACK_PERCENT, ROLLED_BACK_RANGE_PERCENT,
    SKIPPED_DELIVERIES_MAX_PERCENT,
};
use dbduel_text::{counts, percent};

use super::{OrderCell, OrderEntry};
use crate::classes::{ClassFigures, cell_of};
use crate::rules::Rule;
use crate::rules::run::RunEvidence;
use crate::rules::table::run;

#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    run("order-entry.unaudited", "Results of a derived workload are not results of the audited benchmark.", unaudited),
    run("order-entry.response-time", "The specification counts throughput only within its response-time limits.", response_times),
    run("order-entry.mix", "NOPM rises when the other transactions fall short.", mix),
    run("order-entry.rollbacks", "Intentional rollbacks are part of the work.", rollbacks),
    run("order-entry.skipped-deliveries", "A delivery without an order does almost no work.", skipped_deliveries),
    run("order-entry.scaling", "Keying and think times limit the throughput per warehouse.", scaling),
];

/// Standard deviations by which chance may move a share away from its required value.
const CHANCE: f64 = 2.0;

fn part<'a>(run: &'a RunEvidence<'_>) -> Option<&'a OrderEntry> {
    run.judged.order_entry.as_ref()
}

/// Cells in which something was measured, with the name of their level.
fn cells<'a>(run: &'a RunEvidence<'_>) -> impl Iterator<Item = (&'a str, &'a OrderCell)> {
    let cells = part(run).into_iter().flat_map(|part| &part.cells);
    cells.filter(|cell| cell.new_orders > 0).map(|cell| {
        let label = &run.judged.duels[cell.level].label;
        (label.as_str(), cell)
    })
}

fn classes<'a>(run: &'a RunEvidence<'_>, cell: &OrderCell) -> &'a [ClassFigures] {
    let found = cell_of(&run.judged.classes, cell.level, &cell.contender);
    found.map_or(&[], |found| &found.classes)
}

fn unaudited(run: &RunEvidence<'_>) -> Vec<Finding> {
    let Some(part) = part(run) else {
        return Vec::new();
    };
    let pacing = if part.keying_and_think_times {
        "terminals kept keying and think times"
    } else {
        "keying and think times were off, so the load per warehouse exceeds what the specification allows"
    };
    let claim = format!(
        "This is {}; {pacing}; terminals were {}, transactions came from {}, statements were sent as `{}`, and the \
         client that requested a Delivery also carried it out.",
        part.disclaimer,
        part.terminals,
        match part.mix.as_str() {
            "deck" => "shuffled decks of 23 cards",
            _ => "weighted draws",
        },
        part.protocol
    );
    let remedy = "State this beside every figure.";
    vec![Finding::new(Severity::Note, &[], claim, remedy)]
}

fn response_times(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut nearest: Option<(f64, String)> = None;
    for (label, cell) in cells(run) {
        for class in classes(run, cell) {
            let limit = class.latency_us_p90.value().zip(class.latency_us_p90_max);
            let Some((p90_us, limit_us)) = limit else {
                continue;
            };
            let words = format!(
                "`{}` of `{}` at {label} (90 % quantile {:.3} s, limit {:.0} s)",
                class.class,
                cell.contender,
                p90_us / 1e6,
                limit_us / 1e6
            );
            if p90_us > limit_us {
                let claim = format!("Response-time limit exceeded by {words}.");
                let remedy = "Use fewer clients; the specification excludes such a run.";
                let about = [cell.contender.as_str()];
                found.push(Finding::new(Severity::Doubt, &about, claim, remedy).at(cell.level));
            }
            if nearest
                .as_ref()
                .is_none_or(|(share, _)| p90_us / limit_us > *share)
            {
                nearest = Some((p90_us / limit_us, words));
            }
        }
    }
    if let Some((_, words)) = nearest.filter(|_| found.is_empty()) {
        let claim = format!("All response-time limits were met; the closest was {words}.");
        found.push(Finding::new(Severity::Note, &[], claim, "None."));
    }
    found
}

fn mix(run: &RunEvidence<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut nearest: Option<(f64, String)> = None;
    for (label, cell) in cells(run) {
        let classes = classes(run, cell);
        let ended: u64 = classes.iter().map(|class| class.ok).sum();
        for class in classes {
            let share = class.share_percent;
            let Some(least) = class.share_min_percent.filter(|least| *least > 0.0) else {
                continue;
            };
            let words = format!(
                "`{}` of `{}` at {label} with {share:.2} % (minimum {}{})",
                class.class,
                cell.contender,
                percent::of(least / 100.0),
                if share < least { ", within chance" } else { "" }
            );
            if share + CHANCE * deviation_percent(least, ended) < least {
                let claim = format!(
                    "Mix too low in `{}` of `{}` at {label}: {share:.2} %, minimum {}.",
                    class.class,
                    cell.contender,
                    percent::of(least / 100.0)
                );
                let remedy =
                    "Use the deck, or weights above the minimums; longer slices finish more decks.";
                let about = [cell.contender.as_str()];
                found.push(Finding::new(Severity::Doubt, &about, claim, remedy).at(cell.level));
            }
            if nearest
                .as_ref()
                .is_none_or(|(margin, _)| share / least < *margin)
            {
                nearest = Some((share / least, words));
            }
        }
    }
    if let Some((_, words)) = nearest.filter(|_| found.is_empty()) {
        let claim = format!("The minimum shares of the mix were met; the closest was {words}.");
        found.push(Finding::new(Severity::Note, &[], claim, "None."));
    }
    found
}

fn rollbacks(run: &RunEvidence<'_>) -> Vec<Finding> {
    let counted = cells(run).filter_map(|(label, cell)| Some((label, cell, cell.rolled_back?)));
    counted
        .map(|(label, cell, rolled_back)| {
            let share = 100.0 * rolled_back as f64 / cell.new_orders as f64;
            let (low, high) = ROLLED_BACK_RANGE_PERCENT;
            let chance = CHANCE * deviation_percent(ROLLED_BACK_PERCENT, cell.new_orders);
            let (severity, words) = if (low..=high).contains(&share) {
                (Severity::Note, "")
            } else if (low - chance..=high + chance).contains(&share) {
                (Severity::Note, "; within chance for this number")
            } else {
                (Severity::Doubt, "; more than chance explains")
            };
            let claim = format!(
                "`{}` rolled back {} of its {} New-Orders at {label}, where the specification has {low} to \
                 {high} %{words}.",
                cell.contender,
                percent::of(share / 100.0),
                counts::of(cell.new_orders)
            );
            let remedy = "Check for failed rollbacks or missing New-Orders; clients roll back one in a hundred.";
            Finding::new(severity, &[&cell.contender], claim, remedy).at(cell.level)
        })
        .collect()
}

fn skipped_deliveries(run: &RunEvidence<'_>) -> Vec<Finding> {
    let deliveries = part(run).into_iter().flat_map(|part| &part.deliveries);
    let skipping = deliveries.filter(|found| {
        let share = 100.0 * found.with_skips as f64 / (found.all as f64).max(1.0);
        found.with_skips > 1 && share > SKIPPED_DELIVERIES_MAX_PERCENT
    });
    skipping
        .map(|found| {
            let claim = format!(
                "{} of {} deliveries of `{}` found a district without an undelivered order; at most \
                 {} may.",
                counts::of(found.with_skips),
                counts::of(found.all),
                found.contender,
                percent::of(SKIPPED_DELIVERIES_MAX_PERCENT / 100.0)
            );
            let remedy = "Reload the tables, or give New-Order a larger share.";
            Finding::new(Severity::Doubt, &[&found.contender], claim, remedy)
        })
        .collect()
}

fn scaling(run: &RunEvidence<'_>) -> Vec<Finding> {
    let Some(part) = part(run).filter(|part| part.keying_and_think_times) else {
        return Vec::new();
    };
    let (low, high) = PACED_NOPM_PER_WAREHOUSE;
    let warehouses = part.warehouses.max(1) as f64;
    let outside = cells(run).filter_map(|(label, cell)| {
        let each = cell.nopm.value()? / warehouses;
        (!(low..=high).contains(&each)).then_some((label, cell, each))
    });
    outside
        .map(|(label, cell, each)| {
            let claim = format!(
                "`{}` took {each:.2} New-Orders per minute and warehouse at {label}; with keying and think times a \
                 database of the right size takes {low} to {high}.",
                cell.contender
            );
            let remedy = "Use ten clients per warehouse, and as many warehouses as the server can serve.";
            Finding::new(Severity::Doubt, &[&cell.contender], claim, remedy).at(cell.level)
        })
        .collect()
}

/// Standard deviation of a share of that many independent draws, percent.
fn deviation_percent(percent: f64, draws: u64) -> f64 {
    let share = percent / 100.0;
    100.0 * (share * (1.0 - share) / (draws as f64).max(1.0)).sqrt()
}
