//! The parameters in their types.

use std::sync::{Arc, Mutex, PoisonError};

use dbduel_driver::Protocol;
use dbduel_record::plan::Parameters;

use super::access::{
    Access, Accesses, GrayZipf, LINK_READS, LINK_WRITES, NODE_READS, NODE_WRITES, Ranked, Ranks,
};
use super::arithmetic::{AccessFunction, AccessRule, DegreeFunction};
use super::degrees::Model;
use super::graph::{Graph, Law, Shape};
use super::mix::{Mix, OPERATIONS};
use super::payload::{LINK_MAX, NODE_MAX, PayloadRule};
use super::shuffle::Shuffle;
use super::targets::{MultigetSizes, Targets};
use crate::parameters::Resolved;

/// Seeds of the rankings, the original's: by degree (and by correlated access), by access uncorrelated with degree,
/// and by access to nodes.
const DEGREE_SEED: u64 = 20_343_988_438_726_021;
const UNCORRELATED_SEED: u64 = 53_238_253_823_453;
const NODE_SEED: u64 = 4_766_565_305_853_767_165;

/// Length of every motif in the original program, which ignores its configuration, bytes.
const MOTIF_AS_RUN: usize = 512;

/// The first link type; the others follow.
pub(super) const LINK_TYPE: u64 = 123_456_789;
/// The type of all nodes.
pub(super) const NODE_TYPE: u64 = 2_048;
/// Maximum number of links that a list returns.
pub(super) const LIST_LIMIT: u64 = 10_000;

/// Faults of the original program that can be reproduced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bugs {
    /// Link writes use the blend of link reads.
    pub write_blend: bool,
    /// The remainder of the split over types is too large, which adds 6.6 % of links.
    pub degree_split: bool,
    /// A multiget asks for one link too many, and never for a single one.
    pub multiget_size: bool,
    /// The configured length of motifs is ignored.
    pub motif_length: bool,
}

impl Bugs {
    /// Parses the list; `None` when a word is unknown.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut bugs = Bugs::default();
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            let all = word == "all";
            bugs.write_blend |= all || word == "write-blend";
            bugs.degree_split |= all || word == "degree-split";
            bugs.multiget_size |= all || word == "multiget-size";
            bugs.motif_length |= all || word == "motif-length";
            let known = [
                "none",
                "all",
                "write-blend",
                "degree-split",
                "multiget-size",
                "motif-length",
            ];
            if !known.contains(&word) {
                return None;
            }
        }
        Some(bugs)
    }
}

/// The parameters in their types, shared by all clients.
#[derive(Debug)]
pub(super) struct Settings {
    pub graph: Graph,
    pub start: u64,
    pub nodes: u64,
    pub link_types: u64,
    pub generate_nodes: bool,
    pub mix: Mix,
    pub read: Access,
    pub write: Access,
    pub node_read: Access,
    pub node_update: Access,
    pub node_delete: Access,
    pub targets: Targets,
    pub multiget: MultigetSizes,
    pub link_add: PayloadRule,
    pub link_update: PayloadRule,
    pub node_add: PayloadRule,
    pub node_update_payload: PayloadRule,
    pub protocol: Protocol,
}

/// The most recent settings: all clients of a contender request the same ones, which contain sums over many ranks.
static LAST: Mutex<Option<(Parameters, Arc<Settings>)>> = Mutex::new(None);

impl Settings {
    /// Converts resolved parameters.
    pub(super) fn of(parameters: &Parameters) -> Arc<Self> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, settings)) if known == parameters => Arc::clone(settings),
            _ => {
                let settings = Arc::new(Self::new(parameters));
                *last = Some((parameters.clone(), Arc::clone(&settings)));
                settings
            }
        }
    }

    fn new(parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        let bugs = Bugs::parse(resolved.text("original_bugs")).unwrap_or_default();
        let start = resolved.count("startid1");
        let nodes = resolved.count("maxid1").saturating_sub(start).max(1);
        let link_types = resolved.count("link_type_count");
        let graph = Graph::new(Shape {
            start,
            nodes,
            link_types,
            law: law(resolved).unwrap_or(Law::ByRank(Model::Knots)),
            degree_max: resolved.count("nlinks_max"),
            seed: DEGREE_SEED,
            split_bug: bugs.degree_split,
        });
        let rankings = Rankings {
            resolved,
            start,
            nodes,
            by_degree: Arc::new(Shuffle::new(DEGREE_SEED, nodes)),
            uncorrelated: Arc::new(Shuffle::new(UNCORRELATED_SEED, nodes)),
            of_nodes: Arc::new(Shuffle::new(NODE_SEED, nodes)),
        };
        let write_blend = if bugs.write_blend { "read" } else { "write" };
        let payload = |prefix: &str| payload_rule(resolved, prefix, bugs.motif_length);
        Settings {
            graph,
            start,
            nodes,
            link_types,
            generate_nodes: resolved.switch("generate_nodes"),
            mix: Mix::new(
                percentages(resolved),
                resolved.number("getlinklist_history"),
            ),
            read: rankings.of_links("read", "read", LINK_READS),
            write: rankings.of_links("write", write_blend, LINK_WRITES),
            node_read: rankings.of_nodes("node_read", NODE_READS),
            node_update: rankings.of_nodes("node_update", NODE_WRITES),
            node_delete: rankings.of_nodes("node_delete", NODE_WRITES),
            targets: Targets {
                random_below: resolved.count("randomid2max"),
                apart: resolved.integer("id2gen_config") == 1,
            },
            multiget: MultigetSizes::new(resolved, bugs.multiget_size),
            link_add: payload("link_add"),
            link_update: payload("link_up"),
            node_add: payload("node_add"),
            node_update_payload: payload("node_up"),
            protocol: if resolved.text("protocol") == "text" {
                Protocol::Text
            } else {
                Protocol::Prepared
            },
        }
    }
}

