//! The report as Markdown for a forge, with its charts as SVG files beside it.

use dbduel_audit::Finding;
use dbduel_judge::Summary;
use serde::Serialize;

use super::template::rendered;
use super::view::View;
use super::{ExtraFile, Format, Options, Rendered, attribution, chart, order_entry};

const WIDTH: f64 = 900.0;

pub const MARKDOWN: Format = Format {
    name: "markdown",
    file_name: Some("report.md"),
    render: markdown,
};

#[derive(Serialize)]
struct Page<'c> {
    view: View,
    charts: Vec<Chart<'c>>,
}

#[derive(Serialize)]
struct Chart<'c> {
    label: String,
    file: &'c str,
}

fn markdown(summary: &Summary, findings: &[Finding], _options: &Options) -> Rendered {
    let files = charts(summary);
    let linked = files.iter().map(|file| Chart {
        label: file
            .name
            .trim_start_matches("report-")
            .trim_end_matches(".svg")
            .replace('-', " "),
        file: &file.name,
    });
    let page = Page {
        view: View::new(summary, findings),
        charts: linked.collect(),
    };
    let text = rendered("report.md", &page);
    Rendered::of_files(&text, files)
}

fn charts(summary: &Summary) -> Vec<ExtraFile> {
    // A suite shows matrices.
    if summary.suite.is_some() {
        return Vec::new();
    }
    let file = |name: String, svg: &str| ExtraFile {
        name: format!("report-{name}.svg"),
        text: chart::standalone(svg),
    };
    let mut files = vec![file("ratios".to_owned(), &chart::forest(summary, WIDTH))];
    for duel in &summary.duels {
        let number = duel.level + 1;
        let effects = attribution::chart::effects(summary, duel, WIDTH);
        files.extend(effects.map(|svg| file(format!("effects-{number}"), &svg)));
        let over_time = chart::throughput_over_time(summary, duel, WIDTH);
        let latency = chart::latency_profile(summary, duel, WIDTH / 2.0);
        files.extend(over_time.map(|svg| file(format!("throughput-over-time-{number}"), &svg)));
        let meanwhile = chart::meanwhile(summary, duel, WIDTH);
        files.extend(meanwhile.map(|svg| file(format!("meanwhile-{number}"), &svg)));
        let orders = order_entry::chart::new_orders(summary, duel, WIDTH);
        files.extend(orders.map(|svg| file(format!("new-orders-{number}"), &svg)));
        files.extend(latency.map(|svg| file(format!("latency-{number}"), &svg)));
        let curve = chart::latency_curve(summary, duel, WIDTH / 2.0);
        let steadiness = chart::steadiness(summary, duel, WIDTH / 2.0);
        files.extend(curve.map(|svg| file(format!("latency-curve-{number}"), &svg)));
        files.extend(steadiness.map(|svg| file(format!("steadiness-{number}"), &svg)));
        for (index, explanation) in summary.explanations.iter().enumerate() {
            if explanation.level == duel.level {
                let waterfall = chart::waterfall(summary, explanation, WIDTH);
                files.extend(waterfall.map(|svg| file(format!("waterfall-{}", index + 1), &svg)));
            }
        }
    }
    files.extend(summary.flames.iter().enumerate().map(|(index, flame)| {
        let svg = chart::flame(summary, flame, WIDTH);
        file(format!("stacks-{}", index + 1), &svg)
    }));
    for (index, difference) in summary.flame_differences.iter().enumerate() {
        let svg = chart::flame_difference(summary, difference, WIDTH);
        files.push(file(format!("stacks-difference-{}", index + 1), &svg));
    }
    let tradeoff = chart::throughput_against_latency(summary, WIDTH);
    files.extend(tradeoff.map(|svg| file("throughput-against-latency".to_owned(), &svg)));
    let schedule = chart::schedule_strip(summary, WIDTH);
    files.extend(schedule.map(|svg| file("schedule".to_owned(), &svg)));
    files
}
