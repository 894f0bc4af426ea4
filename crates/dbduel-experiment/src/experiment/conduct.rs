//! How to run and judge the contest: `about`, `[schedule]`, `[limits]`, `[injection]` and `[waivers]`.

use std::ops::{Range, RangeInclusive};

use dbduel_audit::codes::{check_subject, check_waiver};
use dbduel_record::plan::InjectedStalls;
use dbduel_text::percent;

use super::document::{Located, Report, Section, boolean, describe, integer, string};
use super::value::{duration_bounds, duration_within, share_within, size};
use super::{InjectedStops, Injection, Limits, Schedule};

/// Limit of the subjects of a contest, and of the characters of each; variables of servers have at most 80.
pub(super) const SUBJECTS_MAX: usize = 100;
const SUBJECT_CHARACTERS_MAX: usize = 200;
/// Range of epochs: three before the first evaluation, at most a hundred; one is no series.
const EPOCHS: RangeInclusive<i64> = 3..=100;
/// Range of the share of its slices that a handicapped server may be stopped.
pub const STOPPED_SHARE: Range<f64> = 0.001..0.9;
/// Time from one stop of a handicapped server to the next, seconds.
pub const STOP_PERIOD_S: RangeInclusive<f64> = 0.005..=1.0;
/// Length of a stall, seconds. A turn waits for its transactions in flight for longer.
const STALL_S: RangeInclusive<f64> = 0.05..=10.0;
/// Time awake before a stall, seconds.
const EVERY_S: RangeInclusive<f64> = 0.1..=600.0;

pub(super) fn read_schedule(section: &Section<'_, '_>) -> Schedule {
    let schedule = Schedule {
        slice: section.get("slice", |value| duration_within(value, 0.05, 3600.0)),
        guard: section.get("guard", |value| duration_within(value, 0.0, 600.0)),
        jitter: section
            .get("jitter", |value| share_within(value, 0.0, 0.5))
            .map(|jitter| jitter.value),
        warm_up: section.get("warm_up", |value| duration_within(value, 0.0, 86_400.0)),
        epochs: section.get("epochs", |value| {
            integer(value, EPOCHS).map(|epochs| epochs as u32)
        }),
    };
    section.refuse_unknown_keys();
    schedule
}

pub(super) fn read_limits(section: &Section<'_, '_>) -> Limits {
    let get = |key| {
        section
            .get(key, |value| duration_within(value, 0.1, 86_400.0))
            .map(|limit| limit.value)
    };
    let limits = Limits {
        server_start: get("server_start"),
        server_stop: get("server_stop"),
        statement: get("statement"),
        dataset: get("dataset"),
        free_disk: section.get("free_disk", size).map(|size| size.value),
        prove: section.get("prove", boolean),
    };
    section.refuse_unknown_keys();
    limits
}

pub(super) fn read_injection(report: &Report<'_>, section: &Section<'_, '_>) -> Option<Injection> {
    let contender = section.get("contender", string);
    let stopped = section.get("stopped", |value| {
        share_within(value, STOPPED_SHARE.start, STOPPED_SHARE.end)
    });
    let period = section.get("period", |value| {
        duration_within(value, *STOP_PERIOD_S.start(), *STOP_PERIOD_S.end())
    });
    let stall = section.get("stall", |value| {
        duration_within(value, *STALL_S.start(), *STALL_S.end())
    });
    let every = section.get("every", |value| {
        duration_bounds(value, *EVERY_S.start(), *EVERY_S.end())
    });
    let has = |key| section.entries().any(|(name, _)| name.value == key);
    let is_complete = has("contender")
        && match (has("stopped"), has("stall")) {
            (true, false) => !has("every"),
            (false, true) => has("every") && !has("period"),
            _ => false,
        };
    if section.refuse_unknown_keys() && !is_complete {
        report.add(
            &section.span(),
            "[injection] needs `contender`, whose server is stopped, and either `stopped`, the share of its slices, optionally with \
             `period`, or `stall` and `every`, the lengths of a stop and of the time awake before it",
        );
    }
    let stops = match (stopped, stall, every) {
        (Some(share), ..) => InjectedStops::Pulses {
            share: share.value,
            period: period.map(|period| period.value),
        },
        (None, Some(stall), Some(every)) => {
            let stalls = InjectedStalls {
                stall_s: stall.value.as_secs_f64(),
                every_s: every.value.map(|bound| bound.as_secs_f64()),
            };
            if let Err(message) = check_stalls(&stalls) {
                report.add(&stall.span, format!("`stall` in [injection]: {message}"));
            }
            InjectedStops::Stalls(stalls)
        }
        _ => return None,
    };
    Some(Injection {
        contender: contender?,
        stops,
    })
}

