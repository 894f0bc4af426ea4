//! The workload compared with the published facts: one table of measures, each with its distance and its limit.
//!
//! `cargo test -p dbduel-load fidelity -- --nocapture` prints it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use dbduel_client::random::Random;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::Value;

use super::access::Access;
use super::mix::OPERATIONS;
use super::settings::{LIST_LIMIT, Settings};
use super::test_rows::{filled, links, payload, resolved};

/// A page of a table, bytes: what servers compress at a time.
const PAGE: usize = 16 << 10;

/// A measure with the published fact.
struct Measure {
    name: String,
    fact: f64,
    found: f64,
    distance: f64,
    limit: f64,
}

#[derive(Default)]
struct Table(Vec<Measure>);

impl Table {
    /// Adds a measure whose distance is a difference.
    fn absolute(&mut self, name: impl Into<String>, fact: f64, found: f64, limit: f64) {
        self.push(name.into(), fact, found, (found - fact).abs(), limit);
    }

    /// Adds a measure whose distance is a share of the fact.
    fn relative(&mut self, name: impl Into<String>, fact: f64, found: f64, limit: f64) {
        self.push(name.into(), fact, found, (found / fact - 1.0).abs(), limit);
    }

    fn push(&mut self, name: String, fact: f64, found: f64, distance: f64, limit: f64) {
        self.0.push(Measure {
            name,
            fact,
            found,
            distance,
            limit,
        });
    }

    fn text(&self) -> String {
        let mut text = format!(
            "\n{:<52} {:>12} {:>12} {:>9} {:>7}\n",
            "measure", "fact", "found", "distance", "limit"
        );
        for Measure {
            name,
            fact,
            found,
            distance,
            limit,
        } in &self.0
        {
            let verdict = if distance <= limit { "" } else { "  BEYOND" };
            // Writing to memory does not fail.
            let _ = writeln!(
                text,
                "{name:<52} {fact:>12.4} {found:>12.4} {distance:>9.4} {limit:>7.3}{verdict}"
            );
        }
        text
    }
}

fn settings(given: &[(&str, Value)]) -> std::sync::Arc<Settings> {
    Settings::of(&resolved(given).unwrap())
}

#[test]
fn the_workload_keeps_its_distance_from_the_published_facts() {
    let mut table = Table::default();
    degrees_of_a_loaded_graph(&mut table);
    payloads(&mut table);
    accesses_by_rank(&mut table);
    mix(&mut table);
    lists(&mut table);
    // Not a print macro, whose output the test harness would keep to itself.
    let _ = std::io::stderr().write_all(table.text().as_bytes());
    let beyond: Vec<&str> = table
        .0
        .iter()
        .filter(|measure| measure.distance > measure.limit || measure.distance.is_nan())
        .map(|measure| measure.name.as_str())
        .collect();
    assert!(beyond.is_empty(), "{beyond:?}{}", table.text());
}

/// Out-degrees, counted in the rows of a graph of 100 000 nodes, compared with the sample's quantiles and with the
/// expectation from the sample for so many nodes.
fn degrees_of_a_loaded_graph(table: &mut Table) {
    let nodes = 100_000;
    let rows = filled(&[("maxid1", (nodes + 1).into())]);
    let mut degrees: BTreeMap<u64, u64> = BTreeMap::new();
    for link in links(&rows) {
        *degrees.entry(link.id1).or_default() += 1;
    }
    let mut sorted: Vec<u64> = degrees.into_values().collect();
    sorted.resize(nodes as usize, 0);
    sorted.sort_unstable();
    let found = |quantile: f64| sorted[(quantile * nodes as f64) as usize] as f64;
    for (quantile, fact, limit) in [
        (0.5, 1.0, 0.0),
        (0.9, 3.0, 0.0),
        (0.95, 5.0, 0.0),
        (0.97, 7.0, 0.0),
        (0.98, 9.0, 0.15),
        (0.99, 15.0, 0.1),
        (0.995, 27.0, 0.1),
        (0.999, 264.0, 0.05),
        (0.9995, 979.0, 0.05),
        (0.9999, 6_051.0, 0.1),
    ] {
        table.relative(
            format!("out-degree, quantile {quantile}"),
            fact,
            found(quantile),
            limit,
        );
    }
    let none = sorted.iter().filter(|degree| **degree == 0).count() as f64 / nodes as f64;
    table.absolute(
        "out-degree, share of nodes without links",
        0.453_316,
        none,
        0.001,
    );
    table.absolute(
        "out-degree of the hottest node",
        961_963.0,
        sorted[nodes as usize - 1] as f64,
        0.0,
    );
    table.relative(
        "links of 100 000 nodes",
        1_341_526.0,
        sorted.iter().sum::<u64>() as f64,
        0.01,
    );
}

