//! Every format of the report on a sweep has the summary's content, with names escaped.

use dbduel_judge::records::sweep::{SweepSummary, summarise_sweep};
use dbduel_record::sweep::FactorKind;
use dbduel_record::{Event, Stamped};
use dbduel_testkit::synthetic::sweep;

use super::FORMATS;
use crate::{Options, words};

fn rendered(name: &str, summary: &SweepSummary) -> String {
    let options = Options {
        width: 110,
        colour: false,
    };
    let format = FORMATS.iter().find(|format| format.name == name).unwrap();
    format.render(summary, &options)
}

fn crossing() -> SweepSummary {
    let (plan, records) = sweep(&[1_000, 10_000, 100_000], &[0.8, 0.9, 1.25]);
    summarise_sweep(&plan, &records)
}

#[test]
fn a_single_contest_has_a_report_of_the_same_name() {
    for format in FORMATS {
        let single = crate::format(format.name).unwrap();
        assert_eq!(single.file_name, format.file_name);
    }
}

#[test]
fn the_terminal_has_a_table_per_factor_and_the_crossing() {
    let text = rendered("terminal", &crossing());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "3 of 3 cells finished; factors: table_size (3 levels)",
        "b against a: faster at table_size = 100000 (+",
        "; slower at table_size = 1000 and table_size = 10000 (−",
        "b and a cross at table_size",
        "b is faster above, slower below",
        "▲ faster",
        "▼ slower",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_crossing_over_a_setting_with_units_is_at_a_size() {
    let mib = |count: u32| count << 20;
    let (mut plan, records) = sweep(&[mib(16), mib(64), mib(256)], &[0.8, 0.9, 1.25]);
    let factor = &mut plan.factors[0];
    factor.kind = FactorKind::Setting;
    for (level, label) in factor.levels.iter_mut().zip(["16M", "64M", "256M"]) {
        level.label = label.to_owned();
    }
    let text = rendered("terminal", &summarise_sweep(&plan, &records));
    let sentence = text.lines().find(|line| line.contains("cross at")).unwrap();
    assert!(sentence.contains(" MiB ("), "{text}");
}

#[test]
fn the_page_escapes_names_and_draws_the_ratio_and_the_throughput() {
    let page = rendered("html", &crossing());
    assert!(
        page.contains("From which size on is &lt;b&gt; faster"),
        "{page}"
    );
    assert!(page.contains("Throughput against the baseline against table_size, ratio"));
    assert!(
        page.contains("Throughput against table_size, transactions&#x2f;s")
            || page.contains("Throughput against table_size, transactions/s")
    );
    assert!(page.contains("href=\"cells/001-table_size-100000/report.html\""));
    assert!(page.contains("b crosses the baseline between"));
}

#[test]
fn markdown_links_to_the_cells() {
    let text = rendered("markdown", &crossing());
    assert!(
        text.contains("cells/002-table_size-10000/report.md"),
        "{text}"
    );
    assert!(text.contains("| contender |"), "{text}");
}

#[test]
fn a_sweep_that_has_not_begun_has_a_report_in_every_format() {
    let (plan, _) = sweep(&[1_000, 10_000], &[1.0, 1.0]);
    let summary = summarise_sweep(&plan, &[None, None]);
    for format in FORMATS {
        let text = rendered(format.name, &summary);
        assert!(
            text.contains("not started") || text.contains("not-begun"),
            "{text}"
        );
    }
}

#[test]
fn every_format_says_at_the_cell_what_it_had_since_it_was_extended() {
    let (plan, mut records) = sweep(&[1_000, 10_000], &[1.0, 1.0]);
    let record = records[1].as_mut().unwrap();
    let blocks_before = 9;
    // Put where the tenth block begins, as if all blocks after it had been added.
    let first = record
        .events
        .iter()
        .position(|event| {
            matches!(event.what, Event::SliceFinished { slice, .. } if slice.block == blocks_before)
        })
        .unwrap();
    let extended = Stamped {
        at_ms: record.events[first].at_ms,
        what: Event::Extended {
            budget_s: 60.0,
            blocks: Vec::new(),
        },
    };
    record.events.insert(first - 1, extended);
    let summary = summarise_sweep(&plan, &records);
    let blocks = 14 - blocks_before;
    let extension = summary.cells[1].extension.unwrap();
    assert_eq!((extension.count, extension.blocks), (1, blocks as usize));
    assert!(summary.cells[0].extension.is_none());
    let said = format!(
        "finished, extended by {} of load and {blocks} blocks",
        words::duration(extension.used_s)
    );
    for name in ["terminal", "html", "markdown"] {
        let text = rendered(name, &summary);
        assert_eq!(text.matches(&said).count(), 1, "{said} in {name}\n{text}");
    }
    let document: serde_json::Value = serde_json::from_str(&rendered("json", &summary)).unwrap();
    assert_eq!(document["cells"][1]["extension"]["blocks"], blocks);
    assert!(document["cells"][0]["extension"].is_null());
}
