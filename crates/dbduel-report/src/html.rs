//! The report as one HTML page that needs nothing else: no network, no font. Its script only adds to a page
//! that is complete without it: values under the pointer, series switched off, a zoomed time axis. The time axis is zoomed
//! by 130 lines of our own: uPlot, tried, leaves shapes, shades, stalls, keyboard, dark colours and printing to us (109 lines
//! for the first of three kinds of chart), and adds 53 kB and the data as JSON to every page.

use dbduel_audit::Finding;
use dbduel_judge::Summary;
use dbduel_judge::summary::Duel;
use serde::Serialize;

use super::chart::{self, LevelChart, Svg};
use super::explanation::has_content;
use super::template::rendered;
use super::view::View;
use super::view::figures::{MAX, MEAN, NamedFigure, P50, P95, P99};
use super::{Format, Options, Rendered, attribution, order_entry, words};

/// Drawings for wide pages and for print, pixels.
const WIDE: f64 = 960.0;
/// Drawings for telephones.
const NARROW: f64 = 340.0;
/// Drawings of which two or three stand side by side.
const HALF: f64 = 450.0;
const THIRD: f64 = 290.0;

pub(super) const PAGE_STYLE: &str = concat!(
    include_str!("templates/report.css"),
    include_str!("templates/fairness.css")
);
/// Tooltips, series toggles and zoom; everything else works without the script.
const SCRIPT: &str = include_str!("templates/report.js");

/// The charts over load levels, shown when there are several.
const LEVEL_CHARTS: [LevelChart; 6] = [
    LevelChart {
        title: "Throughput",
        figure: |measures| &measures.throughput_per_s,
        unit: |_| (1.0, "transactions/s"),
    },
    latency("Mean latency", MEAN),
    latency("Median latency", P50),
    latency("p95 latency", P95),
    latency("p99 latency", P99),
    latency("Largest latency", MAX),
];

const fn latency(title: &'static str, (_, figure): NamedFigure) -> LevelChart {
    LevelChart {
        title,
        figure,
        unit: words::latency_unit,
    }
}

pub const HTML: Format = Format {
    name: "html",
    file_name: Some("report.html"),
    render: html,
};

/// A drawing for wide pages and one for narrow ones.
#[derive(Serialize)]
pub(super) struct Pair {
    wide: String,
    narrow: String,
}

impl Pair {
    fn of(draw: impl Fn(f64) -> String) -> Self {
        Self {
            wide: draw(WIDE),
            narrow: draw(NARROW),
        }
    }

    /// One of `count` drawings that share the width of the page.
    fn shared(count: usize, draw: impl Fn(f64) -> Option<String>) -> Option<Self> {
        let wide = match count {
            0 | 1 => WIDE,
            2 => HALF,
            _ => THIRD,
        };
        Some(Self {
            wide: draw(wide)?,
            narrow: draw(NARROW)?,
        })
    }

    pub(super) fn maybe(draw: impl Fn(f64) -> Option<String>) -> Option<Self> {
        Self::shared(1, draw)
    }
}

#[derive(Serialize)]
struct OverTime {
    throughput: Pair,
    /// Resource series of the servers; absent without per-second readings.
    meanwhile: Option<Pair>,
}

#[derive(Serialize)]
struct Page {
    view: View,
    style: String,
    script: &'static str,
    /// Shapes of the contenders, for use in text.
    marks: Vec<String>,
    /// Absent for a suite, whose verdicts are matrices.
    forest: Option<Pair>,
    blocks: Vec<Pair>,
    by_level: Vec<Pair>,
    latency: Vec<Pair>,
    curves: Vec<Pair>,
    steadiness: Vec<Pair>,
    tradeoff: Option<Pair>,
    over_time: Vec<OverTime>,
    new_orders: Vec<Pair>,
    schedule: Option<Pair>,
    /// One per explanation; absent where the time could not be divided.
    waterfalls: Vec<Option<Pair>>,
    /// One per level of a designed contest; absent where nothing was divided.
    effects: Vec<Option<Pair>>,
    processor: Option<Pair>,
    flames: Vec<Pair>,
    differences: Vec<LevelDifferences>,
}

/// Stacks of contenders against those of the baseline at one level.
#[derive(Serialize)]
struct LevelDifferences {
    level: usize,
    label: String,
    /// Verdicts of the level, as text.
    verdicts: String,
    pairs: Vec<Pair>,
}

