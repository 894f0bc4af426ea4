//! Bounds of the numbers in a record. It may come from elsewhere, and readers add its numbers up and convert them to
//! durations: both are safe within these bounds, which are far beyond any contest.

use crate::answers::Answers;
use crate::commits::CommitRow;
use crate::event::{Event, LoadStretch, Stamped};
use crate::facts::{Build, Conditions, Connection, FileSizes, Host, Proof, SelfTest, Size};
use crate::plan::{Arrival, Block, LoadLevel, Plan, TurnChoice};
use crate::rows::{ErrorRow, ReadingRow, SecondRow, SliceRow, TickRow};
use crate::statement_classes::{StatementClasses, StatementRow, split_counts};
use crate::statements::ContenderStatements;

/// Longest time, seconds: some 30 years.
const SECONDS_MAX: f64 = 1e9;
/// Latest time, milliseconds since 1970-01-01 UTC: the end of the year 9999.
const MOMENT_MS_MAX: u64 = 253_402_300_799_999;
/// Largest count in a row: all rows of the longest table together stay below 2⁶⁴.
const COUNT_MAX: u64 = 1_000_000_000_000;
/// Largest other number, in any unit.
const NUMBER_MAX: f64 = 1e18;
/// Largest size, bytes: 1 EiB.
const BYTES_MAX: u64 = 1 << 60;

/// Maximum number of switches of a pilot to a contender.
const SWITCHES_MAX: u64 = 1000;
/// Maximum number of repeats of the order of a block.
const REPEATS_MAX: u32 = 100_000;

/// `Err` names the number that is out of bounds.
type Checked = Result<(), String>;

/// Data read from a record: a row of a table, an entry of the journal, a document.
pub(crate) trait Bounded {
    /// Checks every number used in calculations; by default there is none.
    ///
    /// # Errors
    /// Names the number and its bound.
    fn check(&self) -> Checked {
        Ok(())
    }
}

fn count(name: &str, value: u64) -> Checked {
    whole(name, value, COUNT_MAX)
}

fn whole(name: &str, value: u64, max: u64) -> Checked {
    match value <= max {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is {value}; the largest valid value is {max}"
        )),
    }
}

/// A NaN passes: readers treat it as missing.
fn number(name: &str, value: f64) -> Checked {
    within(name, value, NUMBER_MAX)
}

fn seconds(name: &str, value: f64) -> Checked {
    within(name, value, SECONDS_MAX)
}

fn within(name: &str, value: f64, max: f64) -> Checked {
    match value.abs() > max {
        false => Ok(()),
        true => Err(format!(
            "`{name}` is {value:e}; the largest valid value is {max:e}"
        )),
    }
}

/// Checks a time of a plan, for which a contest waits: not negative.
///
/// # Errors
/// Names the number and its bounds.
pub(crate) fn check_time(name: &str, value: f64) -> Checked {
    match (0.0..=SECONDS_MAX).contains(&value) {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is {value:e}; a time must be from 0 to {SECONDS_MAX:e} s"
        )),
    }
}

impl Bounded for SliceRow {
    fn check(&self) -> Checked {
        whole("start_ms", self.start_ms, MOMENT_MS_MAX)?;
        seconds("guard_s", self.guard_s)?;
        seconds("measured_s", self.measured_s)?;
        seconds("drained_s", self.drained_s.unwrap_or_default())?;
        for (name, value) in [
            ("due", self.due),
            ("ok", self.ok),
            ("failed", self.failed),
            ("skipped", self.skipped),
            ("unfinished", self.unfinished),
            ("retries", self.retries),
            ("statements", self.statements),
        ] {
            count(name, value)?;
        }
        for (name, value) in [
            ("latency_us_sum", self.latency_us_sum),
            ("latency_us_p50", self.latency_us_p50),
            ("latency_us_p95", self.latency_us_p95),
            ("latency_us_p99", self.latency_us_p99),
            ("latency_us_p999", self.latency_us_p999),
            ("latency_us_max", self.latency_us_max),
        ] {
            number(name, value)?;
        }
        Ok(())
    }
}

