//! Every format on synthetic records: content, escaping, and reproducibility.

use dbduel_audit::Finding;
use dbduel_audit::Grade;
use dbduel_judge::{Summary, summarise};
use dbduel_record::Verdict;
use dbduel_record::event::{Severity, SliceId};
use dbduel_record::statements::{
    ContenderStatements, ExplainedStatement, LevelStatements, StatementExample,
};
use dbduel_testkit::synthetic::Scenario;
use dbduel_testkit::synthetic::captured::captured_record;
use dbduel_testkit::synthetic::order_entry::{order_entry_record, script_record};
use dbduel_testkit::synthetic::suite::suite_record;
use unicode_width::UnicodeWidthStr as _;

use super::{FORMATS, Options, chart, format};

const OPTIONS: Options = Options {
    width: 96,
    colour: false,
};

/// Judged, with the one part that changes from version to version fixed.
fn judged(scenario: &Scenario) -> (Summary, Vec<Finding>) {
    let (mut summary, findings) = summarise(&scenario.record());
    "0.1.0".clone_into(&mut summary.judged_by);
    (summary, findings)
}

fn render(name: &str, scenario: &Scenario) -> String {
    let (summary, findings) = judged(scenario);
    format(name)
        .unwrap()
        .render(&summary, &findings, &OPTIONS)
        .text
}

/// Everything that can go wrong in one run.
fn messy() -> Scenario {
    let mut scenario = Scenario::duel();
    scenario.sides[1].stalls_per_s = 0.03;
    scenario.resumed_after = Some(20);
    scenario.lost = vec![SliceId {
        block: 4,
        position: 2,
    }];
    scenario.noise = 0.15;
    scenario
}

fn void() -> Scenario {
    let mut scenario = Scenario {
        clients: vec![16],
        ..Scenario::duel()
    };
    scenario.sides[1].failed_share = 0.05;
    scenario
}

fn hostile() -> Scenario {
    let mut scenario = messy();
    scenario.question =
        "<img src=x onerror=alert(1)> \u{1b}[31m | `code` [link](javascript:alert(1))".to_owned();
    scenario.sides[1].name = "<script>alert(1)</script>\"'&`|".to_owned();
    scenario
}

fn scenarios() -> Vec<Scenario> {
    let empty = Scenario {
        blocks: 0,
        ended: None,
        ..Scenario::duel()
    };
    let first = Scenario {
        blocks: 1,
        ended: None,
        clients: vec![8],
        ..Scenario::duel()
    };
    vec![
        Scenario::duel(),
        Scenario::four(),
        messy(),
        void(),
        hostile(),
        empty,
        first,
    ]
}

#[test]
fn formats_have_unique_names_and_files() {
    let mut seen = std::collections::BTreeSet::new();
    for format in FORMATS {
        assert!(seen.insert(format.name), "duplicate name `{}`", format.name);
        if let Some(file) = format.file_name {
            assert!(seen.insert(file), "duplicate file `{file}`");
        }
    }
    assert!(format("no-such-format").is_none());
}

#[test]
fn the_terminal_shows_the_verdict_first() {
    insta::assert_snapshot!("terminal_duel", render("terminal", &Scenario::duel()));
    insta::assert_snapshot!("terminal_four", render("terminal", &Scenario::four()));
    insta::assert_snapshot!("terminal_messy", render("terminal", &messy()));
    insta::assert_snapshot!("terminal_void", render("terminal", &void()));
}

/// Doubts about what was measured and the grade of the settings are two answers.
#[test]
fn no_count_of_doubts_stands_beside_fair_settings() {
    let (mut summary, mut findings) = judged(&messy());
    let audit = summary.audit.as_mut().unwrap();
    audit.findings.clear();
    audit.grade = Grade::Fair;
    findings.retain(|one| !one.rule.starts_with("audit."));
    assert!(findings.iter().any(|one| one.severity == Severity::Doubt));
    let text = format("terminal")
        .unwrap()
        .render(&summary, &findings, &OPTIONS)
        .text;
    let (header, _) = text.split_once('└').unwrap();
    assert!(
        header.contains("Was it fair? fair") && header.contains("caveats below"),
        "{header}"
    );
    assert!(!header.contains("doubts"), "{header}");
}

