//! How the figures came about, in words with the run's own numbers.

use crate::judge::Summary;
use crate::judge::summary::{CellCourse, How, Scope};

use super::words;

/// The method as titled paragraphs.
#[must_use]
pub fn paragraphs(summary: &Summary) -> Vec<(&'static str, String)> {
    let Summary {
        rule,
        schedule,
        contenders,
        duels,
        ..
    } = summary;
    let comparisons = contenders.len().saturating_sub(1).max(1);
    let alpha = 1.0 - rule.confidence;
    vec![
        (
            "Order",
            format!(
                "All contenders were up at the same time and took turns. A mirrored block is a random permutation of \
                 them and its reverse, one slice of about {} each (drawn within ±{} per block); what came within \
                 {} after a switch does not count. Whatever disturbs the machine disturbs all of a block alike.",
                words::duration(schedule.slice_s),
                words::share(schedule.jitter),
                words::duration(schedule.guard_s)
            ),
        ),
        (
            "Ratio",
            format!(
                "Per block, the mean logarithm of a contender's throughput minus that of {}; the ratio is the mean of \
                 these over blocks, and its interval holds at every moment of the run at once.",
                summary.baseline
            ),
        ),
        (
            "Verdict",
            format!(
                "Sign-flip randomisation test with {} simulated paths: the coins that ordered the blocks are the only \
                 assumption about chance. A path is judged by the square of its sum over the variance of such sums, the \
                 products of blocks up to three apart being in it. The error probability is spent over {} blocks per \
                 level, {} of it kept for blocks beyond. Faster or slower: the interval excludes 1. Equivalent: it lies \
                 within ±{}. Otherwise undecided.",
                words::count(u64::from(rule.paths)),
                rule.blocks_max,
                words::share(rule.reserve),
                words::share(rule.horizon)
            ),
        ),
        (
            "Error probability",
            if comparisons > 1 {
                format!(
                    "{} per load level, divided among its {comparisons} comparisons ({} each).{}",
                    words::share(alpha),
                    words::share(alpha / comparisons as f64),
                    of_each_level(duels.len())
                )
            } else {
                format!("{} per load level.{}", words::share(alpha), of_each_level(duels.len()))
            },
        ),
        (
            "Scope",
            match summary.scope {
                Scope::TheseInstances => {
                    "These instances: the server processes that ran, between one start and one end. A claim about the \
                     servers in general needs several starts of each."
                        .to_owned()
                }
                Scope::TheseServers => format!(
                    "These servers: all were started anew {} times at most. The mean log ratio of a start is one \
                     observation; a group-sequential t test with the spending of O'Brien and Fleming decides, from the \
                     third start on. It takes the means of starts for roughly normal.",
                    schedule.epochs.map_or(1, |epochs| epochs.count)
                ),
            },
        ),
        ("Throughput", sentence(How::Throughput)),
        (
            "Latency",
            format!(
                "Done minus due, of committed transactions. Mean: {}. Quantiles: {}; none is given where the tail was \
                 seen too rarely to support one.",
                How::LatencySum.text(),
                How::MergedHistograms.text()
            ),
        ),
        (
            "Steady state",
            format!(
                "Of the slices of a contender at a load level: where a transient ends by MSER, and whether the halves of \
                 the rest are shown to agree within {} ({} interval from lugsail batch means), to differ by more, or \
                 neither; where servers were started several times, the longest run of blocks between two starts. No slice \
                 is left out for it.",
                words::share(CellCourse::TOLERANCE),
                words::share(rule.confidence)
            ),
        ),
        ("Processor time", sentence(How::Readings)),
        ("Observation", observation(summary)),
        (
            "Intervals",
            format!(
                "Those of single contenders are {} each, not jointly, and for what a contender would show on this machine \
                 in other runs as long as this one. Movements of the machine are in them that are forgotten after about \
                 eight slices of a contender, which are four blocks or {} here; what takes much longer than the run cannot be \
                 seen in it. Gaps between the slices, such as restarts and the turns of other load levels, are ignored. What the machine does slowly is common to all contenders; compare contenders by their \
                 ratio, not by whether their intervals overlap.",
                words::share(rule.confidence),
                words::duration(memory_s(contenders.len(), schedule.slice_s, schedule.guard_s))
            ),
        ),
    ]
}

/// How long the four blocks take that the memory of slow movements is, when one load level runs alone.
fn memory_s(contenders: usize, slice_s: f64, guard_s: f64) -> f64 {
    8.0 * contenders as f64 * (slice_s + guard_s)
}

/// That errors add up over load levels, where there are several.
fn of_each_level(levels: usize) -> String {
    match levels {
        0 | 1 => String::new(),
        levels => format!(" Each of the {levels} levels has its own."),
    }
}

/// How servers were observed, and what that cost.
fn observation(summary: &Summary) -> String {
    let Some(watched) = &summary.watched else {
        return "Nothing but throughput, latency and processor time was observed.".to_owned();
    };
    format!(
        "Counters of the kernel and of the engine were read at both ends of every slice and in part every second; the \
         threads of the active server were looked at {} times per second. That took {} of one processor, and {} of \
         the time a question of ours was being answered. Time on a processor and in the run queue is counted; where \
         a thread waits is sampled.",
        words::number(watched.looks_per_s),
        words::share(watched.cpu_share),
        words::share(watched.asked_share)
    )
}

fn sentence(how: How) -> String {
    words::sentence(how.text())
}