impl Bounded for TickRow {
    fn check(&self) -> Checked {
        seconds("offset_s", self.offset_s)?;
        seconds("length_s", self.length_s)?;
        count("ok", self.ok)?;
        count("failed", self.failed)?;
        number("latency_us_sum", self.latency_us_sum)?;
        number("latency_us_max", self.latency_us_max)
    }
}

impl Bounded for ReadingRow {
    fn check(&self) -> Checked {
        number("value", self.value)
    }
}

impl Bounded for SecondRow {
    fn check(&self) -> Checked {
        seconds("offset_s", self.offset_s)?;
        seconds("length_s", self.length_s)?;
        number("value", self.value)
    }
}

impl Bounded for ErrorRow {
    fn check(&self) -> Checked {
        count("count", self.count)
    }
}

impl Bounded for StatementRow {
    fn check(&self) -> Checked {
        for (name, value) in [
            ("ok", self.ok),
            ("failed", self.failed),
            ("key_exists", self.key_exists),
            ("unchanged", self.unchanged),
            ("rows_returned", self.rows_returned),
            ("rows_changed", self.rows_changed),
        ] {
            count(name, value)?;
        }
        for entry in split_counts::<String>(&self.errors) {
            count("errors", entry?.1)?;
        }
        for entry in split_counts::<u64>(&self.latencies) {
            count("latencies", entry?.1)?;
        }
        number("latency_us_sum", self.latency_us_sum)?;
        number("failed_us_sum", self.failed_us_sum)
    }
}

impl Bounded for StatementClasses {
    fn check(&self) -> Checked {
        for class in &self.classes {
            count("captured", class.captured)?;
            count("captured_with_rows", class.captured_with_rows)?;
            count("captured_unchanged", class.captured_unchanged)?;
            // The sum over sessions, which may be many.
            number("captured_s", class.captured_s)?;
        }
        Ok(())
    }
}

impl Bounded for CommitRow {
    fn check(&self) -> Checked {
        whole("at_ms", self.at_ms, MOMENT_MS_MAX)
    }
}

impl Bounded for Stamped {
    fn check(&self) -> Checked {
        whole("at_ms", self.at_ms, MOMENT_MS_MAX)?;
        match &self.what {
            Event::Extended { budget_s, .. } => check_time("budget_s", *budget_s),
            Event::RateAdded { level, .. } => check_level(level),
            Event::TurnsChosen { choice, .. } => check_choice(choice),
            Event::TurnsLengthened { drained_share, .. } => number("drained_share", *drained_share),
            Event::LongTurnsDrawn {
                turn_s, guard_s, ..
            } => {
                check_time("turn_s", *turn_s)?;
                check_time("guard_s", *guard_s)
            }
            Event::ContinuityRound(round) => {
                check_time("turn_s", round.turn_s)?;
                check_time("seconds", round.seconds)?;
                let mut stretches = round.in_turns.iter().chain(&round.unswitched);
                stretches.try_for_each(check_stretch)
            }
            Event::ServerReady { start_s, .. } => {
                check_time("start_s", start_s.unwrap_or_default())
            }
            Event::DatasetReady {
                rows,
                seconds: length_s,
                bytes,
                allocated_bytes,
                files,
                load,
                ..
            } => {
                count("rows", *rows)?;
                check_time("seconds", *length_s)?;
                whole("bytes", *bytes, BYTES_MAX)?;
                whole("allocated_bytes", *allocated_bytes, BYTES_MAX)?;
                if let Some(load) = load {
                    count("load.rows", load.rows)?;
                    check_time("load.rows_s", load.rows_s)?;
                    check_time("load.finish_s", load.finish_s)?;
                    check_time("load.cpu_s", load.cpu_s)?;
                }
                check_sizes(files.as_ref())
            }
            Event::WarmedUp {
                seconds: length_s,
                steps_per_s,
                ..
            } => {
                check_time("seconds", *length_s)?;
                steps_per_s
                    .iter()
                    .try_for_each(|&step| number("steps_per_s", step))
            }
            Event::SliceLost {
                seconds: length_s, ..
            }
            | Event::BlockAbandoned {
                seconds: length_s, ..
            }
            | Event::ServerRecovered {
                seconds: length_s, ..
            } => check_time("seconds", *length_s),
            Event::StacksSampled {
                transactions_per_s,
                cpu_share_per_sample,
                ..
            } => {
                number("transactions_per_s", *transactions_per_s)?;
                number("cpu_share_per_sample", *cpu_share_per_sample)
            }
            Event::Settled {
                statements_s,
                seconds: length_s,
                ..
            } => {
                check_time("statements_s", *statements_s)?;
                check_time("seconds", *length_s)
            }
            // Their whole numbers are compared or looked up, never sums or lengths of time.
            Event::Started { .. }
            | Event::EpochStarted { .. }
            | Event::PhaseStarted { .. }
            | Event::SliceStarted { .. }
            | Event::SliceFinished { .. }
            | Event::TailRemoved { .. }
            | Event::ServerDied { .. }
            | Event::LevelDecided { .. }
            | Event::Noticed { .. }
            | Event::Ended { .. } => Ok(()),
        }
    }
}

