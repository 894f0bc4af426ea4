//! `[load]`: clients, arrival, and the objective of every level.

use std::collections::BTreeSet;

use toml::de::DeValue;

use super::document::{Report, Section, describe, integer, string};
use super::value::{busy_poll, duration, integers, io_limit, positive, share_within};
use super::{ArrivalKind, Load, Objective, Rates, Search, quantity};

/// Limit of clients of one load level.
pub const CLIENTS_MAX: i64 = 100_000;

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
        busy_poll: section.get("busy_poll", busy_poll).map(|time| time.value),
        cores: section.get("cores", |value| integers(value, 0..=4095)),
        server_cores: section.get("server_cores", |value| integers(value, 0..=4095)),
        server_io: section.get("server_io", io_limit),
    };
    section.refuse_unknown_keys();
    check_search(report, &load);
    let is_open = load
        .arrival
        .as_ref()
        .is_some_and(|arrival| arrival.value != ArrivalKind::Closed);
    match (&load.arrival, &load.rate) {
        (Some(arrival), None) if is_open => report.add(&arrival.span, "this arrival needs `rate`, in transactions per second"),
        (_, Some(rate)) if !is_open => report.add(&rate.span, "`rate` goes with arrival \"constant\" or \"poisson\"; closed clients send as fast as the server answers"),
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

/// A search needs an objective, and varies only the rate.
fn check_search(report: &Report<'_>, load: &Load) {
    let Some(rate) = load
        .rate
        .as_ref()
        .filter(|rate| rate.value == Rates::Searched)
    else {
        return;
    };
    if load.objective.is_none() {
        let message = "a search for the highest rate needs an `objective`, such as \"p99 < 20 ms\"";
        report.add(&rate.span, message);
    }
    if let Some(clients) = load
        .clients
        .as_ref()
        .filter(|clients| clients.value.len() > 1)
    {
        let message = "a search for the highest rate goes with one number of clients";
        report.add(&clients.span, message);
    }
}

pub(super) fn read_search(report: &Report<'_>, section: &Section<'_, '_>, load: &Load) -> Search {
    let search = Search {
        from: section
            .get("from", |value| positive(value, "transactions per second"))
            .map(|from| from.value),
        precision: section
            .get("precision", |value| share_within(value, 0.005, 1.0))
            .map(|precision| precision.value),
        rates: section
            .get("rates", |value| integer(value, 3..=100))
            .map(|rates| rates.value as u32),
    };
    section.refuse_unknown_keys();
    let is_search = load
        .rate
        .as_ref()
        .is_some_and(|rate| rate.value == Rates::Searched);
    if !is_search {
        report.add(
            &section.span(),
            "[search] goes with `rate = \"search\"` in [load]",
        );
    }
    search
}

/// One rate, several in ascending order, or a search for the highest.
fn rates(value: &DeValue<'_>) -> Result<Rates, String> {
    match value.as_str() {
        Some("search") => Ok(Rates::Searched),
        Some(other) => Err(format!("expected numbers or \"search\", found {other:?}")),
        None => these_rates(value).map(Rates::These),
    }
}

fn these_rates(value: &DeValue<'_>) -> Result<Vec<f64>, String> {
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
        DeValue::Array(_) => integers(value, 1..=CLIENTS_MAX)?,
        _ => {
            let found = describe(value);
            return Err(format!(
                "expected a number of clients or a list of them, found {found}"
            ));
        }
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