#[test]
fn what_the_experiment_declares_stands_in_the_header_and_among_the_findings() {
    let mut record = Scenario::duel().record();
    record.plan.waivers.clear();
    record.plan.about = vec!["innodb_doublewrite".to_owned()];
    let (summary, findings) = summarise(&record);
    let declared = findings
        .iter()
        .find(|one| one.rule == "audit.D3.torn_page.protection")
        .unwrap();
    assert_eq!(declared.severity, Severity::Note);
    assert!(
        declared.claim.contains("is also less durable"),
        "{}",
        declared.claim
    );
    for name in ["terminal", "markdown", "html"] {
        let text = format(name)
            .unwrap()
            .render(&summary, &findings, &OPTIONS)
            .text;
        assert!(text.contains("declared subject: "), "{name}: {text}");
        assert!(text.contains("is also less durable"), "{name}: {text}");
    }
}

#[test]
fn the_markdown_twin_says_the_same() {
    insta::assert_snapshot!("markdown_duel", render("markdown", &Scenario::duel()));
    insta::assert_snapshot!("markdown_void", render("markdown", &void()));
}

#[test]
fn a_suite_is_a_matrix_in_every_format_and_fits_a_narrow_terminal() {
    let (mut summary, findings) = summarise(&suite_record());
    "0.1.0".clone_into(&mut summary.judged_by);
    let narrow = Options {
        width: 80,
        colour: false,
    };
    let terminal = format("terminal").unwrap();
    let text = terminal.render(&summary, &findings, &narrow).text;
    let (matrices, _) = text.split_once("Error probability of a workload").unwrap();
    assert!(
        matrices.lines().all(|line| line.width() <= 80),
        "{matrices}"
    );
    insta::assert_snapshot!("terminal_suite", matrices);
    for name in ["markdown", "html"] {
        let text = format(name)
            .unwrap()
            .render(&summary, &findings, &OPTIONS)
            .text;
        for part in [
            "random-points-100",
            "geometric mean",
            "relative to the previous contender",
            "Of 3 workloads",
        ] {
            assert!(text.contains(part), "{name} lacks {part}");
        }
    }
    let html = format("html")
        .unwrap()
        .render(&summary, &findings, &OPTIONS)
        .text;
    // The colour follows the verdict, and an undecided cell has none.
    for cell in html.split("<td class=\"n cell ").skip(1) {
        let differs = cell.starts_with("faster") || cell.starts_with("slower");
        let (own, _) = cell.split_once("</td>").unwrap();
        assert_eq!(own.contains("--strength: 0.0\""), !differs, "{own}");
    }
}

#[test]
fn every_format_says_what_order_entry_is_not() {
    let (summary, findings) = summarise(&order_entry_record());
    for format in FORMATS {
        let text = format.render(&summary, &findings, &OPTIONS).text;
        let words: Vec<&str> = text.split_whitespace().collect();
        let said = words.join(" ");
        for part in [
            "not comparable with published TPC-C results",
            "NOPM",
            "stock-level",
        ] {
            assert!(
                said.contains(part) || said.to_lowercase().contains(&part.to_lowercase()),
                "{}: no `{part}` in {text}",
                format.name
            );
        }
    }
}

#[test]
fn every_format_shows_the_classes_of_any_workload() {
    let (summary, findings) = summarise(&script_record());
    let ok = summary.classes[1].classes[1].ok;
    for format in FORMATS {
        let text = format.render(&summary, &findings, &OPTIONS).text;
        for part in ["stock-level", "payment"] {
            assert!(text.contains(part), "{}: no `{part}`", format.name);
        }
        let is_json = format.name == "json";
        let part = match is_json {
            true => format!("\"ok\": {ok}"),
            false => "Transaction classes".to_owned(),
        };
        assert!(
            text.contains(&part),
            "{}: no `{part}` in {text}",
            format.name
        );
    }
}

