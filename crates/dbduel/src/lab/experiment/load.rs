//! `[load]`: clients, arrival, and the objective that every level is held against.

use std::collections::BTreeSet;

use toml::de::DeValue;

use super::document::{Report, Section, describe, integer, string};
use super::value::{duration, integers, io_limit, positive};
use super::{ArrivalKind, Load, Objective, quantity};

/// Most clients of one load level.
const CLIENTS_MAX: i64 = 100_000;

pub(super) fn read_load(report: &Report<'_>, section: &Section<'_, '_>) -> Load {
    let load = Load {
        clients: section.get("clients", clients),
        arrival: section.get("arrival", arrival),
        rate: section.get("rate", rates),
        objective: section.get("objective", objective),
        think_time: section.get("think_time", duration),
        threads: section
            .get("threads", |value| integer(value, 1..=1024))
            .map(|threads| threads.value as u32),
        cores: section
            .get("cores", |value| integers(value, 0..=4095))
            .map(|cores| cores.value),
        server_cores: section
            .get("server_cores", |value| integers(value, 0..=4095))
            .map(|cores| cores.value),
        server_io: section.get("server_io", io_limit),
    };
    section.refuse_unknown_keys();
    let is_open = load
        .arrival
        .as_ref()
        .is_some_and(|arrival| arrival.value != ArrivalKind::Closed);
    match (&load.arrival, &load.rate) {
        (Some(arrival), None) if is_open => report.add(&arrival.span, "this arrival needs `rate`, in transactions per second"),
        (_, Some(rate)) if !is_open => report.add(&rate.span, "`rate` goes with arrival \"constant\" or \"poisson\"; closed clients go as fast as the server lets them"),
        _ => {}
    }
    if let (Some(think_time), true) = (&load.think_time, is_open) {
        report.add(
            &think_time.span,
            "`think_time` goes with arrival \"closed\"",
        );
    }
    load
}

/// One rate, or several in ascending order.
fn rates(value: &DeValue<'_>) -> Result<Vec<f64>, String> {
    let one = |value| positive(value, "transactions per second");
    let Some(list) = value.as_array() else {
        return Ok(vec![one(value)?]);
    };
    let rates: Vec<f64> = list
        .iter()
        .map(|entry| one(entry.get_ref()))
        .collect::<Result<_, _>>()?;
    if rates.is_empty() || !rates.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err("expected rates in ascending order, at least one".to_owned());
    }
    Ok(rates)
}

fn objective(value: &DeValue<'_>) -> Result<Objective, String> {
    let text = string(value)?;
    let expected = || format!("expected an objective such as \"p99 < 20 ms\", found {text:?}");
    let (quantile, limit) = text.split_once('<').ok_or_else(expected)?;
    let percent = quantile.trim().strip_prefix('p').ok_or_else(expected)?;
    let percent: f64 = percent.parse().map_err(|_| expected())?;
    let latency = quantity::duration(limit)?;
    if !(1.0..100.0).contains(&percent) || latency.is_zero() {
        return Err(expected());
    }
    Ok(Objective {
        share: percent / 100.0,
        latency,
    })
}

fn clients(value: &DeValue<'_>) -> Result<Vec<u32>, String> {
    let levels = match value {
        DeValue::Integer(_) => vec![integer(value, 1..=CLIENTS_MAX)? as u32],
        _ => integers(value, 1..=CLIENTS_MAX)?,
    };
    if levels.is_empty() {
        return Err("expected at least one number of clients".to_owned());
    }
    let distinct: BTreeSet<u32> = levels.iter().copied().collect();
    if distinct.len() != levels.len() {
        return Err("a number of clients is listed twice".to_owned());
    }
    Ok(levels)
}

fn arrival(value: &DeValue<'_>) -> Result<ArrivalKind, String> {
    match value.as_str() {
        Some("closed") => Ok(ArrivalKind::Closed),
        Some("constant") => Ok(ArrivalKind::Constant),
        Some("poisson") => Ok(ArrivalKind::Poisson),
        _ => Err(format!(
            "expected \"closed\", \"constant\" or \"poisson\", found {}",
            describe(value)
        )),
    }
}
