//! Load levels: clients × rates.

use dbduel_record::plan::{Arrival, LoadLevel};

use super::workload::Asked;
use crate::experiment::document::Report;
use crate::experiment::{self, ArrivalKind, Rates};

/// Limit of load levels of one contest.
pub(super) const LEVELS_MAX: usize = 100;

/// Default number of clients.
pub(super) const CLIENTS: u32 = 16;

/// `[load]` takes precedence over the workload's own configuration.
pub(super) fn complete_levels(
    report: &Report<'_>,
    load: &experiment::Load,
    asked: &Asked,
    first_rate: f64,
) -> Vec<LoadLevel> {
    let rates = match load.rate.as_ref().map(|rates| &rates.value) {
        None => vec![0.0],
        Some(Rates::These(rates)) => rates.clone(),
        Some(Rates::Searched) => vec![first_rate],
    };
    let think_ms = think_ms(load);
    let arrival = |per_second: f64| match load.arrival.as_ref().map(|arrival| arrival.value) {
        None | Some(ArrivalKind::Closed) => Arrival::Closed { think_ms },
        Some(ArrivalKind::Constant) => Arrival::Constant { per_second },
        Some(ArrivalKind::Poisson) => Arrival::Poisson { per_second },
    };
    let clients = load.clients.as_ref().map_or_else(
        || vec![asked.clients.unwrap_or(CLIENTS)],
        |clients| clients.value.clone(),
    );
    let level = |clients: u32, rate: f64| LoadLevel {
        clients,
        arrival: match asked.rate_each {
            Some(each) if load.arrival.is_none() && load.think_time.is_none() => Arrival::Poisson {
                per_second: each * f64::from(clients),
            },
            _ => arrival(rate),
        },
        cell: None,
    };
    let count = clients.len().saturating_mul(rates.len());
    if count > LEVELS_MAX {
        let span = match (&load.clients, &load.rate) {
            (Some(clients), _) => clients.span.clone(),
            (None, Some(rates)) => rates.span.clone(),
            (None, None) => 0..0,
        };
        let message = format!(
            "clients and rates make {count} load levels, at most {LEVELS_MAX} can be in one contest; list fewer"
        );
        report.add(&span, message);
    }
    clients
        .into_iter()
        .flat_map(|clients| rates.iter().map(move |&rate| (clients, rate)))
        .map(|(clients, rate)| level(clients, rate))
        .take(LEVELS_MAX)
        .collect()
}

/// Pause of a client between two transactions of a closed arrival, milliseconds.
pub(super) fn think_ms(load: &experiment::Load) -> f64 {
    let think_time = load.think_time.as_ref();
    think_time.map_or(0.0, |think| think.value.as_secs_f64() * 1e3)
}
