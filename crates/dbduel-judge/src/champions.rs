//! Best against best: the variant of each contender that was fastest in the blocks of choosing, compared in all later
//! blocks.
//!
//! Choosing the largest of several noisy means flatters it; so the blocks that choose are no part of the verdict. The choice
//! is fixed by rounds that end before the first judged one begins, and the order of contenders in judged blocks was drawn by
//! lot without it: the sign-flip tests of the verdict hold for the chosen pair as for any pair that was named beforehand
//! (sample splitting; Cox 1975).

use std::collections::{BTreeMap, BTreeSet};

use dbduel_record::event::{Event, SliceId};
use dbduel_record::plan::{Block, Contender};
use dbduel_record::rows::SliceRow;
use dbduel_record::variants::Variants;
use dbduel_record::{Plan, Record};

use super::answers;
use super::duel::decide::Question;
use super::duel::log_ratios::throughput;
use super::evidence::blocks::{CompleteBlock, LevelBlocks};
use super::summary::{ChampionChoice, VariantThroughput};

/// The chosen variant of each group at a level, as contenders of the plan; `None` without a complete block of choosing.
#[must_use]
pub fn champions(plan: &Plan, rows: &[SliceRow], level: usize) -> Option<Vec<usize>> {
    let variants = plan.variants.as_ref()?;
    let blocks = choosing_blocks(variants, LevelBlocks::sort(plan, rows, level));
    chosen(variants, &blocks)
}

fn choosing_blocks<'a>(variants: &Variants, blocks: LevelBlocks<'a>) -> Vec<CompleteBlock<'a>> {
    let mut complete = blocks.complete;
    complete.retain(|block| variants.is_choosing(block.block));
    complete
}

