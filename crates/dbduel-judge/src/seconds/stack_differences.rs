//! The stacks of a contender against those of the baseline at one load level: processor time per transaction, function by
//! function.
//!
//! Samples are scaled by the transactions that were committed while they were taken, so that a function which costs more does
//! not make all others look cheaper. They are of one short load, so a difference is evidence and no verdict.

use std::collections::BTreeMap;

use dbduel_record::event::Event;
use dbduel_record::{Plan, Record};
use serde::Serialize;

use super::stacks::{DEPTH_MAX, counted};

/// Frames with a smaller share of the time of both sides together are left out.
const SHARE_MIN: f64 = 0.01;
/// Standard errors beyond which a difference is not put down to sampling.
const ERRORS_MIN: f64 = 3.0;
/// Functions that are named at most.
const FUNCTIONS_MAX: usize = 5;
/// How threads begin in C libraries of different versions.
const THREAD_STARTS: [&str; 8] = [
    "__clone",
    "__clone3",
    "__GI___clone",
    "__GI___clone3",
    "clone",
    "clone3",
    "start_thread",
    "thread_start",
];

/// The stacks of one contender against those of the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlameDifference {
    /// Index of the load level.
    pub level: usize,
    /// Name of the contender.
    pub contender: String,
    /// Samples of the baseline and of the contender.
    pub samples: [u64; 2],
    /// Processor time in user mode per transaction of the baseline and of the contender, microseconds.
    pub cpu_us: [f64; 2],
    /// Frames, callers before those whom they call.
    pub frames: Vec<DifferenceFrame>,
    /// Where the time differs: functions beyond three standard errors that call none which differs in the same direction; at most
    /// five, the largest difference first.
    #[serde(default)]
    pub functions: Vec<FunctionDifference>,
}

/// One function with what it called, wherever it was called.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionDifference {
    /// Name of the function.
    pub name: String,
    /// Time per transaction of the baseline and of the contender, microseconds.
    pub cpu_us: [f64; 2],
}

/// One function with everything that it called, on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DifferenceFrame {
    /// Name of the function.
    pub name: String,
    /// Callers above it.
    pub depth: usize,
    /// Mean time of both sides in frames at its left, microseconds per transaction.
    pub before_us: f64,
    /// Time per transaction of the baseline and of the contender, microseconds.
    pub cpu_us: [f64; 2],
    /// The difference is larger than three standard errors of counting samples (Poisson), and larger than the time of
    /// functions without symbols beside it on the other side, since it may be one of these.
    pub is_beyond_chance: bool,
}

impl DifferenceFrame {
    /// Mean of both sides, microseconds per transaction.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        f64::midpoint(self.cpu_us[0], self.cpu_us[1])
    }

    /// The sign of the difference: above zero where the contender needs more.
    fn direction(&self) -> f64 {
        (self.cpu_us[1] - self.cpu_us[0]).signum()
    }
}

/// A function with what it called, samples of both sides.
#[derive(Debug, Default)]
struct Node {
    samples: [u64; 2],
    /// Samples in functions without symbols that it called.
    unnamed: [u64; 2],
    called: BTreeMap<String, Node>,
}

/// The differences of all contenders from the baseline at every level at which both were sampled.
pub fn differences(record: &Record) -> Vec<FlameDifference> {
    let plan = &record.plan;
    let side = |level: usize, contender: usize| {
        let folded = record.contenders.get(contender)?.stacks.get(&level)?;
        let us_per_sample = us_per_sample(record, plan, level, contender)?;
        Some((folded.as_str(), us_per_sample))
    };
    let mut differences = Vec::new();
    for level in 0..plan.levels.len() {
        let Some(baseline) = side(level, plan.baseline) else {
            continue;
        };
        for contender in plan.challengers() {
            let own = side(level, contender);
            differences.extend(own.and_then(|own| {
                let name = &plan.contenders[contender].name;
                difference(level, name, [baseline, own])
            }));
        }
    }
    differences
}

/// Processor time per transaction that one sample stands for, microseconds.
fn us_per_sample(record: &Record, plan: &Plan, level: usize, contender: usize) -> Option<f64> {
    let name = &plan.contenders[contender].name;
    let sampled = record
        .events
        .iter()
        .rev()
        .find_map(|event| match &event.what {
            Event::StacksSampled {
                contender,
                level: of,
                transactions_per_s,
                cpu_share_per_sample,
            } if contender == name && *of == level => {
                Some(1e6 * cpu_share_per_sample / transactions_per_s)
            }
            _ => None,
        });
    sampled.filter(|us| us.is_finite() && *us > 0.0)
}

fn difference(level: usize, contender: &str, sides: [(&str, f64); 2]) -> Option<FlameDifference> {
    let mut root = Node::default();
    for (side, (folded, _)) in sides.iter().enumerate() {
        for (stack, count) in counted(folded) {
            root.samples[side] = root.samples[side].saturating_add(count);
            let mut node = &mut root;
            // Without the threads, which have other names in other versions.
            let frames = stack.split(';').skip(1).filter(|name| is_comparable(name));
            for name in frames.take(DEPTH_MAX) {
                node = node.called.entry(name.to_owned()).or_default();
                node.samples[side] = node.samples[side].saturating_add(count);
            }
            if stack.rsplit(';').next().is_some_and(is_unnamed) {
                node.unnamed[side] = node.unnamed[side].saturating_add(count);
            }
        }
    }
    let us_per_sample = sides.map(|(_, us)| us);
    let whole = frame("", &root, [0, 0], 0, 0.0, us_per_sample);
    let mut frames = Vec::new();
    let least_us = SHARE_MIN * whole.mean_us();
    lay_out(&root, 0, 0.0, us_per_sample, least_us, &mut frames);
    let has_both = root.samples.iter().all(|&samples| samples > 0);
    (has_both && !frames.is_empty()).then(|| FlameDifference {
        level,
        contender: contender.to_owned(),
        samples: root.samples,
        cpu_us: whole.cpu_us,
        functions: functions(&frames),
        frames,
    })
}