impl Bounded for Build {}

impl Bounded for Connection {}

impl Bounded for SelfTest {}

impl Bounded for ContenderStatements {}

impl Bounded for Answers {
    fn check(&self) -> Checked {
        count("statements", self.statements)?;
        count("transactions", self.transactions)?;
        let classes = self.classes.iter();
        classes
            .clone()
            .try_for_each(|class| count("statements", class.statements))?;
        let refused = self.refused.iter();
        refused
            .clone()
            .try_for_each(|one| count("transactions", one.transactions))
    }
}

impl Bounded for Host {
    fn check(&self) -> Checked {
        for (name, value) in [
            ("memory_bytes", self.memory_bytes),
            ("swap_bytes", self.swap_bytes),
            ("disk_atomic_write_bytes", self.disk_atomic_write_bytes),
            ("file_system_bytes", self.file_system_bytes),
            ("file_system_free_bytes", self.file_system_free_bytes),
            ("read_ahead_bytes", self.read_ahead_bytes),
            ("cgroup_memory_bytes", self.cgroup_memory_bytes),
        ] {
            whole(name, value.unwrap_or_default(), BYTES_MAX)?;
        }
        Ok(())
    }
}

impl Bounded for Conditions {
    fn check(&self) -> Checked {
        let counts = self.counts.iter();
        counts
            .clone()
            .try_for_each(|(name, &value)| count(name, value))
    }
}

impl Bounded for Proof {
    fn check(&self) -> Checked {
        count("acknowledged", self.acknowledged)?;
        count("lost", self.lost)?;
        seconds("load_s", self.load_s)?;
        seconds("seconds", self.seconds)
    }
}

impl Bounded for Size {
    fn check(&self) -> Checked {
        for (name, value) in [
            ("before_bytes", self.before_bytes),
            ("before_allocated_bytes", self.before_allocated_bytes),
            ("after_bytes", self.after_bytes),
            ("after_allocated_bytes", self.after_allocated_bytes),
        ] {
            whole(name, value, BYTES_MAX)?;
        }
        check_sizes(self.before_files.as_ref())?;
        check_sizes(self.after_files.as_ref())
    }
}

fn check_sizes(files: Option<&FileSizes>) -> Checked {
    let Some(files) = files else { return Ok(()) };
    for size in [
        files.data,
        files.redo,
        files.undo,
        files.temporary,
        files.logs,
        files.system,
    ] {
        whole("bytes", size.bytes, BYTES_MAX)?;
        whole("allocated_bytes", size.allocated_bytes, BYTES_MAX)?;
    }
    Ok(())
}