fn chosen(variants: &Variants, blocks: &[CompleteBlock<'_>]) -> Option<Vec<usize>> {
    if blocks.is_empty() {
        return None;
    }
    let score = |contender: usize| -> f64 {
        let slices = blocks.iter().flat_map(|block| block.slices_of(contender));
        slices.map(|row| throughput(row).ln()).sum()
    };
    let best = |members: &[usize]| {
        let scores = members.iter().map(|&member| (member, score(member)));
        // The first of equals.
        let best = scores.reduce(|best, one| if one.1 > best.1 { one } else { best });
        best.map(|(member, _)| member)
    };
    let groups = variants.groups.iter();
    groups.map(|group| best(&group.members)).collect()
}

/// The plan and the rows of the chosen variants in the judged blocks, under the names of their contenders; as they are where no
/// contender has variants.
#[must_use]
pub fn judged(plan: &Plan, rows: &[SliceRow]) -> Option<(Plan, Vec<SliceRow>)> {
    let reduction = Reduction::of(plan, rows)?;
    let mut rows = rows.to_vec();
    rows.retain_mut(|row| reduction.keep(&mut row.block, &mut row.position, &mut row.contender));
    Some((reduction.plan, rows))
}

/// The record as a contest of the chosen variants in the judged blocks; `None` where no contender has variants.
#[must_use]
pub fn judged_record(record: &Record) -> Option<Record> {
    let reduction = Reduction::of(&record.plan, &record.slices)?;
    let mut judged = record.clone();
    let place =
        |block: &mut u32, position: &mut u32| reduction.keep(block, position, &mut String::new());
    judged
        .slices
        .retain_mut(|row| reduction.keep(&mut row.block, &mut row.position, &mut row.contender));
    judged
        .ticks
        .retain_mut(|row| place(&mut row.block, &mut row.position));
    judged
        .readings
        .retain_mut(|row| place(&mut row.block, &mut row.position));
    judged
        .seconds
        .retain_mut(|row| place(&mut row.block, &mut row.position));
    judged
        .errors
        .retain_mut(|row| place(&mut row.block, &mut row.position));
    judged
        .latencies
        .retain_mut(|row| place(&mut row.block, &mut row.position));
    judged
        .events
        .retain_mut(|event| reduction.keep_event(&mut event.what));
    for row in &mut judged.commits {
        reduction.rename(&mut row.contender);
    }
    judged.contenders = reduction
        .shown
        .iter()
        .map(|&contender| {
            record
                .contenders
                .get(contender)
                .cloned()
                .unwrap_or_default()
        })
        .collect();
    let own = record.answers.as_ref();
    judged.answers = own.map(|own| answers::restricted(own, &reduction.shown));
    judged.plan = reduction.plan;
    Some(judged)
}

/// Reduces the slices of a plan with variants to those of the chosen variants in the judged blocks.
struct Reduction {
    plan: Plan,
    places: BTreeMap<SliceId, SliceId>,
    blocks: BTreeMap<u32, u32>,
    /// The contender that each variant belongs to.
    names: BTreeMap<String, String>,
    /// The variant of each contender that was chosen most often: its settings and counters represent the contender.
    shown: Vec<usize>,
    shown_names: BTreeSet<String>,
}

impl Reduction {
    fn of(plan: &Plan, rows: &[SliceRow]) -> Option<Self> {
        let variants = plan.variants.as_ref()?;
        let champions: Vec<Option<Vec<usize>>> = (0..plan.levels.len())
            .map(|level| champions(plan, rows, level))
            .collect();
        let mut reduction = Self {
            plan: Plan {
                variants: None,
                blocks: Vec::new(),
                baseline: variants.group_of(plan.baseline)?,
                contenders: Vec::new(),
                ..plan.clone()
            },
            places: BTreeMap::new(),
            blocks: BTreeMap::new(),
            names: BTreeMap::new(),
            shown: Vec::new(),
            shown_names: BTreeSet::new(),
        };
        for (number, group) in variants.groups.iter().enumerate() {
            let often = |member: &usize| {
                let chosen = champions.iter().flatten();
                chosen
                    .filter(|champions| champions[number] == *member)
                    .count()
            };
            // The first of equals.
            let shown = group.members.iter().rev().copied().max_by_key(often)?;
            reduction.shown.push(shown);
            let variant = &plan.contenders[shown];
            reduction.shown_names.insert(variant.name.clone());
            let is_common = |name: &str| !group.settings.iter().any(|own| own == name);
            let settings = variant.settings.iter();
            reduction.plan.contenders.push(Contender {
                name: group.name.clone(),
                settings: settings
                    .filter(|one| is_common(&one.name))
                    .cloned()
                    .collect(),
                ..variant.clone()
            });
            for &member in &group.members {
                let name = plan.contenders[member].name.clone();
                reduction.names.insert(name, group.name.clone());
            }
        }
        let judged = plan
            .blocks
            .iter()
            .filter(|block| !variants.is_choosing(block));
        for block in judged {
            if let Some(champions) = champions.get(block.level)? {
                reduction.add(block, champions, variants.choosing_rounds);
            }
        }
        Some(reduction)
    }

    /// A judged block without the variants that were not chosen.
    fn add(&mut self, block: &Block, champions: &[usize], choosing_rounds: u32) {
        let id = self.plan.blocks.len() as u32;
        let mut order = Vec::new();
        for (position, contender) in (0..).zip(&block.order) {
            let Some(group) = champions.iter().position(|champion| champion == contender) else {
                continue;
            };
            let slice = |block, position| SliceId { block, position };
            let place = slice(id, order.len() as u32);
            self.places.insert(slice(block.id, position), place);
            order.push(group);
        }
        self.blocks.insert(block.id, id);
        self.plan.blocks.push(Block {
            id,
            round: block.round - choosing_rounds,
            order,
            ..block.clone()
        });
    }

    fn keep(&self, block: &mut u32, position: &mut u32, contender: &mut String) -> bool {
        let slice = SliceId {
            block: *block,
            position: *position,
        };
        let Some(place) = self.places.get(&slice) else {
            return false;
        };
        (*block, *position) = (place.block, place.position);
        self.rename(contender);
        true
    }

    fn rename(&self, contender: &mut String) {
        if let Some(name) = self.names.get(contender) {
            contender.clone_from(name);
        }
    }

    fn keep_event(&self, event: &mut Event) -> bool {
        match event {
            Event::SliceStarted {
                slice, contender, ..
            } => self.keep(&mut slice.block, &mut slice.position, contender),
            Event::SliceFinished { slice, .. } | Event::SliceLost { slice, .. } => {
                self.keep(&mut slice.block, &mut slice.position, &mut String::new())
            }
            Event::BlockAbandoned { block, .. } => {
                let place = self.blocks.get(block);
                place.map(|place| *block = *place).is_some()
            }
            Event::ServerReady { contender, .. }
            | Event::DatasetReady { contender, .. }
            | Event::WarmedUp { contender, .. }
            | Event::Settled { contender, .. }
            | Event::ServerDied { contender, .. }
            | Event::ServerRecovered { contender, .. } => {
                self.rename(contender);
                true
            }
            Event::Noticed { notice } => {
                notice.about.iter_mut().for_each(|name| self.rename(name));
                notice.about.dedup();
                true
            }
            // The files beside them are those of the variant that represents the contender.
            Event::StacksSampled { contender, .. } => {
                let is_shown = self.shown_names.contains(contender);
                self.rename(contender);
                is_shown
            }
            // Its blocks are in the plan already.
            Event::Extended { blocks, .. } => {
                blocks.clear();
                true
            }
            Event::Started { .. }
            | Event::EpochStarted { .. }
            | Event::RateAdded { .. }
            | Event::TurnsChosen { .. }
            | Event::TurnsLengthened { .. }
            | Event::LongTurnsDrawn { .. }
            | Event::ContinuityRound(_)
            | Event::PhaseStarted { .. }
            | Event::TailRemoved { .. }
            | Event::LevelDecided { .. }
            | Event::Ended { .. } => true,
        }
    }
}

/// The contender that a variant belongs to; any other name unchanged.
#[must_use]
pub fn contender_of<'n>(plan: &'n Plan, name: &'n str) -> &'n str {
    let variants = plan.variants.as_ref();
    let number = plan.contenders.iter().position(|one| one.name == name);
    let group = variants
        .zip(number)
        .and_then(|(variants, number)| Some(&variants.groups[variants.group_of(number)?]));
    group.map_or(name, |group| group.name.as_str())
}

/// The variants chosen at each level, and the result of the others in the blocks of choosing.
#[must_use]
pub fn choices(plan: &Plan, rows: &[SliceRow]) -> Vec<ChampionChoice> {
    let Some(variants) = &plan.variants else {
        return Vec::new();
    };
    // The test of a choice has the rounds of choosing to spend its error probability over.
    let mut choosing = plan.clone();
    choosing.blocks.retain(|block| variants.is_choosing(block));
    choosing.decision.blocks_max = variants.choosing_rounds;
    let levels = 0..plan.levels.len();
    levels
        .flat_map(|level| choices_at(&choosing, variants, rows, level))
        .collect()
}

fn choices_at(
    plan: &Plan,
    variants: &Variants,
    rows: &[SliceRow],
    level: usize,
) -> Vec<ChampionChoice> {
    let blocks = LevelBlocks::sort(plan, rows, level).complete;
    let chosen = chosen(variants, &blocks);
    let couples = variants.groups.iter().map(|group| {
        let members = group.members.len();
        members * (members - 1) / 2
    });
    let alpha = (1.0 - plan.decision.confidence) / couples.sum::<usize>().max(1) as f64;
    let several = variants.groups.iter().enumerate();
    let several = several.filter(|(_, group)| group.members.len() > 1);
    let choice = |(number, group): (usize, &dbduel_record::variants::VariantGroup)| {
        let champion = chosen.as_ref().map(|chosen| chosen[number]);
        let variant = |&member: &usize| {
            let contender = &plan.contenders[member];
            let settings = contender.settings.iter();
            let settings = settings.filter(|one| group.settings.contains(&one.name));
            let settings: Vec<String> = settings
                .map(|one| format!("{} = {}", one.name, one.value))
                .collect();
            let compared = champion
                .filter(|champion| *champion != member)
                .map(|champion| {
                    let stream = format!("judge/level/{level}/variant/{}", contender.name);
                    Question::with_alpha(plan, [member, champion], alpha, stream).compare(&blocks)
                });
            VariantThroughput {
                settings: settings.join(", "),
                is_chosen: champion == Some(member),
                ratio: compared.as_ref().map(|compared| compared.ratio.clone()),
                verdict: compared.map(|compared| compared.verdict),
            }
        };
        ChampionChoice {
            level,
            contender: group.name.clone(),
            blocks: blocks.len() as u32,
            variants: group.members.iter().map(variant).collect(),
        }
    };
    several.map(choice).collect()
}

#[cfg(test)]
mod tests {
    use dbduel_record::event::Stamped;
    use dbduel_record::variants::VariantGroup;

    use super::*;
    use crate::{decide_level, summarise};
    use dbduel_record::Verdict;
    use dbduel_testkit::synthetic::{MachineNoise, NASTY, QUIET, Scenario, Side, TYPICAL};

    const CHOOSING: u32 = 12;
    const BLOCKS: u32 = 36;
    /// How often equals are compared.
    const CONTESTS: u64 = 24;

    /// Four variants of `a` and one `b`, at these levels; `log_speed` of a variant at a level.
    fn record(
        noise: MachineNoise,
        seed: u64,
        clients: &[u32],
        log_speed: impl Fn(usize, usize) -> f64,
    ) -> Record {
        let names = ["a [0, 6]", "a [0, 96]", "a [1, 6]", "a [1, 96]", "b"];
        let scenario = Scenario {
            sides: names
                .map(|name| Side::new(name, &vec![1.0; clients.len()]))
                .to_vec(),
            clients: clients.to_vec(),
            blocks: BLOCKS,
            seed,
            ..Scenario::duel()
        };
        let speed = |block: &Block, position: usize| log_speed(block.order[position], block.level);
        let mut record = scenario.on_machine(noise, 4_000 + seed, speed);
        record.plan.decision.blocks_max = BLOCKS - CHOOSING;
        let group = |name: &str, members: std::ops::Range<usize>| VariantGroup {
            name: name.to_owned(),
            settings: vec!["spin".to_owned()],
            members: members.collect(),
        };
        record.plan.variants = Some(Variants {
            choosing_rounds: CHOOSING,
            groups: vec![group("a", 0..4), group("b", 4..5)],
        });
        record
    }

    /// Mean log throughput of the best of `a` over that of `b`, chosen and compared in the same blocks.
    fn flattered(record: &Record) -> f64 {
        let plan = &record.plan;
        let blocks = LevelBlocks::sort(plan, &record.slices, 0).complete;
        let champions = chosen(plan.variants.as_ref().unwrap(), &blocks).unwrap();
        let log = |contender: usize| {
            let slices = blocks.iter().flat_map(|block| block.slices_of(contender));
            slices.map(|row| throughput(row).ln()).sum::<f64>() / (2 * blocks.len()) as f64
        };
        log(champions[0]) - log(champions[1])
    }

    fn mean_and_error(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, (squares / (n - 1.0) / n).sqrt())
    }

    #[test]
    fn equal_variants_are_hardly_ever_told_apart_and_choosing_does_not_flatter() {
        for (name, noise) in [("quiet", QUIET), ("typical", TYPICAL), ("nasty", NASTY)] {
            let (mut ratios, mut naive, mut wrong, mut decided) = (vec![], vec![], 0, 0);
            for seed in 0..CONTESTS {
                let record = record(noise, seed, &[16], |_, _| 0.0);
                let decision = decide_level(&record.plan, &record.slices, 0);
                let comparison = &decision.comparisons[0];
                assert_eq!(
                    (comparison.contender.as_str(), decision.comparisons.len()),
                    ("b", 1)
                );
                assert_eq!(decision.blocks_complete, BLOCKS - CHOOSING);
                ratios.push(-comparison.ratio.value().unwrap().ln());
                wrong += u64::from(matches!(
                    comparison.verdict,
                    Verdict::Faster | Verdict::Slower
                ));
                let choices = choices(&record.plan, &record.slices);
                decided += u64::from(choices[0].open().count() < 3);
                naive.push(flattered(&record));
            }
            let ((mean, error), (flattered, its_error)) =
                (mean_and_error(&ratios), mean_and_error(&naive));
            // Each is expected in 5 % at most; so many are seen in 1 % of all choices of seeds.
            let limit = CONTESTS / 20 + 4 + CONTESTS / 100;
            assert!(
                wrong <= limit && decided <= limit,
                "{name}: {wrong} {decided}"
            );
            assert!(mean.abs() < 3.0 * error, "{name}: {mean} {error}");
            // The control: the same choice judged where it was made is larger than it is.
            assert!(
                flattered > 3.0 * its_error,
                "{name}: {flattered} {its_error}"
            );
        }
    }

    #[test]
    fn the_best_is_chosen_at_each_level_and_meets_the_other() {
        // The second variant is best at few clients, the fourth at many.
        let speed = |variant: usize, level: usize| match (variant, level) {
            (1, 0) | (3, 1) => 0.1,
            _ => 0.0,
        };
        let record = record(QUIET, 5, &[4, 64], speed);
        let (summary, _) = summarise(&record);
        let names: Vec<&str> = summary
            .contenders
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(summary.baseline, "a");
        for (level, best) in [(0, 1), (1, 3)] {
            let choice = &summary.champions[level];
            assert_eq!((choice.contender.as_str(), choice.blocks), ("a", CHOOSING));
            assert!(
                choice.variants[best].is_chosen && choice.open().count() == 0,
                "{choice:?}"
            );
            let verdict = &summary.duels[level].comparisons[0];
            assert_eq!(verdict.verdict, Verdict::Slower);
            let (low, high) = verdict.ratio.interval().unwrap();
            let truth = f64::exp(-0.1);
            assert!(low < truth && truth < high, "{low} {high}");
        }
    }

    #[test]
    fn the_stacks_of_a_contender_are_those_of_its_shown_variant() {
        let fastest = |contender: usize, _: usize| if contender == 2 { 0.2 } else { 0.0 };
        let mut record = record(QUIET, 1, &[16], fastest);
        for (number, contender) in record.plan.contenders.iter().enumerate() {
            record.events.push(Stamped {
                at_ms: 0,
                what: Event::StacksSampled {
                    contender: contender.name.clone(),
                    level: 0,
                    transactions_per_s: number as f64,
                    cpu_share_per_sample: 0.1,
                },
            });
        }
        let judged = judged_record(&record).unwrap();
        let sampled = judged.events.iter().filter_map(|event| match &event.what {
            Event::StacksSampled {
                contender,
                transactions_per_s,
                ..
            } => Some((contender.as_str(), *transactions_per_s)),
            _ => None,
        });
        assert_eq!(sampled.collect::<Vec<_>>(), [("a", 2.0), ("b", 4.0)]);
    }

    #[test]
    fn a_finding_about_a_variant_is_about_its_contender() {
        let record = record(QUIET, 1, &[16], |_, _| 0.0);
        assert_eq!(contender_of(&record.plan, "a [1, 6]"), "a");
        assert_eq!(contender_of(&record.plan, "c"), "c");
        let mut without = record.clone();
        without.plan.variants = None;
        assert!(judged_record(&without).is_none() && choices(&without.plan, &[]).is_empty());
    }
}