/// False for frames that are there or not depending on the build and not on its work: functions without symbols, and how threads
/// begin. What they need belongs to their callers.
fn is_comparable(name: &str) -> bool {
    !is_unnamed(name) && !THREAD_STARTS.contains(&name)
}

/// True when a frame has the name of its file, because the function has no symbol.
fn is_unnamed(name: &str) -> bool {
    name.starts_with('[')
}

/// The innermost frames that differ, by function.
fn functions(frames: &[DifferenceFrame]) -> Vec<FunctionDifference> {
    let mut functions: Vec<FunctionDifference> = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let mut called = frames[at + 1..]
            .iter()
            .take_while(|called| called.depth > frame.depth);
        let is_innermost = !called
            .any(|called| called.is_beyond_chance && called.direction() == frame.direction());
        if !frame.is_beyond_chance || !is_innermost {
            continue;
        }
        match functions.iter_mut().find(|known| known.name == frame.name) {
            Some(known) => {
                known.cpu_us[0] += frame.cpu_us[0];
                known.cpu_us[1] += frame.cpu_us[1];
            }
            None => functions.push(FunctionDifference {
                name: frame.name.clone(),
                cpu_us: frame.cpu_us,
            }),
        }
    }
    let size = |one: &FunctionDifference| (one.cpu_us[1] - one.cpu_us[0]).abs();
    functions.sort_by(|one, other| size(other).total_cmp(&size(one)));
    functions.truncate(FUNCTIONS_MAX);
    functions
}

fn frame(
    name: &str,
    node: &Node,
    unnamed_beside: [u64; 2],
    depth: usize,
    before_us: f64,
    us_per_sample: [f64; 2],
) -> DifferenceFrame {
    let time = |samples: [u64; 2]| [0, 1].map(|side| samples[side] as f64 * us_per_sample[side]);
    let [one, other] = time(node.samples);
    let lesser = usize::from(one > other);
    let unnamed_us = time(unnamed_beside)[lesser];
    let variance: f64 = (0..2)
        .map(|side| {
            let unnamed = if side == lesser {
                unnamed_beside[side]
            } else {
                0
            };
            // Of a count of zero too, the true one may be some.
            let samples = node.samples[side] as f64 + unnamed as f64 + 1.0;
            samples * us_per_sample[side].powi(2)
        })
        .sum();
    DifferenceFrame {
        name: name.to_owned(),
        depth,
        before_us,
        cpu_us: [one, other],
        is_beyond_chance: (one - other).abs() - unnamed_us > ERRORS_MIN * variance.sqrt(),
    }
}

fn lay_out(
    node: &Node,
    depth: usize,
    before_us: f64,
    us_per_sample: [f64; 2],
    least_us: f64,
    frames: &mut Vec<DifferenceFrame>,
) {
    let mut before_us = before_us;
    for (name, called) in &node.called {
        let own = frame(name, called, node.unnamed, depth, before_us, us_per_sample);
        let mean_us = own.mean_us();
        if mean_us >= least_us {
            frames.push(own);
            lay_out(
                called,
                depth + 1,
                before_us,
                us_per_sample,
                least_us,
                frames,
            );
        }
        before_us += mean_us;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, depth, time of both sides, and whether they differ beyond chance.
    fn frames(found: &FlameDifference) -> Vec<(&str, usize, [f64; 2], bool)> {
        let all = found.frames.iter();
        all.map(|frame| {
            let name = frame.name.as_str();
            (name, frame.depth, frame.cpu_us, frame.is_beyond_chance)
        })
        .collect()
    }

    #[test]
    fn a_function_that_costs_more_stands_out_and_the_others_do_not() {
        // The contender needs twice the time in `sort` for each transaction, so half as many have the rest of it.
        let sides = [
            ("a;main;read 500\na;main;sort 500", 1.0),
            ("b;main;read 340\nb;main;sort 660\nb;rare 1", 1.5),
        ];
        let found = difference(3, "b", sides).unwrap();
        assert_eq!((found.level, found.samples), (3, [1000, 1001]));
        assert_eq!(
            frames(&found),
            [
                ("main", 0, [1000.0, 1500.0], true),
                ("read", 1, [500.0, 510.0], false),
                ("sort", 1, [500.0, 990.0], true),
            ]
        );
        assert_eq!(found.frames[2].before_us, 505.0);
        // `main` differs only by what it calls.
        let named: Vec<&str> = found
            .functions
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(named, ["sort"]);
        assert_eq!(found.functions[0].cpu_us, [500.0, 990.0]);
    }

    #[test]
    fn functions_without_symbols_and_the_beginnings_of_threads_are_no_difference() {
        let sides = [
            (
                "t;[libc.so.6];[mariadbd];main;read 900\nt;[libc.so.6];[mariadbd];main;read;[libc.so.6] 100",
                1.0,
            ),
            (
                "t;__clone3;start_thread;main;read 880\nt;__clone3;start_thread;main;read;__memmove_avx 120",
                1.0,
            ),
        ];
        let found = difference(0, "b", sides).unwrap();
        assert_eq!(
            frames(&found),
            [
                ("main", 0, [1000.0, 1000.0], false),
                ("read", 1, [1000.0, 1000.0], false),
                ("__memmove_avx", 2, [0.0, 120.0], false),
            ]
        );
    }

    #[test]
    fn one_side_alone_makes_no_difference() {
        assert_eq!(difference(0, "b", [("", 1.0), ("b;main 5", 1.0)]), None);
    }
}