#[test]
fn every_format_shows_the_classes_of_captured_statements() {
    let (summary, findings) = summarise(&captured_record());
    for format in FORMATS {
        let text = format.render(&summary, &findings, &OPTIONS).text;
        let words: Vec<&str> = text.split_whitespace().collect();
        // Markdown escapes underscores.
        let text = words.join(" ").replace('\\', "");
        let parts: &[&str] = match format.name {
            "json" => &["\"id\": \"e5e5e5e5\"", "\"is_compared\": false"],
            _ => &[
                "Classes of statements",
                "from wp_posts where post_name",
                "captured",
                "56 %",
                "30 %",
                "1 further class with less than 1 % each",
            ],
        };
        for part in parts {
            assert!(
                text.contains(part),
                "{}: no `{part}` in {text}",
                format.name
            );
        }
        // Below the share from which a class is compared.
        assert_eq!(
            text.contains("e5e5e5e5"),
            format.name == "json",
            "{}",
            format.name
        );
    }
}

/// A plan of MySQL that reads one table by this access.
fn explained(id: &str, access: &[Option<&str>; 2]) -> ExplainedStatement {
    let [access, key] = access.map(|word| word.map(str::to_owned));
    ExplainedStatement {
        example: StatementExample {
            class: format!("class {id}"),
            id: Some(id.to_owned()),
            number: None,
            text: None,
        },
        columns: ["table", "type", "key", "Extra"].map(str::to_owned).into(),
        rows: vec![vec![Some("wp_posts".to_owned()), access, key, None]],
        because: None,
    }
}

#[test]
fn every_format_shows_a_changed_plan_beside_its_class() {
    let mut record = captured_record();
    let by_key = [Some("ref"), Some("post_name")];
    for (files, access) in record
        .contenders
        .iter_mut()
        .zip([by_key, [Some("ALL"), None]])
    {
        let statements = [("a1a1a1a1", by_key), ("b2b2b2b2", access)];
        let statements = statements.iter().map(|(id, access)| explained(id, access));
        files.statements = Some(ContenderStatements {
            levels: vec![LevelStatements {
                level: 0,
                statements: statements.collect(),
                because: None,
            }],
        });
    }
    let (summary, findings) = summarise(&record);
    assert!(findings.iter().any(|one| one.rule == "plan.changed"));
    let baseline = &summary.baseline;
    for format in FORMATS.iter().filter(|format| format.name != "json") {
        let text = format.render(&summary, &findings, &OPTIONS).text;
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ").replace(['\\', '`'], "");
        let text = text.replace("<code>", "").replace("</code>", "");
        let (_, section) = text.split_once("from wp_posts where post_name").unwrap();
        let of_class = section.split("update wp_options").next().unwrap();
        let own = of_class.find("plan: wp_posts: ALL").unwrap();
        let other = of_class.find(&format!("of {baseline}: wp_posts: ref post_name"));
        assert!(
            other.is_some_and(|other| other > own),
            "{}: {of_class}",
            format.name
        );
        // An equal plan is not shown.
        assert_eq!(text.matches("plan: ").count(), 1, "{}", format.name);
    }
}

/// A class that is not decided says so in words in every format, with the interval or the reason where there is room.
#[test]
fn an_undecided_class_and_one_with_too_few_transactions_say_so_in_words() {
    let mut record = script_record();
    let is_rare = |class: &str| class == "stock-level";
    for row in record.slices.iter_mut().filter(|row| is_rare(&row.class)) {
        row.ok = 7;
    }
    let (summary, findings) = summarise(&record);
    let text = |name: &str| {
        let rendered = format(name).unwrap();
        rendered.render(&summary, &findings, &OPTIONS).text
    };
    let terminal = text("terminal");
    let (_, tables) = terminal.split_once("Transaction classes").unwrap();
    let (_, contender) = tables
        .split_once("p50 ratio")
        .unwrap()
        .1
        .split_once("p50 ratio")
        .unwrap();
    let of = |class: &str| {
        let mut lines = contender.lines();
        lines
            .find(|line| line.trim_start().starts_with(class))
            .unwrap()
    };
    assert!(
        of("stock-level").contains("not compared not compared"),
        "{terminal}"
    );
    assert!(of("payment").contains("undecided"), "{terminal}");
    for name in ["markdown", "html"] {
        let text = text(name);
        for part in [
            "not compared",
            "has 7 transactions, but its quantile needs 20",
            "undecided",
        ] {
            assert!(text.contains(part), "{name}: no `{part}`");
        }
    }
}