/// Percentages in the order of the operations.
pub(super) fn percentages(resolved: Resolved<'_>) -> [f64; OPERATIONS.len()] {
    OPERATIONS.map(|operation| resolved.number(operation.parameter))
}

fn payload_rule(resolved: Resolved<'_>, prefix: &str, motif_as_run: bool) -> PayloadRule {
    let of = |name: &str| format!("{prefix}_datagen{name}");
    let (first, last) = (
        resolved.count(&of("_startbyte")),
        resolved.count(&of("_endbyte")),
    );
    let (size, limit) = if prefix.starts_with("link") {
        ("link_datasize", LINK_MAX)
    } else {
        ("node_datasize", NODE_MAX)
    };
    let is_uniform = short(resolved.text(&of(""))) == "uniformdatagenerator";
    PayloadRule {
        median: resolved.number(size),
        limit,
        first_byte: first as u8,
        bytes: last.saturating_sub(first) + 1,
        uniqueness: if is_uniform {
            1.0
        } else {
            resolved.number(&of("_uniqueness"))
        },
        motif: if motif_as_run {
            MOTIF_AS_RUN
        } else {
            resolved.count(&of("_motif_length")) as usize
        },
    }
}

/// Last part of a class name, in lower case.
pub(super) fn short(name: &str) -> String {
    name.rsplit('.')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// Law of the nodes' links; `None` when there is no function of that name.
pub(super) fn law(resolved: Resolved<'_>) -> Option<Law> {
    let (default, config) = (
        resolved.count("nlinks_default"),
        resolved.count("nlinks_config"),
    );
    let mean = resolved.number("nlinks_mean");
    let by_id = |function| Law::ById(function, default);
    Some(match short(resolved.text("nlinks_func")).as_str() {
        "real" => Law::ByRank(Model::Knots),
        "fitted" => Law::ByRank(Model::Fitted),
        "const" => Law::ByRank(Model::Constant(default)),
        "uniformdistribution" => Law::ByRank(Model::Constant(mean.round() as u64)),
        "zipfdistribution" => Law::ByRank(Model::Zipf {
            shape: resolved.number("nlinks_shape"),
            mean,
        }),
        "geometricdistribution" => Law::ByRank(Model::Geometric {
            less: resolved.number("nlinks_prob"),
            mean,
        }),
        "reciprocal" => by_id(DegreeFunction::Reciprocal),
        "multiples" => by_id(DegreeFunction::Multiples(config)),
        // The program knows the first name, its documentation the second.
        "perfect_squares" | "perfect_powers" => by_id(DegreeFunction::PerfectPowers(config)),
        "exponential" => by_id(DegreeFunction::Exponential(config)),
        _ => return None,
    })
}

/// The rule about ids of this access function; `None` when it is a distribution.
pub(super) fn access_function(resolved: Resolved<'_>, prefix: &str) -> Option<AccessFunction> {
    let config = resolved.count(&format!("{prefix}_config"));
    match short(resolved.text(&format!("{prefix}_function"))).as_str() {
        "reciprocal" => Some(AccessFunction::Reciprocal),
        "multiple" => Some(AccessFunction::Multiple(config)),
        "power" => Some(AccessFunction::Power(config)),
        "perfect_power" => Some(AccessFunction::PerfectPower(config)),
        _ => None,
    }
}

/// Data shared by the access distributions.
struct Rankings<'a> {
    resolved: Resolved<'a>,
    start: u64,
    nodes: u64,
    by_degree: Arc<Shuffle>,
    uncorrelated: Arc<Shuffle>,
    of_nodes: Arc<Shuffle>,
}

