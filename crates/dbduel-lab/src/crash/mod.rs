//! Power cuts: compares the commits that a server acknowledged with those it still has after a power failure under
//! load.
//!
//! A contender's data directory lies on a volume of `dbduel-powercut` that records every write and every sync. One run
//! of load is recorded; the record is cut at many moments, and for each cut the server is started on a possible state
//! of its disk.

mod minimal;
mod outcome;
mod pages;
mod stand;
mod traced_load;
mod verdict;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use dbduel_machine::clock;
use dbduel_machine::interrupt;
use dbduel_powercut::{CutModel, Replay, Selection, positions};
use dbduel_record::seed::named_seed;
use dbduel_server::orphans;

use super::contest::{self, ContestConfig};
use minimal::Minimal;
pub use outcome::{ContenderOutcome, CutFate, CutOutcome, KeptImage};
use stand::Stand;
use traced_load::TracedLoad;

/// Settings of a crash test.
#[derive(Debug)]
pub struct CrashConfig<'a> {
    /// The experiment, and the home of its servers.
    pub contest: &'a ContestConfig<'a>,
    /// Cuts of each contender.
    pub cuts: u32,
    /// The models, used in turn.
    pub models: &'a [CutModel],
    /// Length of the load, seconds.
    pub load_s: f64,
    /// Where to keep the first loss of each kind; `None` keeps none.
    pub images: Option<Images>,
}

/// Where minimal images of losses are kept.
#[derive(Debug)]
pub struct Images {
    /// The folder that they are written to.
    pub folder: PathBuf,
    /// Limit of server starts in the search for one minimal image.
    pub tries: u32,
}

/// Loads one contender, cuts its power many times, and reports the loss of each cut.
///
/// # Errors
/// When the server cannot be fetched, loaded or driven, or the user interrupts. A loss after a cut is no error.
pub fn run(config: &CrashConfig<'_>, number: usize) -> Result<ContenderOutcome> {
    on_stand(config, number, |stand| drive_and_cut(config, stand))
}

/// As [`run`] for a contender that claims durable commits; the inner error is the setting by which it claims less.
///
/// # Errors
/// As [`run`].
pub fn prove(config: &CrashConfig<'_>, number: usize) -> Result<Result<ContenderOutcome, String>> {
    on_stand(config, number, |stand| match stand.weaker_promise()? {
        Some(setting) => Ok(Err(setting)),
        None => drive_and_cut(config, stand).map(Ok),
    })
}

fn on_stand<T>(
    config: &CrashConfig<'_>,
    number: usize,
    work: impl FnOnce(&mut Stand<'_>) -> Result<T>,
) -> Result<T> {
    let contender = &config.contest.plan.contenders[number];
    let sandbox = contest::loaded(config.contest, number)?;
    // None of its sandboxes can be resumed: once this process is gone, the next start removes them.
    let no_record = config.contest.record.join("cannot-be-resumed");
    orphans::note_record(
        config.contest.home,
        &contest::run_name(config.contest),
        &no_record,
    )?;
    let mut stand = Stand::new(config.contest, contender, sandbox)?;
    let outcome = work(&mut stand);
    // Its own error is the one to report first.
    let removed = stand.remove();
    let outcome = outcome?;
    removed.map(|()| outcome)
}

fn drive_and_cut(config: &CrashConfig<'_>, stand: &mut Stand<'_>) -> Result<ContenderOutcome> {
    let stage = format!("{}: load, recorded", stand.name());
    config.contest.step(&stage);
    let load = traced_load::drive(config, stand)?;
    cut_all(config, stand, &load)
}

fn cut_all(
    config: &CrashConfig<'_>,
    stand: &mut Stand<'_>,
    load: &TracedLoad,
) -> Result<ContenderOutcome> {
    let plan = &config.contest.plan;
    let name = stand.name().to_owned();
    let seed = named_seed(plan.seed, "power-cuts");
    let places = positions(&load.trace, load.cut_range(), config.cuts, seed);
    let mut replay = Replay::new(&load.trace);
    let mut outcome = load.outcome(stand);
    let mut kept_fates = Vec::new();
    let total = places.len();
    for (cut, position) in places.into_iter().enumerate() {
        interrupt::check()?;
        replay.advance(position);
        let model = config.models[cut % config.models.len()];
        let seed = named_seed(seed, &format!("cut/{cut}"));
        let selection = Selection::draw(model, seed, &replay);
        let begun = clock::now();
        let promised = load.promised(position);
        let verdict = stand.restart(replay.image(&selection), &promised)?;
        // What ends this process may have ended the server as well, which then says nothing about the cut.
        interrupt::check()?;
        let lost = selection.lost(model, &replay).len();
        let one = CutOutcome {
            cut: cut as u32,
            model,
            position: position as u64,
            at_s: load.seconds_at(position),
            pending_writes: replay.writes().count() as u64,
            kept_parts: selection.kept.len() as u64,
            lost_parts: lost as u64,
            acknowledged: promised.count(),
            seconds: clock::since(begun).as_secs_f64(),
            verdict,
        };
        let fate = one.fate();
        config.contest.step(&format!(
            "{name}: cut {} of {total} ({}), {} with a loss",
            cut + 1,
            model.name(),
            outcome.cuts.iter().filter(|cut| !cut.is_intact()).count()
        ));
        if let Some(images) = &config.images
            && fate != CutFate::Intact
            && !kept_fates.contains(&fate)
        {
            kept_fates.push(fate);
            let minimal = Minimal {
                console: config.contest.console,
                images,
                load,
                replay: &replay,
                cut: &one,
            };
            let kept = minimal
                .keep(stand, &selection)
                .with_context(|| format!("could not keep an image of cut {cut} of `{name}`"))?;
            outcome.images.push(kept);
        }
        outcome.cuts.push(one);
    }
    Ok(outcome)
}
