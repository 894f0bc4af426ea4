//! Sampled stacks as a tree of frames, pruned so that it fits a page.
//!
//! Shares of samples are shares of processor time; they are of one short look, so they carry no interval and
//! decide nothing.

use std::collections::BTreeMap;

use dbduel_record::Record;
use serde::Serialize;

/// Frames with a smaller share of the samples are left out.
const SHARE_MIN: f64 = 0.004;
/// Frames of a stack beyond this are left out.
pub(super) const DEPTH_MAX: usize = 48;

/// The stacks of one contender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flame {
    /// Name of the contender.
    pub contender: String,
    /// Samples in all.
    pub samples: u64,
    /// Frames, callers before those whom they call; outermost are groups of threads.
    pub frames: Vec<Frame>,
}

/// One function with everything that it called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Name of the function, or of the threads when it is outermost.
    pub name: String,
    /// Callers above it.
    pub depth: usize,
    /// Samples of frames at its left, so that a drawing can place it.
    pub before: u64,
    /// Samples in it and in what it called.
    pub samples: u64,
}

/// A function with what it called.
#[derive(Debug, Default)]
struct Node {
    samples: u64,
    called: BTreeMap<String, Node>,
}

/// The stacks of every contender that has some under the heaviest load; of a suite none, where differences are shown.
pub fn flames(record: &Record) -> Vec<Flame> {
    let level = record.plan.heaviest_level();
    let Some(level) = level.filter(|_| record.plan.suite.is_none()) else {
        return Vec::new();
    };
    let contenders = record.plan.contenders.iter().zip(&record.contenders);
    contenders
        .filter_map(|(contender, files)| flame(&contender.name, files.stacks.get(&level)?))
        .collect()
}

fn flame(contender: &str, folded: &str) -> Option<Flame> {
    let mut root = Node::default();
    for (stack, count) in counted(folded) {
        root.samples = root.samples.saturating_add(count);
        let mut node = &mut root;
        for name in stack.split(';').take(DEPTH_MAX) {
            node = node.called.entry(name.to_owned()).or_default();
            node.samples = node.samples.saturating_add(count);
        }
    }
    let least = ((root.samples as f64 * SHARE_MIN).ceil() as u64).max(1);
    let mut frames = Vec::new();
    lay_out(&root, 0, 0, least, &mut frames);
    (!frames.is_empty()).then(|| Flame {
        contender: contender.to_owned(),
        samples: root.samples,
        frames,
    })
}

/// Folded stacks with their counts; a line that a crash tore has none and is left out.
pub(super) fn counted(folded: &str) -> impl Iterator<Item = (&str, u64)> {
    folded.lines().filter_map(|line| {
        let (stack, count) = line.rsplit_once(' ')?;
        Some((stack, count.parse().ok()?))
    })
}

fn lay_out(node: &Node, depth: usize, before: u64, least: u64, frames: &mut Vec<Frame>) {
    let mut before = before;
    for (name, called) in &node.called {
        if called.samples >= least {
            frames.push(Frame {
                name: name.clone(),
                depth,
                before,
                samples: called.samples,
            });
            lay_out(called, depth + 1, before, least, frames);
        }
        before += called.samples;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_hold_what_they_called_and_rare_ones_are_left_out() {
        let folded = "a;f;g 600\na;f 300\nb;h 99\nb;rare 1\ntorn;li";
        let flame = flame("one", folded).unwrap();
        assert_eq!(flame.samples, 1000);
        let frames: Vec<(&str, usize, u64, u64)> = flame
            .frames
            .iter()
            .map(|frame| {
                (
                    frame.name.as_str(),
                    frame.depth,
                    frame.before,
                    frame.samples,
                )
            })
            .collect();
        assert_eq!(
            frames,
            [
                ("a", 0, 0, 900),
                ("f", 1, 0, 900),
                ("g", 2, 0, 600),
                ("b", 0, 900, 100),
                ("h", 1, 900, 99),
            ]
        );
    }

    #[test]
    fn nothing_sampled_is_no_flame() {
        assert_eq!(flame("one", ""), None);
        assert_eq!(flame("one", "no count\n"), None);
    }
}
