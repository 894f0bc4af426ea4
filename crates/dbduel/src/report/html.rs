//! The report as one HTML page that needs nothing else: no network, no font. Its script only adds to a page
//! that is complete without it: values under the pointer, series switched off, time stretched.
//!
//! The template escapes every text; only charts, which escape their own, go in as they are.

use dbduel_record::event::Finding;
use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::chart::{self, LevelChart, Svg};
use super::explanation::is_telling;
use super::view::{BY_CLIENTS_HEADS, COLUMNS, STORAGE_HEADS, View};
use super::{Format, Options, Rendered, words};
use crate::judge::Summary;
use crate::judge::summary::Duel;

/// Drawings for wide pages and for print, pixels.
const WIDE: f64 = 960.0;
/// Drawings for telephones.
const NARROW: f64 = 340.0;
/// Drawings of which two or three stand side by side.
const HALF: f64 = 450.0;
const THIRD: f64 = 290.0;

const TEMPLATE: &str = include_str!("templates/report.html");
/// Parts of pages with a file of their own.
const PARTS: [(&str, &str); 4] = [
    ("head.html", include_str!("templates/head.html")),
    ("drawings.html", include_str!("templates/drawings.html")),
    ("fairness.html", include_str!("templates/fairness.html")),
    ("disclosure.html", include_str!("templates/disclosure.html")),
];
pub(super) const PAGE_STYLE: &str = concat!(
    include_str!("templates/report.css"),
    include_str!("templates/fairness.css")
);
/// Hover, series, zoom; everything else works without it.
const SCRIPT: &str = include_str!("templates/report.js");

/// The charts over load levels, shown when there are several.
const LEVEL_CHARTS: [LevelChart; 6] = [
    LevelChart {
        title: "Throughput",
        figure: |measures| &measures.throughput_per_s,
        unit: |_| (1.0, "transactions/s"),
    },
    LevelChart {
        title: "Mean latency",
        figure: |measures| &measures.latency_us_mean,
        unit: words::latency_unit,
    },
    LevelChart {
        title: "Median latency",
        figure: |measures| &measures.latency_us_p50,
        unit: words::latency_unit,
    },
    LevelChart {
        title: "95 % latency",
        figure: |measures| &measures.latency_us_p95,
        unit: words::latency_unit,
    },
    LevelChart {
        title: "99 % latency",
        figure: |measures| &measures.latency_us_p99,
        unit: words::latency_unit,
    },
    LevelChart {
        title: "Largest latency",
        figure: |measures| &measures.latency_us_max,
        unit: words::latency_unit,
    },
];

/// The format.
pub struct Html;

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
        Some(Self {
            wide: draw(WIDE)?,
            narrow: draw(NARROW)?,
        })
    }
}

/// One level over time.
#[derive(Serialize)]
struct OverTime {
    throughput: Pair,
    /// What the servers did meanwhile; absent when nothing was seen second by second.
    meanwhile: Option<Pair>,
}

#[derive(Serialize)]
struct Page {
    view: View,
    columns: Vec<&'static str>,
    style: String,
    script: &'static str,
    /// Shapes of the contenders, for use in text.
    marks: Vec<String>,
    forest: Pair,
    blocks: Vec<Pair>,
    by_level: Vec<Pair>,
    latency: Vec<Pair>,
    /// Whole distributions, one per level.
    curves: Vec<Pair>,
    steadiness: Vec<Pair>,
    tradeoff: Option<Pair>,
    over_time: Vec<OverTime>,
    new_orders: Vec<Pair>,
    schedule: Option<Pair>,
    /// One per explanation; absent where the time could not be divided.
    waterfalls: Vec<Option<Pair>>,
    storage_heads: Vec<&'static str>,
    by_clients_heads: Vec<&'static str>,
    processor: Option<Pair>,
    flames: Vec<Pair>,
}

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn file_name(&self) -> Option<&'static str> {
        Some("report.html")
    }

    fn render(&self, summary: &Summary, findings: &[Finding], _options: &Options) -> Rendered {
        let page = Page {
            view: View::new(summary, findings),
            columns: COLUMNS.iter().map(|column| column.head).collect(),
            style: format!("{}{PAGE_STYLE}", chart::STYLE),
            script: SCRIPT,
            marks: (0..summary.contenders.len()).map(mark).collect(),
            forest: Pair::of(|width| chart::forest(summary, width)),
            blocks: per_level(summary, chart::block_ratios),
            by_level: level_charts(summary),
            latency: per_level(summary, chart::latency_profile),
            curves: per_level(summary, chart::latency_curve),
            steadiness: per_level(summary, chart::steadiness),
            tradeoff: Pair::maybe(|width| chart::throughput_against_latency(summary, width)),
            over_time: summary
                .duels
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
            new_orders: summary
                .duels
                .iter()
                .filter_map(|duel| Pair::maybe(|width| chart::new_orders(summary, duel, width)))
                .collect(),
            schedule: Pair::maybe(|width| chart::schedule_strip(summary, width)),
            waterfalls: summary
                .explanations
                .iter()
                .filter(|one| is_telling(one))
                .map(|one| Pair::maybe(|width| chart::waterfall(summary, one, width)))
                .collect(),
            storage_heads: STORAGE_HEADS.to_vec(),
            by_clients_heads: BY_CLIENTS_HEADS.to_vec(),
            flames: summary
                .flames
                .iter()
                .map(|flame| Pair::of(|width| chart::flame(summary, flame, width)))
                .collect(),
            processor: Pair::maybe(|width| chart::processor_time(summary, width)),
        };
        Rendered::of_files(&rendered("report.html", TEMPLATE, &page), Vec::new())
    }
}