impl Rankings<'_> {
    fn ranks(&self, prefix: &str, trace: Accesses) -> Ranks {
        let count = self.nodes;
        if let Some(function) = access_function(self.resolved, prefix) {
            return Ranks::Arithmetic(AccessRule {
                function,
                start: self.start,
                nodes: count,
            });
        }
        let number = |name: &str| self.resolved.number(&format!("{prefix}_{name}"));
        match short(self.resolved.text(&format!("{prefix}_function"))).as_str() {
            "uniformdistribution" => Ranks::Uniform { count },
            "geometricdistribution" => Ranks::Geometric {
                count,
                log_miss: (1.0 - number("prob")).ln(),
            },
            "real" => Ranks::traced(trace, count),
            "round_robin" => Ranks::RoundRobin { count },
            _ => Ranks::Zipf(GrayZipf::new(count, number("shape"))),
        }
    }

    fn of_links(&self, prefix: &str, blend: &str, trace: Accesses) -> Access {
        let percent = self.resolved.number(&format!("{blend}_uncorr_blend"));
        let other = Ranked {
            ranks: self.ranks(&format!("{blend}_uncorr"), trace),
            ranking: Arc::clone(&self.uncorrelated),
        };
        Access {
            start: self.start,
            main: Ranked {
                ranks: self.ranks(prefix, trace),
                ranking: Arc::clone(&self.by_degree),
            },
            blended: (percent > 0.0).then_some((percent, other)),
        }
    }

    fn of_nodes(&self, prefix: &str, trace: Accesses) -> Access {
        Access {
            start: self.start,
            main: Ranked {
                ranks: self.ranks(prefix, trace),
                ranking: Arc::clone(&self.of_nodes),
            },
            blended: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_rows::resolved;
    use super::*;
    use dbduel_client::random::Random;

    #[test]
    fn names_of_the_original_classes_are_understood() {
        let settings = Settings::new(
            &resolved(&[
                ("maxid1", 1001.into()),
                (
                    "read_function",
                    "com.facebook.LinkBench.distributions.UniformDistribution".into(),
                ),
                (
                    "link_add_datagen",
                    "com.facebook.LinkBench.generators.UniformDataGenerator".into(),
                ),
                ("nlinks_func", "real".into()),
            ])
            .unwrap(),
        );
        assert_eq!(settings.read.main.ranks, Ranks::Uniform { count: 1000 });
        assert_eq!(settings.link_add.uniqueness, 1.0);
        assert_eq!(settings.link_update.uniqueness, 0.225);
    }

    #[test]
    fn rules_about_ids_choose_and_connect_the_nodes_that_they_name() {
        let given = [
            ("startid1", 10.into()),
            ("maxid1", 1010.into()),
            ("nlinks_func", "PERFECT_SQUARES".into()),
            ("nlinks_config", 2.into()),
            ("nlinks_default", 1.into()),
            ("read_function", "MULTIPLE".into()),
            ("read_config", 100.into()),
            ("read_uncorr_blend", 0.into()),
            ("node_delete_function", "round_robin".into()),
        ];
        let settings = Settings::new(&resolved(&given).unwrap());
        let (mut random, mut previous) = (Random::new(5), 0);
        let mut draw = |access: &Access| access.draw(&mut random, &mut previous);
        assert!((0..1_000).all(|_| draw(&settings.read).is_multiple_of(100)));
        assert_eq!([(); 3].map(|()| draw(&settings.node_delete)), [11, 12, 13]);
        // One link each, and 2·k − 1 for the square of k: of 4 to 31.
        assert_eq!(settings.graph.links(), 1_000 + 31 * 31 - 3 * 3);
        assert_eq!(settings.graph.degree(900), 1 + 59);
    }

    #[test]
    fn bugs_of_the_original_are_off_unless_asked_for() {
        let write_blend = |bugs: &str| {
            let given = [("maxid1", 1001.into()), ("original_bugs", bugs.into())];
            let settings = Settings::new(&resolved(&given).unwrap());
            let percent = settings.write.blended.as_ref().map(|(percent, _)| *percent);
            (percent, settings.link_add.motif, settings.multiget.mean())
        };
        let (blend, motif, size) = write_blend("none");
        assert_eq!((blend, motif), (Some(95.0), 128));
        assert!((size - 2.618).abs() < 0.01, "{size}");
        let (blend, motif, size) = write_blend("all");
        assert_eq!((blend, motif), (Some(99.5), 512));
        assert!((size - 3.618).abs() < 0.01, "{size}");
        assert_eq!(write_blend("motif-length, degree-split").0, Some(95.0));
    }
}
