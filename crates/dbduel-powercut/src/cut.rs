//! Positions of power cuts, and the state of the disk after them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::str::FromStr;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde::Serialize;

use crate::replay::{Fragment, PAGE, Replay, SECTOR, align};
use crate::trace::{Event, Trace};

/// Fate of unsynced writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutModel {
    /// All of them are lost.
    Lose,
    /// Each is kept or lost as a whole, independent of earlier and later ones.
    Reorder,
    /// As `Reorder`, and some are torn: of a write, each 512 bytes are kept or lost.
    #[serde(rename = "torn-512")]
    Torn512,
    /// As `Reorder`, and some are torn: of a write, each 4 KiB are kept or lost.
    #[serde(rename = "torn-4096")]
    Torn4096,
}

impl CutModel {
    /// All models.
    pub const ALL: [CutModel; 4] = [
        CutModel::Lose,
        CutModel::Reorder,
        CutModel::Torn512,
        CutModel::Torn4096,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CutModel::Lose => "lose",
            CutModel::Reorder => "reorder",
            CutModel::Torn512 => "torn-512",
            CutModel::Torn4096 => "torn-4096",
        }
    }
}

impl FromStr for CutModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = CutModel::ALL.into_iter().find(|model| model.name() == text);
        named.ok_or_else(|| {
            let names = CutModel::ALL.map(CutModel::name).join(", ");
            format!("`{text}` is not a cut model; choose one of {names}")
        })
    }
}

/// Pending changes that are on the disk after a cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Parts of writes.
    pub kept: BTreeSet<Fragment>,
    /// Changes of names, sizes and holes before this position of the trace are kept, and writes grow files only then.
    pub metadata_until: usize,
}

impl Selection {
    /// All pending changes: what a surviving kernel would write.
    #[must_use]
    pub fn everything(model: CutModel, replay: &Replay<'_>) -> Self {
        Selection {
            kept: fragments(model, replay).into_iter().flatten().collect(),
            metadata_until: replay.position(),
        }
    }

    /// The selection that a cut of this model and seed keeps.
    #[must_use]
    pub fn draw(model: CutModel, seed: u64, replay: &Replay<'_>) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let journal: Vec<usize> = replay.metadata().map(|(seq, _)| seq).collect();
        if model == CutModel::Lose {
            let metadata_until = journal.first().copied().unwrap_or(replay.position());
            return Selection {
                kept: BTreeSet::new(),
                metadata_until,
            };
        }
        let journaled = below(&mut random, journal.len() as u64 + 1) as usize;
        let metadata_until = journal.get(journaled).copied();
        // From nearly nothing to nearly everything, so that single survivors and single losses both occur.
        let keep_permille = 20 + below(&mut random, 961);
        let mut kept = BTreeSet::new();
        for parts in fragments(model, replay) {
            let is_torn = parts.len() > 1 && below(&mut random, 3) == 0;
            if is_torn {
                kept.extend(tear(&mut random, &parts));
            } else if below(&mut random, 1000) < keep_permille {
                kept.extend(parts);
            }
        }
        Selection {
            kept,
            metadata_until: metadata_until.unwrap_or(replay.position()),
        }
    }

    /// Parts of pending writes that are lost.
    #[must_use]
    pub fn lost(&self, model: CutModel, replay: &Replay<'_>) -> Vec<Fragment> {
        let all = fragments(model, replay).into_iter().flatten();
        all.filter(|fragment| !self.kept.contains(fragment))
            .collect()
    }
}

/// The parts of every pending write that this model keeps or loses individually.
fn fragments(model: CutModel, replay: &Replay<'_>) -> Vec<Vec<Fragment>> {
    let parts_of = |write: &crate::replay::PendingWrite| {
        let (unit, step) = match (model, write.is_direct) {
            (CutModel::Lose | CutModel::Reorder, true) => (SECTOR, u64::MAX),
            (CutModel::Lose | CutModel::Reorder, false) => (PAGE, u64::MAX),
            (CutModel::Torn512, _) => (SECTOR, SECTOR),
            (CutModel::Torn4096, _) => (PAGE, PAGE),
        };
        let whole = align(&write.range, unit);
        let mut parts = Vec::new();
        let mut start = whole.start;
        while start < whole.end {
            let end = start.saturating_add(step).min(whole.end);
            let seq = write.seq;
            parts.push(Fragment { seq, start, end });
            start = end;
        }
        parts
    };
    replay.writes().map(parts_of).collect()
}

/// Some of the parts, neither none nor all: the first, the last, or any.
fn tear(random: &mut Xoshiro256PlusPlus, parts: &[Fragment]) -> Vec<Fragment> {
    let some = 1 + below(random, parts.len() as u64 - 1) as usize;
    match below(random, 3) {
        0 => parts[..some].to_vec(),
        1 => parts[some..].to_vec(),
        _ => {
            let sure = below(random, parts.len() as u64) as usize;
            let mut chosen: Vec<Fragment> = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                let is_left_out = number == (sure + 1) % parts.len();
                if number == sure || (!is_left_out && below(random, 2) == 0) {
                    chosen.push(*part);
                }
            }
            chosen
        }
    }
}

/// Positions in `range` before which the power fails, ascending: half of them anywhere, half of them just before a
/// sync, when most is pending.
#[must_use]
pub fn positions(trace: &Trace, range: Range<usize>, cuts: u32, seed: u64) -> Vec<usize> {
    let range = range.start..range.end.min(trace.entries.len());
    if range.is_empty() {
        return Vec::new();
    }
    let is_sync = |&position: &usize| matches!(trace.entries[position].event, Event::Sync { .. });
    let syncs: Vec<usize> = range.clone().filter(is_sync).collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut positions: Vec<usize> = (0..cuts)
        .map(|cut| match cut % 2 == 1 && !syncs.is_empty() {
            true => syncs[below(&mut random, syncs.len() as u64) as usize],
            false => range.start + below(&mut random, range.len() as u64) as usize,
        })
        .collect();
    positions.sort_unstable();
    positions
}

/// A number below `limit`, which is above 0. The bias is below 2⁻³² for limits below 2³².
fn below(random: &mut Xoshiro256PlusPlus, limit: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(limit)) >> 64) as u64
}