/// Checks the numbers of a plan, so that a contest can convert its times to durations.
///
/// # Errors
/// Names the number and its bound.
pub(crate) fn check_plan(plan: &Plan) -> Checked {
    let (schedule, limits) = (&plan.schedule, &plan.limits);
    for (name, value) in [
        ("schedule.budget_s", schedule.budget_s),
        ("schedule.slice_s", schedule.slice_s),
        ("schedule.guard_s", schedule.guard_s),
        ("schedule.drain_s", schedule.drain_s),
        ("schedule.tick_s", schedule.tick_s),
        ("schedule.warm_up_cap_s", schedule.warm_up_cap_s),
        ("schedule.warm_up_hold_s", schedule.warm_up_hold_s),
        ("limits.server_start_s", limits.server_start_s),
        ("limits.server_stop_s", limits.server_stop_s),
        ("limits.statement_s", limits.statement_s),
        ("limits.dataset_s", limits.dataset_s),
        (
            "limits.prove.load_s",
            limits.prove.map_or(0.0, |prove| prove.load_s),
        ),
    ] {
        check_time(name, value)?;
    }
    if !plan.turns.is_empty() {
        return Err("plan.json must not contain `turns`; they belong in events.jsonl".to_owned());
    }
    if let Some(pilot) = &schedule.pilot {
        whole(
            "schedule.pilot.switches",
            pilot.switches.into(),
            SWITCHES_MAX,
        )?;
        check_time("schedule.pilot.turn_s_min", pilot.turn_s_min)?;
        check_time("schedule.pilot.steady_s", pilot.steady_s)?;
    }
    if let Some(suite) = &plan.suite {
        check_time("suite.settle_s", suite.settle_s)?;
    }
    if let Some(injection) = &plan.injection {
        check_time("injection.period_s", injection.period_s)?;
        if !(0.0..=1.0).contains(&injection.stopped_share) {
            let share = injection.stopped_share;
            return Err(format!(
                "`injection.stopped_share` is {share:e}; a share must be from 0 to 1"
            ));
        }
        if let Some(stalls) = &injection.stalls {
            check_time("injection.stalls.stall_s", stalls.stall_s)?;
            for every_s in stalls.every_s {
                check_time("injection.stalls.every_s", every_s)?;
            }
            if !stalls.every_s.is_sorted() {
                return Err(
                    "`injection.stalls.every_s` must have its smaller bound first".to_owned(),
                );
            }
        }
    }
    plan.levels.iter().try_for_each(check_level)?;
    plan.blocks.iter().try_for_each(check_block)
}

/// Checks the numbers of a load level.
///
/// # Errors
/// Names the number and its bound.
pub(crate) fn check_level(level: &LoadLevel) -> Checked {
    let slice_s = level.cell.as_ref().and_then(|cell| cell.slice_s);
    check_time("slice_s", slice_s.unwrap_or_default())?;
    match level.arrival {
        Arrival::Closed { think_ms } => check_time("think_ms", think_ms),
        Arrival::Constant { per_second } | Arrival::Poisson { per_second } => {
            number("per_second", per_second)
        }
    }
}

/// Checks the numbers of a block.
///
/// # Errors
/// Names the number and its bound.
pub(crate) fn check_block(block: &Block) -> Checked {
    check_time("slice_s", block.slice_s)?;
    match (1..=REPEATS_MAX).contains(&block.repeats) {
        true => Ok(()),
        false => Err(format!(
            "`repeats` is {}; it must be from 1 to {REPEATS_MAX}",
            block.repeats
        )),
    }
}

fn check_stretch(stretch: &LoadStretch) -> Checked {
    check_time("seconds", stretch.seconds)?;
    count("transactions", stretch.transactions)?;
    number("latency_us_p99", stretch.latency_us_p99)?;
    number(
        "cpu_us_per_transaction",
        stretch.cpu_us_per_transaction.unwrap_or_default(),
    )?;
    let written = stretch.written_bytes_per_transaction;
    number("written_bytes_per_transaction", written.unwrap_or_default())?;
    let flushes = stretch.disk_flushes_per_transaction;
    number("disk_flushes_per_transaction", flushes.unwrap_or_default())
}

fn check_choice(choice: &TurnChoice) -> Checked {
    for (name, value) in [
        ("turn_s", choice.turn_s),
        ("guard_s", choice.guard_s),
        ("tick_s", choice.tick_s),
        ("seconds", choice.seconds),
        ("switch_s", choice.switch_s),
        ("transient_s", choice.transient_s),
    ] {
        check_time(name, value)?;
    }
    choice.lengths.iter().try_for_each(|length| {
        check_time("turn_s", length.turn_s)?;
        number("block_sd", length.block_sd)?;
        number("half_width_per_minute", length.half_width_per_minute)
    })
}