/// Refuses stalls of an ineffective length, interval or share.
///
/// # Errors
/// The expected values.
pub fn check_stalls(stalls: &InjectedStalls) -> Result<(), String> {
    let InjectedStalls { stall_s, every_s } = stalls;
    if !STALL_S.contains(stall_s) {
        return Err(format!(
            "expected stalls of {} s to {} s, found {stall_s} s",
            STALL_S.start(),
            STALL_S.end()
        ));
    }
    if !every_s.iter().all(|bound| EVERY_S.contains(bound)) || !every_s.is_sorted() {
        let [least, most] = every_s;
        return Err(format!(
            "expected stalls every {} s to {} s, found {least} s to {most} s",
            EVERY_S.start(),
            EVERY_S.end()
        ));
    }
    let share = stalls.stopped_share();
    match STOPPED_SHARE.contains(&share) {
        true => Ok(()),
        false => Err(format!(
            "expected stalls for a share of the time from {} to less than {}, found {stalls}, which is {}",
            percent::of(STOPPED_SHARE.start),
            percent::of(STOPPED_SHARE.end),
            percent::of(share)
        )),
    }
}

/// The names of `about`, each known to the audit.
pub(super) fn read_about(report: &Report<'_>, root: &Section<'_, '_>) -> Vec<Located<String>> {
    let Some(value) = root.value("about") else {
        return Vec::new();
    };
    let Some(names) = value.get_ref().as_array().filter(|names| !names.is_empty()) else {
        let message = format!(
            "`about` is a list of what the contest is about, such as [\"innodb_doublewrite\"] or [\"D3\"]; found {}",
            describe(value.get_ref())
        );
        report.add(&value.span(), message);
        return Vec::new();
    };
    if names.len() > SUBJECTS_MAX {
        let message = format!(
            "`about` has {} names, at most {SUBJECTS_MAX} are possible; name classes such as \"D3\"",
            names.len()
        );
        report.add(&value.span(), message);
        return Vec::new();
    }
    let read = |entry: &toml::Spanned<toml::de::DeValue<'_>>| {
        let name = string(entry.get_ref()).and_then(|name| {
            match name.chars().count() > SUBJECT_CHARACTERS_MAX {
                true => Err(format!(
                    "{} is too long for a name",
                    describe(entry.get_ref())
                )),
                false => check_subject(&name).map(|()| name),
            }
        });
        match name {
            Ok(value) => Some(Located {
                value,
                span: entry.span(),
            }),
            Err(message) => {
                report.add(&entry.span(), format!("`about`: {message}"));
                None
            }
        }
    };
    names.iter().filter_map(read).collect()
}

pub(super) fn read_waivers(
    report: &Report<'_>,
    section: &Section<'_, '_>,
) -> Vec<(Located<String>, Located<String>)> {
    let mut waivers = Vec::new();
    for (class, value) in section.entries() {
        if let Err(message) = check_waiver(&class.value) {
            report.add(&class.span, message);
        }
        match string(value.get_ref()) {
            Ok(reason) if !reason.trim().is_empty() => {
                waivers.push((
                    class,
                    Located {
                        value: reason,
                        span: value.span(),
                    },
                ));
            }
            Ok(_) => report.add(
                &value.span(),
                format!(
                    "the waiver of `{}` needs a reason, which the report prints",
                    class.value
                ),
            ),
            Err(message) => report.add(
                &value.span(),
                format!("waiver of `{}`: {message}", class.value),
            ),
        }
    }
    waivers
}