/// Why a template cannot fail.
const COMPLETE: &str = "the template is part of the program, and a test renders every part of it";

/// An environment whose templates keep no blank lines, know how to set text with code in it, and have the parts.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    if let Ok(syntax) = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
    {
        environment.set_syntax(syntax);
    }
    environment.add_filter("prose", |text: &str| Value::from_safe_string(prose(text)));
    environment.add_filter("breakable", |text: &str| {
        Value::from_safe_string(breakable(text))
    });
    for (name, text) in PARTS {
        environment.add_template(name, text).expect(COMPLETE);
    }
    environment
}

/// The page that the template `text` makes; its name's ending, html, switches escaping on.
pub(super) fn rendered(name: &'static str, text: &'static str, page: &impl Serialize) -> String {
    let mut environment = environment();
    environment
        .add_template(name, text)
        .and_then(|()| environment.get_template(name)?.render(Serde(page)))
        .expect(COMPLETE)
}

/// One small drawing per level.
fn per_level(summary: &Summary, draw: fn(&Summary, &Duel, f64) -> Option<String>) -> Vec<Pair> {
    let duels = &summary.duels;
    let pairs = duels
        .iter()
        .filter_map(|duel| Pair::shared(duels.len(), |width| draw(summary, duel, width)));
    pairs.collect()
}

fn level_charts(summary: &Summary) -> Vec<Pair> {
    if summary.duels.len() < 2 {
        return Vec::new();
    }
    let pairs = LEVEL_CHARTS.iter().filter_map(|chart| {
        Pair::shared(LEVEL_CHARTS.len(), |width| {
            chart::by_level(summary, chart, width)
        })
    });
    pairs.collect()
}

/// Escaped text whose lines may break after the commas of a list.
fn breakable(text: &str) -> String {
    chart::escape(text).replace(',', ",<wbr>")
}

/// Escaped text, what stands between backticks set as code, no percent sign alone on a line.
fn prose(text: &str) -> String {
    let text = words::units_kept(text);
    let mut html = String::with_capacity(text.len() + 32);
    let mut rest = 0;
    while let Some((open, close)) = next_code(&text, rest) {
        html.push_str(&chart::escape(&text[rest..open]));
        html.push_str("<code>");
        html.push_str(&chart::escape(&text[open + 1..close]));
        html.push_str("</code>");
        rest = close + 1;
    }
    html.push_str(&chart::escape(&text[rest..]));
    html
}

/// Places of the next two backticks from `start` on that set what is between them as code.
///
/// Names are set so and may hold backticks themselves, so a backtick opens only at the start of a word and
/// closes only at the end of one. One without a partner is a character like any other.
fn next_code(text: &str, start: usize) -> Option<(usize, usize)> {
    let before = |at: usize| text[..at].chars().next_back();
    let after = |at: usize| text[at + 1..].chars().next();
    let opens = |at: usize| {
        !before(at).is_some_and(|c| c.is_alphanumeric() || c == '`')
            && after(at).is_some_and(|c| !c.is_whitespace())
    };
    let closes = |at: usize| {
        !after(at).is_some_and(|c| c.is_alphanumeric() || c == '`')
            && !before(at).is_some_and(char::is_whitespace)
    };
    let places: Vec<usize> = text[start..]
        .match_indices('`')
        .map(|(at, _)| start + at)
        .collect();
    let mut open = None;
    for at in places {
        match open {
            Some(first) if at > first + 1 && closes(at) => return Some((first, at)),
            Some(first) if at == first + 1 => {}
            // After a space a word begins, so what was open before it had no partner.
            Some(_) if opens(at) && before(at).is_some_and(char::is_whitespace) => open = Some(at),
            None if opens(at) => open = Some(at),
            _ => {}
        }
    }
    None
}

/// A contender's shape, the size of a letter.
fn mark(contender: usize) -> String {
    let mut svg = Svg::new(14.0);
    let class = format!("mark c{}", contender % chart::COLOURS);
    svg.path(&chart::marker(contender, (7.0, 7.0), 5.0), &class, "");
    svg.finish(14.0, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_backticks_are_set_as_code_and_swallow_no_words() {
        for (text, html) in [
            ("use `a` and `b`.", "use <code>a</code> and <code>b</code>."),
            (
                "`a`b` is slow, `c` is not",
                "<code>a`b</code> is slow, <code>c</code> is not",
            ),
            ("``a` is slow", "<code>`a</code> is slow"),
            ("`a`` is slow", "<code>a`</code> is slow"),
            (
                "``` is slow, `c` too",
                "<code>`</code> is slow, <code>c</code> too",
            ),
            (
                "`a` b` is slow, `c` is not",
                "<code>a</code> b` is slow, <code>c</code> is not",
            ),
            (
                "`a is slower than `c` here",
                "`a is slower than <code>c</code> here",
            ),
            ("a`b is slow; `c`: not", "a`b is slow; <code>c</code>: not"),
            ("one ` alone, `<b>`", "one ` alone, <code>&lt;b&gt;</code>"),
            ("`` and `", "`` and `"),
            ("(`ä`), 5 %", "(<code>ä</code>), 5\u{a0}%"),
        ] {
            assert_eq!(prose(text), html, "{text}");
        }
    }
}
