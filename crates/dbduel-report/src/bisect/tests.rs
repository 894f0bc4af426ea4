//! Every format of the report on a bisection has the summary's content, with names and subjects escaped.

use dbduel_judge::records::bisect::{
    BisectSummary, PartRestarts, StepAnswer, judge_step, summarise_bisection,
};
use dbduel_record::bisect::RevisionSource;
use dbduel_testkit::synthetic::bisection;

use super::FORMATS;
use crate::Options;
use crate::published_schema::tests::{published, violations};

fn rendered(name: &str, summary: &BisectSummary) -> String {
    let options = Options {
        width: 110,
        colour: false,
    };
    let format = FORMATS.iter().find(|format| format.name == name).unwrap();
    format.render(summary, &options)
}

/// Text with single blanks between its words.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn summary() -> BisectSummary {
    let (plan, records) = bisection();
    let steps = plan.steps.iter().zip(&records);
    let steps = steps.map(|(step, record)| judge_step(&plan, step, record.as_ref()));
    summarise_bisection(&plan, steps.collect())
}

#[test]
fn a_single_contest_has_a_report_of_the_same_name() {
    for format in FORMATS {
        let single = crate::format(format.name).unwrap();
        assert_eq!(single.file_name, format.file_name);
    }
}

#[test]
fn the_terminal_has_the_change_with_its_size_and_every_step() {
    let text = flat(&rendered("terminal", &summary()));
    for part in [
        "throughput changed between 0000002 \"Change <number> 2\" of 2026-10-03 and 0000004",
        "(−2",
        "The 1 revision between them: not testable.",
        "5 revisions, 5 steps",
        "wrong with a probability of at most 5",
        "like the good one",
        "skipped",
        "they differ",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn the_page_escapes_subjects_links_the_contests_and_draws_the_search() {
    let page = rendered("html", &summary());
    assert!(page.contains("Change &lt;number&gt; 2"), "{page}");
    assert!(!page.contains("<number>"));
    assert!(page.contains("href=\"steps/05/report.html\""));
    assert!(page.contains("Throughput against the good revision"));
    assert!(page.contains("between 0000002 and 0000004 with a probability of"));
    // The skipped one has no contest.
    assert!(!page.contains("href=\"steps/03/report.html\""));
}

#[test]
fn programs_get_the_place_and_its_probability() {
    let document: serde_json::Value = serde_json::from_str(&rendered("json", &summary())).unwrap();
    let place = &document["parts"][0]["place"];
    assert_eq!((&place["after"], &place["up_to"]), (&2.into(), &4.into()));
    assert!(place["probability"].as_f64().unwrap() > 0.95);
    assert_eq!(document["steps"][2]["answer"], "skipped");
    let markdown = rendered("markdown", &summary());
    assert!(markdown.contains("| step |"), "{markdown}");
}

#[test]
fn the_report_for_programs_obeys_the_published_schema() {
    let schema = published::<BisectSummary>("bisect.schema.json");
    let document: serde_json::Value = serde_json::from_str(&rendered("json", &summary())).unwrap();
    assert_eq!(violations(&schema, &document), Vec::<String>::new());
    for (place, value) in [
        ("/confidence", serde_json::json!("high")),
        ("/steps/0/answer", serde_json::json!("faster")),
        ("/parts/0/place/after", serde_json::json!(-1)),
        ("/revisions", serde_json::json!({})),
    ] {
        let mut broken = document.clone();
        *broken.pointer_mut(place).unwrap() = value;
        assert!(!violations(&schema, &broken).is_empty(), "{place}");
    }
}

#[test]
fn a_search_that_found_nothing_says_why() {
    for (answer, part) in [
        (
            StepAnswer::Same,
            "do not differ by more than the horizon of 2",
        ),
        (StepAnswer::Undecided, "the budget ended before"),
        (StepAnswer::Void, "is void"),
    ] {
        let mut summary = summary();
        summary.steps.truncate(1);
        summary.parts.truncate(1);
        summary.parts[0].ends = Some(answer);
        summary.parts[0].place = None;
        summary.parts[0].steps = vec![0];
        for format in FORMATS.iter().filter(|format| format.name != "json") {
            let text = flat(&rendered(format.name, &summary));
            assert!(text.contains(part), "no `{part}` in\n{text}");
        }
        if answer == StepAnswer::Undecided {
            // Once, and without marks of code.
            let page = flat(&rendered("html", &summary));
            assert_eq!(page.matches(part).count(), 1, "{page}");
            assert!(page.contains("<code>budget</code>"), "{page}");
        }
    }
}

#[test]
fn a_search_without_answers_names_no_place() {
    let mut summary = summary();
    summary.parts.truncate(1);
    summary.parts[0].place.as_mut().unwrap().is_found = false;
    let named = "most probable so far: between 0000002 and 0000004";
    assert!(flat(&rendered("terminal", &summary)).contains(named));
    summary.parts[0].place = None;
    let text = flat(&rendered("terminal", &summary));
    assert!(text.contains("not found yet"), "{text}");
    assert!(!text.contains("most probable"), "{text}");
    let page = rendered("html", &summary);
    assert!(!page.contains("with a probability of 9"), "{page}");
}

#[test]
fn what_restarts_do_is_said_and_a_search_that_they_ended_names_no_place() {
    let mut summary = summary();
    summary.parts.truncate(1);
    let known = PartRestarts {
        ratio: 0.8,
        deviation: 0.021,
        contests: 7,
        error: 0.013,
        is_too_large: false,
    };
    summary.parts[0].restarts = Some(known);
    let text = flat(&rendered("terminal", &summary));
    for part in [
        "restarted for each contest: \u{2212}20.0 % on average",
        "standard deviation of 2.1 %, and make an answer wrong with a probability of 1.3 % (7 contests)",
        "Found with a probability",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    summary.parts[0].place = None;
    summary.parts[0].restarts = Some(PartRestarts {
        is_too_large: true,
        ..known
    });
    let text = flat(&rendered("terminal", &summary));
    for part in ["No change found", "more `epochs` in [schedule]"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn builds_of_versions_are_said_to_differ_in_more_than_the_version() {
    let mut summary = summary();
    summary.source = RevisionSource::Versions;
    let text = flat(&rendered("terminal", &summary));
    assert!(text.contains("packager, compiler and flags"), "{text}");
}