/// A number in large type is that of a verdict.
#[test]
fn the_card_of_an_undecided_verdict_shows_the_word_and_not_the_number() {
    let cards = |verdict: Verdict| {
        let (mut summary, findings) = judged(&Scenario::duel());
        let comparison = &mut summary.duels[0].comparisons[0];
        comparison.verdict = verdict;
        let text = format("html")
            .unwrap()
            .render(&summary, &findings, &OPTIONS)
            .text;
        let (_, card) = text.split_once("<article class=\"verdict").unwrap();
        let (card, _) = card.split_once("</article>").unwrap();
        let (_, figure) = card.split_once("<div class=\"figure\">").unwrap();
        let (figure, beneath) = figure.split_once("</div>").unwrap();
        (figure.to_owned(), beneath.to_owned())
    };
    let (decided, _) = cards(Verdict::Faster);
    assert!(decided.contains('%'), "{decided}");
    for verdict in [Verdict::Undecided, Verdict::Void] {
        let (figure, beneath) = cards(verdict);
        assert_eq!(figure, verdict.word());
        assert!(beneath.contains(" to +"), "{beneath}");
    }
}

#[test]
fn a_narrow_terminal_says_which_columns_of_order_entry_it_leaves_out() {
    let (summary, findings) = summarise(&order_entry_record());
    let at = |width| {
        let options = Options {
            width,
            colour: false,
        };
        let text = super::terminal::full(&summary, &findings, &options);
        let words: Vec<&str> = text.text.split_whitespace().collect();
        words.join(" ")
    };
    assert!(
        at(40).contains("Columns left out at a width of 40:"),
        "{}",
        at(40)
    );
    assert!(!at(200).contains("Columns left out"), "{}", at(200));
}

#[test]
fn every_format_renders_every_run_the_same_twice() {
    for scenario in scenarios() {
        let (summary, findings) = judged(&scenario);
        for format in FORMATS {
            let once = format.render(&summary, &findings, &OPTIONS);
            assert_eq!(
                once,
                format.render(&summary, &findings, &OPTIONS),
                "{}",
                format.name
            );
            assert!(!once.text.is_empty());
        }
    }
}

#[test]
fn a_terminal_line_never_exceeds_the_width() {
    for (summary, findings) in [
        judged(&Scenario::four()),
        judged(&hostile()),
        summarise(&order_entry_record()),
    ] {
        for width in [40, 60, 80, 200] {
            let text = super::terminal::TERMINAL
                .render(
                    &summary,
                    &findings,
                    &Options {
                        width,
                        colour: false,
                    },
                )
                .text;
            for line in text.lines() {
                // A single word may be longer than a line; it must not be cut.
                let is_one_word = line.split_whitespace().count() <= 2;
                assert!(line.width() <= width || is_one_word, "{width}: {line}");
            }
            assert!(
                !text.contains('\u{1b}'),
                "an escape sequence reached the terminal"
            );
        }
    }
}

#[test]
fn the_box_has_one_width_around_chinese_and_fullwidth_signs() {
    let mut scenario = Scenario::duel();
    scenario.question = "当数据超过内存时，双写缓冲的成本是多少？".repeat(3);
    scenario.sides[1].name = "关闭双写".to_owned();
    let (mut summary, findings) = judged(&scenario);
    summary.duels[0].comparisons[0].verdict = Verdict::Equivalent;
    for width in [40, 96] {
        let options = Options { width, ..OPTIONS };
        let text = super::terminal::full(&summary, &findings, &options);
        let (header, _) = text.text.split_once('└').unwrap();
        for line in header.lines() {
            assert_eq!(line.width(), width, "{line}");
        }
    }
}

#[test]
fn colour_is_only_an_ornament() {
    let (summary, findings) = judged(&Scenario::duel());
    let plain = super::terminal::TERMINAL
        .render(&summary, &findings, &OPTIONS)
        .text;
    let colourful = super::terminal::TERMINAL
        .render(
            &summary,
            &findings,
            &Options {
                colour: true,
                ..OPTIONS
            },
        )
        .text;
    assert!(colourful.contains("\u{1b}[1;32m"));
    let mut stripped = String::new();
    let mut parts = colourful.split('\u{1b}');
    stripped.push_str(parts.next().unwrap());
    for part in parts {
        stripped.push_str(part.split_once('m').unwrap().1);
    }
    assert_eq!(stripped, plain);
}

