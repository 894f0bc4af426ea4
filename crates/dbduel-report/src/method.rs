//! The method, with the run's own numbers.

use dbduel_stats::sequential::unit_length_s;

use dbduel_judge::Summary;
use dbduel_judge::summary::{CellCourse, How, Scope};

use super::words;

#[must_use]
pub fn paragraphs(summary: &Summary) -> Vec<(&'static str, String)> {
    let Summary {
        rule,
        schedule,
        duels,
        ..
    } = summary;
    let comparisons = summary.comparisons();
    let alpha = 1.0 - rule.confidence;
    let level = words::level(summary);
    vec![
        (
            "Order",
            format!(
                "All contenders ran at the same time and took turns. {}, {}. A disturbance of the machine affects all \
                 contenders of a block alike.",
                match schedule.mirrored {
                    true => "A mirrored block is a random permutation of them and its reverse",
                    false => "A block is a random permutation of them",
                },
                slices(summary)
            ),
        ),
        (
            "Ratio",
            format!(
                "Per block, the mean logarithm of a contender's throughput minus that of {}; the ratio is the mean of \
                 these over blocks. Its interval is valid however often the run was checked.",
                summary.baseline
            ),
        ),
        (
            "Verdict",
            format!(
                "Sign-flip randomisation test with {} simulated paths; the random order of the blocks is its only \
                 assumption about chance. Statistic: the squared sum of a path over the variance of such sums, with products \
                 of blocks up to three apart. The error probability is spent over {} per level; {} of it is reserved \
                 for later blocks. Faster or slower: the interval excludes 1. Equivalent: it lies within ±{}. Otherwise \
                 undecided.",
                words::count(u64::from(rule.paths)),
                match schedule.pilot {
                    None => words::things(u64::from(rule.blocks_max), "block"),
                    Some(_) => "the planned blocks, in proportion to their turns,".to_owned(),
                },
                words::share(rule.reserve),
                words::share(rule.horizon)
            ),
        ),
        (
            "Error probability",
            if comparisons > 1 {
                format!(
                    "{} per {level}, divided among its {comparisons} comparisons ({} each).{}",
                    words::share(alpha),
                    words::share(alpha / comparisons as f64),
                    of_each_level(duels.len(), level)
                )
            } else {
                format!(
                    "{} per {level}.{}",
                    words::share(alpha),
                    of_each_level(duels.len(), level)
                )
            },
        ),
        (
            "Scope",
            match summary.scope {
                Scope::TheseInstances => {
                    "These instances: one start of each server. A claim about the servers in general needs several starts."
                        .to_owned()
                }
                Scope::TheseServers => format!(
                    "These servers: at most {} starts of each. The mean log ratio of a start is one observation; a \
                     group-sequential t test with O'Brien-Fleming spending decides from the third start on. It assumes \
                     roughly normal means of starts.",
                    schedule.epochs.map_or(1, |epochs| epochs.count)
                ),
            },
        ),
        ("Throughput", sentence(How::Throughput)),
        (
            "Latency",
            format!(
                "Done minus due, of committed transactions. Mean: {}. Quantiles: {}; none where the tail was observed too \
                 rarely.",
                How::LatencySum.text(),
                How::MergedHistograms.text()
            ),
        ),
        (
            "Steady state",
            format!(
                "Per contender and {level}: MSER gives the end of a transient; the halves of the other slices agree \
                 within {}, differ by more, or are too noisy to tell ({} interval from lugsail batch means). With several \
                 starts: the longest run of blocks between two starts. No slice is excluded from the verdict.",
                words::share(CellCourse::TOLERANCE),
                words::share(rule.confidence)
            ),
        ),
        ("Processor time", sentence(How::Readings)),
        ("Observation", observation(summary)),
        (
            "Intervals",
            format!(
                "Intervals of single contenders: {} each, not joint, for other runs of this length on this machine. They \
                 cover drift that decays within about eight slices of a contender (four blocks, {} here), not drift much \
                 slower than the run. Gaps between slices, such as restarts and other load levels, are ignored. Slow drift \
                 is common to all contenders: compare them by their ratio, not by overlap of intervals.",
                words::share(rule.confidence),
                words::duration(memory_s(summary))
            ),
        ),
    ]
}

/// The slices of a block, as a fragment of a sentence.
fn slices(summary: &Summary) -> String {
    let schedule = &summary.schedule;
    if schedule.pilot.is_some() {
        let lengths = summary.duels.iter().filter_map(|duel| {
            let turns = duel.turns.as_ref()?;
            Some(format!(
                "{} with a guard of {} at {}",
                words::duration(turns.turn_s),
                words::duration(turns.guard_s),
                duel.label
            ))
        });
        let lengths: Vec<String> = lengths.collect();
        return format!(
            "in turns: the order is repeated until the block is long enough; later blocks are longer and weigh in proportion. A pilot chose the length of turns and guards for each \
             level, from each contender by itself: {} (drawn within ±{} per block)",
            match lengths.is_empty() {
                true => "none so far".to_owned(),
                false => lengths.join("; "),
            },
            words::share(schedule.jitter)
        );
    }
    format!(
        "one slice of about {} each (drawn within ±{} per block); the first {} after a switch do not count",
        words::duration(schedule.slice_s),
        words::share(schedule.jitter),
        words::duration(schedule.guard_s)
    )
}

/// Duration of the four blocks within which drift decays, when one load level runs alone, seconds.
fn memory_s(summary: &Summary) -> f64 {
    let schedule = &summary.schedule;
    match schedule.pilot {
        Some(_) => 4.0 * unit_length_s(0.0),
        None => 8.0 * summary.contenders.len() as f64 * (schedule.slice_s + schedule.guard_s),
    }
}

fn of_each_level(levels: usize, level: &str) -> String {
    match levels {
        0 | 1 => String::new(),
        levels => format!(" Each of the {levels} {level}s has its own."),
    }
}

/// How servers were observed, and at what cost.
fn observation(summary: &Summary) -> String {
    let Some(watched) = &summary.watched else {
        return "Only throughput, latency and processor time were observed.".to_owned();
    };
    format!(
        "Counters of the kernel and the engine were read at both ends of every slice, some every second; thread states of \
         the active server were sampled {} times per second. Cost: {} of one processor; our status queries ran {} of the \
         time. Time on a processor and in the run queue is counted; waits are sampled.",
        words::number(watched.looks_per_s),
        words::share(watched.cpu_share),
        words::share(watched.asked_share)
    )
}

fn sentence(how: How) -> String {
    words::sentence(how.text())
}