/// Lengths, and compressed sizes of pages full of payloads. The compression ratios in the original's configuration are
/// approximate ("~30%", "~60%").
fn payloads(table: &mut Table) {
    // Enough chunks that it does not matter which motifs they have.
    let few = filled(&[("maxid1", 60_001.into()), ("nlinks_max", 50_000.into())]);
    let of_links: Vec<Vec<u8>> = links(&few).map(|link| link.data).collect();
    let of_nodes: Vec<Vec<u8>> = few["nodetable"]
        .iter()
        .map(|row| payload(&row[4]))
        .collect();
    for (kind, payloads, median, mean, documented) in [
        ("link", &of_links, 8.0, 13.2, 0.3),
        ("node", &of_nodes, 128.0, 211.0, 0.6),
    ] {
        let mut lengths: Vec<usize> = payloads.iter().map(Vec::len).collect();
        lengths.sort_unstable();
        let average = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        table.relative(
            format!("{kind} payload, median bytes"),
            median,
            lengths[lengths.len() / 2] as f64,
            0.02,
        );
        table.relative(format!("{kind} payload, mean bytes"), mean, average, 0.03);
        let all: Vec<u8> = payloads.iter().take(100_000).flatten().copied().collect();
        let pages: Vec<&[u8]> = all.chunks_exact(PAGE).take(100).collect();
        let ratio = |compress: &dyn Fn(&[u8]) -> usize| {
            let compressed: usize = pages.iter().map(|page| compress(page)).sum();
            compressed as f64 / (pages.len() * PAGE) as f64
        };
        let zlib = ratio(&|page| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(page).unwrap();
            encoder.finish().unwrap().len()
        });
        let lz4 = ratio(&|page| lz4_flex::block::compress(page).len());
        table.absolute(
            format!("{kind} payloads, zlib 6 on 16 kB pages"),
            documented,
            zlib,
            0.15,
        );
        table.absolute(
            format!("{kind} payloads, lz4 on 16 kB pages"),
            documented,
            lz4,
            0.25,
        );
    }
}

/// Share of the accesses that goes to the hottest ids, of ten million, compared with Zipf's law with the configured
/// shapes.
fn accesses_by_rank(table: &mut Table) {
    let settings = settings(&[]);
    let of = |access: &Access| {
        // The uncorrelated part, where there is one: it has 95 % of the draws and more.
        let (share, ranked) = match &access.blended {
            Some((percent, other)) => (percent / 100.0, other.ranking.clone()),
            None => (1.0, access.main.ranking.clone()),
        };
        let (mut random, mut previous) = (Random::new(21), 0);
        let draws = 1_000_000;
        let mut ranks: Vec<u64> = (0..draws)
            .map(|_| ranked.rank(access.draw(&mut random, &mut previous) - settings.start))
            .collect();
        ranks.sort_unstable();
        (share, ranks)
    };
    for (name, access, shares) in [
        ("link reads", &settings.read, [0.224, 0.376, 0.618, 0.866]),
        ("link writes", &settings.write, [0.156, 0.294, 0.545, 0.834]),
        (
            "node reads",
            &settings.node_read,
            [0.073, 0.176, 0.421, 0.771],
        ),
        (
            "node updates",
            &settings.node_update,
            [0.065, 0.162, 0.403, 0.761],
        ),
        (
            "node deletes",
            &settings.node_delete,
            [0.001, 0.01, 0.1, 0.5],
        ),
    ] {
        let (part, ranks) = of(access);
        for (top, share) in [0.001, 0.01, 0.1, 0.5].into_iter().zip(shares) {
            let below = ranks.partition_point(|rank| (*rank as f64) < top * settings.nodes as f64);
            // Draws of the other part fall anywhere as far as this ranking is concerned.
            let fact = part * share + (1.0 - part) * top;
            let found = below as f64 / ranks.len() as f64;
            table.absolute(
                format!("{name}, share of the hottest {} %", top * 100.0),
                fact,
                found,
                0.004,
            );
        }
    }
}

fn mix(table: &mut Table) {
    let settings = settings(&[]);
    let mut random = Random::new(22);
    let draws = 2_000_000;
    let mut counts = [0_u32; OPERATIONS.len()];
    for _ in 0..draws {
        counts[settings.mix.draw(&mut random, false).0] += 1;
    }
    let facts = [
        8.9886601, 2.9907664, 8.0122125, 4.8863567, 0.5261142, 50.7119145, 2.5732789, 7.366437,
        1.0115914, 12.9326683,
    ];
    for ((operation, fact), count) in OPERATIONS.iter().zip(facts).zip(counts) {
        let found = 100.0 * f64::from(count) / f64::from(draws);
        table.absolute(
            format!("mix, percent of {}", operation.class),
            fact,
            found,
            0.15,
        );
    }
}

/// Links per list, with the faults of the original program as in its published numbers, and ids per multiget.
fn lists(table: &mut Table) {
    let settings = settings(&[("original_bugs", "all".into())]);
    let (mut random, mut previous) = (Random::new(23), 0);
    let draws = 4_000_000;
    let mut length = || {
        let id1 = settings.read.draw(&mut random, &mut previous);
        let kind = random.below(settings.link_types);
        settings.graph.loaded(id1, kind).min(LIST_LIMIT)
    };
    let mean = (0..draws).map(|_| length() as f64).sum::<f64>() / f64::from(draws);
    table.relative("links per list at 10 million nodes, as run", 7.9, mean, 0.1);
    table.relative(
        "ids per multiget, as run",
        3.62,
        settings.multiget.mean(),
        0.01,
    );
    let documented = self::settings(&[]);
    table.relative(
        "ids per multiget, as documented",
        2.6,
        documented.multiget.mean(),
        0.01,
    );
}