#[test]
fn one_more_doubt_is_no_several() {
    let (summary, mut findings) = judged(&Scenario::duel());
    findings.retain(|one| !one.rule.starts_with("audit."));
    findings.extend((0..6).map(|number| Finding {
        rule: "audit.P24.memory.allocator".to_owned(),
        ..Finding::new(
            Severity::Doubt,
            &["doublewrite", "no-doublewrite"],
            format!("Difference {number}."),
            "Remove it.",
        )
    }));
    for name in ["terminal", "markdown", "html"] {
        let format = format(name).unwrap();
        let text = format.render(&summary, &findings, &OPTIONS).text;
        assert!(text.contains("1 more doubt of the audit"), "{name}: {text}");
    }
}

#[test]
fn hostile_names_are_shown_and_not_obeyed() {
    let html = render("html", &hostile());
    assert!(html.contains("&lt;script&gt;alert(1)"), "the name is shown");
    assert!(
        html.matches("<script").count() == 1 && !html.contains("<img"),
        "markup from a name reached the page"
    );
    let markdown = render("markdown", &hostile());
    assert!(
        !markdown.contains("<script")
            && !markdown.contains("<img")
            && !markdown.contains("[link](")
    );
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let html = render("html", &Scenario::four());
    for outside in [
        "http://",
        "https://",
        "src=",
        "@import",
        "url(h",
        "url(\"",
        "<link",
        "fetch(",
        "XMLHttpRequest",
        "import(",
        "eval(",
        "innerHTML",
    ] {
        let found = html
            .match_indices(outside)
            .find(|(at, _)| !html[*at..].starts_with("http://www.w3.org/2000/svg"));
        assert!(found.is_none(), "{outside} in the page");
    }
}

#[test]
fn every_chart_is_well_formed() {
    for scenario in scenarios() {
        let (summary, findings) = judged(&scenario);
        let markdown = format("markdown")
            .unwrap()
            .render(&summary, &findings, &OPTIONS);
        assert!(!markdown.files.is_empty());
        for file in &markdown.files {
            check_well_formed(&file.text);
            assert!(
                markdown.text.contains(&format!("]({})", file.name)),
                "nothing links to {}",
                file.name
            );
        }
        let html = format("html")
            .unwrap()
            .render(&summary, &findings, &OPTIONS)
            .text;
        for svg in html.split("<svg ").skip(1) {
            check_well_formed(&format!(
                "<svg {}</svg>",
                svg.split_once("</svg>").unwrap().0
            ));
        }
        for width in [200.0, 340.0, 960.0] {
            for duel in &summary.duels {
                if let Some(svg) = chart::throughput_over_time(&summary, duel, width) {
                    check_well_formed(&svg);
                }
            }
        }
    }
}

/// Tags balance, attributes are quoted, and no number is a NaN or an infinity.
#[track_caller]
fn check_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some((text, tag)) = rest.split_once('<') {
        assert!(
            !text.contains('>') || open.last() == Some(&"style"),
            "a stray > in {text}"
        );
        let (tag, after) = tag.split_once('>').expect("every tag is closed");
        rest = after;
        assert_eq!(
            tag.matches('"').count() % 2,
            0,
            "unbalanced quotes in <{tag}>"
        );
        assert!(
            !tag.contains("NaN") && !tag.contains("inf"),
            "no number in <{tag}>"
        );
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> closes nothing");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?} stay open");
}

#[test]
fn a_day_fits_a_page_of_a_few_megabytes() {
    // 33 times 45 minutes.
    let (summary, findings) = summarise(&Scenario::duel().repeated_record(33));
    assert_eq!(summary.run.slices_finished, 33 * 168);
    for (name, bytes_max) in [
        ("html", 3_000_000),
        ("json", 3_000_000),
        ("terminal", 20_000),
    ] {
        let text = format(name)
            .unwrap()
            .render(&summary, &findings, &OPTIONS)
            .text;
        assert!(text.len() < bytes_max, "{name}: {} bytes", text.len());
    }
}

#[test]
fn the_published_json_has_every_duel() {
    let json = render("json", &Scenario::four());
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["schema_version"], 5);
    assert_eq!(document["summary"]["duels"].as_array().unwrap().len(), 3);
}
