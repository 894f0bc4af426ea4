//! One duel on several machines as text: pooled mean, spread between machines, and each machine by itself.

use std::fmt::Write as _;

use dbduel_judge::records::pool::{
    MACHINES_BETWEEN, Pool, PooledComparison, PooledMachine, PooledQuantity,
};

use super::interval_scale::IntervalScale;
use super::words::{self, RatioUnit};
use super::{Options, wrap};
use dbduel_text::table::{columns, row};

/// Characters shown of each machine's identity.
const NAME_CHARACTERS: usize = 24;

/// All comparisons, then the machines.
#[must_use]
pub fn pool(pool: &Pool, options: Options) -> String {
    let records = pool.machines.iter().map(|machine| machine.records.len());
    let mut text = format!(
        "{}\nAgainst {}: {} on {}\n",
        pool.question,
        pool.baseline,
        words::things(records.sum::<usize>() as u64, "record"),
        words::things(pool.machines.len() as u64, "machine"),
    );
    for comparison in &pool.comparisons {
        let _ = write!(text, "\n{} at {}\n", comparison.contender, comparison.level);
        text.push_str(&quantities(comparison));
        for quantity in &comparison.quantities {
            let is_shown = quantity.quantity == "throughput" || quantity.disagreement.is_some();
            if is_shown && !quantity.machines.is_empty() {
                text.push_str(&by_machine(pool, quantity));
            }
        }
    }
    text.push_str("\nMachines\n");
    text.push_str(&machines(pool));
    let notes = pool.too_few.iter().cloned();
    let left_out = pool.left_out.iter().map(|one| format!("left out: {one}"));
    for note in notes.chain(left_out) {
        text.push('\n');
        for line in wrap(&note, options.width, 0, 0) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// A line for each quantity that is pooled; the others are named with the reason.
fn quantities(comparison: &PooledComparison) -> String {
    let all = || comparison.quantities.iter();
    let unit = RatioUnit::of(all().map(|one| &one.ratio));
    let mut rows = vec![row(&[
        "",
        "mean of such machines",
        "",
        "τ between machines",
        "I²",
        "one more machine",
    ])];
    rows.extend(all().filter(|one| one.ratio.value().is_some()).map(|one| {
        let dash = || "–".to_owned();
        vec![
            one.quantity.clone(),
            format!("{} ({})", unit.value(&one.ratio), unit.doubt(&one.ratio)),
            one.answer.to_owned(),
            one.between_sd.map_or_else(dash, |sd| unit.deviation(sd)),
            one.between_share.map_or_else(dash, words::share),
            one.next_machine.map_or_else(dash, |[low, high]| {
                format!("{} to {}", unit.write(low), unit.write(high))
            }),
        ]
    }));
    let mut text = match rows.len() {
        1 => String::new(),
        _ => columns(&rows, &[1, 2]),
    };
    // Those that share a reason are named together.
    let mut others: Vec<(String, Vec<&str>)> = Vec::new();
    for one in all().filter(|one| one.ratio.value().is_none()) {
        let why = unit.doubt(&one.ratio);
        match others.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(&one.quantity),
            None => others.push((why, vec![&one.quantity])),
        }
    }
    for (why, names) in others {
        let _ = writeln!(text, "not pooled, {why}: {}", names.join(", "));
    }
    text
}

/// One quantity on each machine, drawn on a common scale.
fn by_machine(pool: &Pool, quantity: &PooledQuantity) -> String {
    let figures = || quantity.machines.iter().map(|one| &one.ratio);
    let ends = figures().flat_map(words::ratio_values);
    let scale = IntervalScale::of(ends.filter(|end| end.is_finite() && *end > 0.0));
    let unit = RatioUnit::of(figures());
    let rows: Vec<Vec<String>> = quantity
        .machines
        .iter()
        .map(|one| {
            vec![
                short_name(&pool.machines[one.machine]),
                scale.line(&one.ratio),
                unit.value(&one.ratio),
                unit.short_interval(&one.ratio),
                words::things(one.records as u64, "record"),
            ]
        })
        .collect();
    let mut text = format!(
        "\n{} by machine\n{}",
        quantity.quantity,
        columns(&rows, &[1, 3])
    );
    match words::starred(figures()) {
        "" => {}
        legend => {
            let _ = writeln!(text, "{legend}");
        }
    }
    if let Some(disagreement) = &quantity.disagreement {
        let _ = writeln!(text, "Machines disagree: {disagreement}.");
    }
    text
}

fn machines(pool: &Pool) -> String {
    let rows: Vec<Vec<String>> = pool
        .machines
        .iter()
        .map(|machine| {
            vec![
                short_name(machine),
                machine.processors.clone(),
                machine.memory_bytes.map_or_else(String::new, words::bytes),
                machine.records.join(" "),
            ]
        })
        .collect();
    columns(&rows, &[1, 3])
}

fn short_name(machine: &PooledMachine) -> String {
    let each = machine.name.split(MACHINES_BETWEEN);
    let each = each.map(|name| name.chars().take(NAME_CHARACTERS).collect::<String>());
    each.collect::<Vec<String>>().join(MACHINES_BETWEEN)
}