fn html(summary: &Summary, findings: &[Finding], _options: &Options) -> Rendered {
    let page = Page {
        view: View::new(summary, findings),
        style: format!("{}{PAGE_STYLE}", chart::STYLE),
        script: SCRIPT,
        marks: (0..summary.contenders.len()).map(mark).collect(),
        forest: summary
            .suite
            .is_none()
            .then(|| Pair::of(|width| chart::forest(summary, width))),
        blocks: per_level(summary, chart::block_ratios),
        by_level: level_charts(summary),
        latency: per_level(summary, chart::latency_profile),
        curves: per_level(summary, chart::latency_curve),
        steadiness: per_level(summary, chart::steadiness),
        tradeoff: match summary.suite {
            Some(_) => None,
            None => Pair::maybe(|width| chart::throughput_against_latency(summary, width)),
        },
        over_time: drawn(summary)
            .iter()
            .filter_map(|duel| {
                Some(OverTime {
                    throughput: Pair::maybe(|width| {
                        chart::throughput_over_time(summary, duel, width)
                    })?,
                    meanwhile: Pair::maybe(|width| chart::meanwhile(summary, duel, width)),
                })
            })
            .collect(),
        new_orders: drawn(summary)
            .iter()
            .filter_map(|duel| {
                Pair::maybe(|width| order_entry::chart::new_orders(summary, duel, width))
            })
            .collect(),
        schedule: Pair::maybe(|width| chart::schedule_strip(summary, width)),
        waterfalls: summary
            .explanations
            .iter()
            .filter(|one| summary.suite.is_none() && has_content(one))
            .map(|one| Pair::maybe(|width| chart::waterfall(summary, one, width)))
            .collect(),
        effects: summary
            .duels
            .iter()
            .filter(|duel| duel.attribution.is_some())
            .map(|duel| Pair::maybe(|width| attribution::chart::effects(summary, duel, width)))
            .collect(),
        differences: differences(summary),
        flames: summary
            .flames
            .iter()
            .map(|flame| Pair::of(|width| chart::flame(summary, flame, width)))
            .collect(),
        processor: match summary.suite {
            Some(_) => None,
            None => Pair::maybe(|width| chart::processor_time(summary, width)),
        },
    };
    Rendered::of_files(&rendered("report.html", &page), Vec::new())
}

/// The duels with charts of their own. A suite has too many, and shows matrices.
fn drawn(summary: &Summary) -> &[Duel] {
    match summary.suite {
        Some(_) => &[],
        None => &summary.duels,
    }
}

fn differences(summary: &Summary) -> Vec<LevelDifferences> {
    let of_level = |duel: &Duel| {
        let own = summary.flame_differences.iter();
        let own = own.filter(|difference| difference.level == duel.level);
        let draw =
            |difference| Pair::of(|width| chart::flame_difference(summary, difference, width));
        let pairs: Vec<Pair> = own.map(draw).collect();
        let verdicts = duel.comparisons.iter().map(|one| {
            let unit = words::RatioUnit::of([&one.ratio]);
            format!(
                "{}: {} ({})",
                one.contender,
                one.verdict.word(),
                unit.doubt(&one.ratio)
            )
        });
        (!pairs.is_empty()).then(|| LevelDifferences {
            level: duel.level,
            label: duel.label.clone(),
            verdicts: verdicts.collect::<Vec<_>>().join("; "),
            pairs,
        })
    };
    summary.duels.iter().filter_map(of_level).collect()
}

fn per_level(summary: &Summary, draw: fn(&Summary, &Duel, f64) -> Option<String>) -> Vec<Pair> {
    let duels = drawn(summary);
    let pairs = duels
        .iter()
        .filter_map(|duel| Pair::shared(duels.len(), |width| draw(summary, duel, width)));
    pairs.collect()
}

fn level_charts(summary: &Summary) -> Vec<Pair> {
    if drawn(summary).len() < 2 {
        return Vec::new();
    }
    let pairs = LEVEL_CHARTS.iter().filter_map(|chart| {
        Pair::shared(LEVEL_CHARTS.len(), |width| {
            chart::by_level(summary, chart, width)
        })
    });
    pairs.collect()
}

/// A contender's shape, the size of a letter.
fn mark(contender: usize) -> String {
    let mut svg = Svg::new(14.0);
    let class = format!("mark c{}", contender % chart::COLOURS);
    svg.path(&chart::marker(contender, (7.0, 7.0), 5.0), &class, "");
    svg.finish(14.0, "")
}
