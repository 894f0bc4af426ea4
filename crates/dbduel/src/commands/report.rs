//! `dbduel report`: renders a record again, on any machine.
//!
//! By default it prints the terminal report and rewrites the report files beside the data.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::{Args, ValueEnum};
use dbduel_audit::Finding;
use dbduel_audit::disclosure::{Item, checklist};
use dbduel_judge::{self as judge, Summary};
use dbduel_record::store::{Held, RecordError};
use dbduel_record::{Record, RecordWriter};
use dbduel_report::{self as report, TerminalLength};

use super::fail_if::FailIf;
use super::{bisect, fail_if, record_reports, sweep};
use crate::console;
use crate::exit::Exit;

/// Options of `dbduel report`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a record, a sweep or a bisection.
    pub record: PathBuf,
    /// What to render.
    #[arg(
        long,
        value_enum,
        default_value_t = ReportFormat::Terminal,
        conflicts_with_all = ["brief", "full"]
    )]
    pub format: ReportFormat,
    #[command(flatten)]
    pub length: LengthArguments,
    /// Print the disclosure checklist instead of the report: what a publication must state, and what the record has.
    #[arg(long, conflicts_with_all = ["fail_if", "brief", "full"])]
    pub disclosure: bool,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit with 5 when the rule matches and with 3 when it is undecided, as in `dbduel run`.
    #[arg(long, value_name = "RULE")]
    pub fail_if: Vec<FailIf>,
}

/// Usual consoles have 24 lines, large windows 40 and more. A whole report has 80 to 200 lines.
const SHORT_SCREEN_LINES: u16 = 40;

/// Length of the report of a contest on a terminal, as the command line has it.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct LengthArguments {
    /// Print the verdict, the difference in time per transaction and at most three caveats. This is the default on a
    /// terminal of fewer than 40 lines. The report of a sweep has one length.
    #[arg(long, conflicts_with = "full")]
    pub brief: bool,
    /// Print the whole report, also on a small terminal.
    #[arg(long)]
    pub full: bool,
}

impl LengthArguments {
    /// The length for a terminal of so many lines; `None` is no terminal.
    #[must_use]
    pub fn on(self, lines: Option<u16>) -> TerminalLength {
        let is_short = lines.is_some_and(|lines| lines < SHORT_SCREEN_LINES);
        match self.brief || is_short && !self.full {
            true => TerminalLength::Brief,
            false => TerminalLength::Full,
        }
    }
}

/// Formats of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Plain text.
    Terminal,
    /// One self-contained HTML page.
    Html,
    /// Markdown, for code forges and wikis.
    Markdown,
    /// JSON document.
    Json,
}

impl ReportFormat {
    /// Name in the table of formats.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Terminal => "terminal",
            ReportFormat::Html => "html",
            ReportFormat::Markdown => "markdown",
            ReportFormat::Json => "json",
        }
    }
}

/// Renders the report.
///
/// # Errors
/// When there is no record or the output cannot be written.
pub fn report(arguments: &Arguments) -> Result<Exit> {
    if sweep::is_sweep(&arguments.record) {
        let is_colour_wanted = arguments.output.is_none() && console::is_colour_wanted();
        let name = arguments.format.name();
        let exit = put(
            arguments,
            &sweep::report(&arguments.record, name, is_colour_wanted)?,
        )?;
        return match arguments.fail_if.is_empty() {
            true => Ok(exit),
            false => sweep::exit(&arguments.record, &arguments.fail_if),
        };
    }
    if bisect::is_bisection(&arguments.record) {
        ensure!(
            arguments.fail_if.is_empty() && !arguments.disclosure,
            "`{}` is a bisection, and --fail-if and --disclosure are about one contest; name one of its `steps`",
            arguments.record.display()
        );
        let is_colour_wanted = arguments.output.is_none() && console::is_colour_wanted();
        let name = arguments.format.name();
        return put(
            arguments,
            &bisect::report(&arguments.record, name, is_colour_wanted)?,
        );
    }
    let is_to_terminal = arguments.output.is_none();
    let are_files_made =
        is_to_terminal && arguments.format == ReportFormat::Terminal && !arguments.disclosure;
    // Before it is read, so that no file of a reader of a longer record is replaced.
    let held = are_files_made.then(|| RecordWriter::hold(&arguments.record));
    let record = Record::open(&arguments.record)?;
    if arguments.disclosure {
        let items = checklist(&record);
        let text = match arguments.format {
            ReportFormat::Json => console::json(&items)?,
            ReportFormat::Terminal | ReportFormat::Html | ReportFormat::Markdown => {
                disclosure(&items)
            }
        };
        return put(arguments, &text);
    }
    let (summary, findings) = judge::summarise(&record);
    let options = report::Options {
        width: console::width(),
        colour: is_to_terminal && console::is_colour_wanted(),
    };
    let text = match arguments.format {
        ReportFormat::Terminal => {
            let lines = console::height().filter(|_| is_to_terminal);
            let length = arguments.length.on(lines);
            report::on_terminal(&summary, &findings, &options, length).text
        }
        other => {
            let format = report::format(other.name()).context("this format is not built in")?;
            format.render(&summary, &findings, &options).text
        }
    };
    // A slow reader of the text must not hold the lock of the record.
    let made = held.map(|held| made_again(held, &summary, &findings));
    let exit = put(arguments, &text)?;
    if let Some(made) = made {
        console::status_line(&made);
    }
    if arguments.fail_if.is_empty() {
        return Ok(exit);
    }
    fail_if::explain(&summary, &arguments.fail_if);
    Ok(fail_if::exit(&summary, &arguments.fail_if))
}

/// Rewrites the report files of the record and returns the status line: which files, or why none. The report itself is
/// shown in both cases.
fn made_again(held: Result<Held, RecordError>, summary: &Summary, findings: &[Finding]) -> String {
    let made = held.map_err(anyhow::Error::from).and_then(|held| {
        let names = record_reports::make_again(&held, summary, findings)?;
        Ok(format!(
            "wrote {} in {}",
            listed(&names),
            held.dir().display()
        ))
    });
    made.unwrap_or_else(|error| format!("could not rewrite the reports beside the data: {error:#}"))
}

/// The reports by name, and how many charts go with them: `report.html, report.md with 9 charts and report.json`.
fn listed(names: &[String]) -> String {
    let mut charts = 0;
    let mut reports = Vec::new();
    for name in names {
        if report::FORMATS
            .iter()
            .any(|format| format.file_name == Some(name.as_str()))
        {
            reports.push(match charts {
                0 => name.clone(),
                1 => format!("{name} with 1 chart"),
                charts => format!("{name} with {charts} charts"),
            });
            charts = 0;
        } else {
            charts += 1;
        }
    }
    report::words::joined_texts(&reports)
}

/// Writes to the file of --output, or to standard output.
fn put(arguments: &Arguments, text: &str) -> Result<Exit> {
    match &arguments.output {
        Some(path) => fs::write(path, text)
            .with_context(|| format!("could not write `{}`", path.display()))?,
        None => console::print(text)?,
    }
    Ok(Exit::Done)
}

/// The disclosure checklist, section by section, and where the record has each item.
fn disclosure(items: &[Item]) -> String {
    let mut text = String::new();
    let mut section = "";
    for item in items {
        if item.section != section {
            section = &item.section;
            text.push_str(&format!("{section}\n"));
        }
        let state = if item.present { "present" } else { "MISSING" };
        text.push_str(&format!("  {state}  {}  ({})\n", item.item, item.place));
    }
    let missing = items.iter().filter(|item| !item.present).count();
    text.push_str(&format!(
        "\n{} of {} present, {missing} missing\n",
        items.len() - missing,
        items.len()
    ));
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    /// Every file below a directory, with its content.
    fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut found = BTreeMap::new();
        for path in entries {
            if path.is_dir() {
                found.extend(files(&path));
            } else {
                found.insert(path.display().to_string(), fs::read(&path).unwrap());
            }
        }
        found
    }

    fn terminal_text(dir: &Path) -> String {
        let held = RecordWriter::hold(dir);
        let record = Record::open(dir).unwrap();
        let (summary, findings) = judge::summarise(&record);
        made_again(held, &summary, &findings)
    }

    #[test]
    fn a_small_terminal_gets_the_short_report_unless_the_whole_one_is_asked_for() {
        let given = |brief: bool, full: bool| LengthArguments { brief, full };
        let (brief, full) = (TerminalLength::Brief, TerminalLength::Full);
        for (arguments, on_24_lines, on_40_lines, on_none) in [
            (given(false, false), brief, full, full),
            (given(true, false), brief, brief, brief),
            (given(false, true), full, full, full),
        ] {
            let lengths = [Some(24), Some(40), None].map(|lines| arguments.on(lines));
            assert_eq!(
                lengths,
                [on_24_lines, on_40_lines, on_none],
                "{arguments:?}"
            );
        }
    }

    #[test]
    fn only_the_report_on_a_terminal_has_two_lengths() {
        let parsed = |words: &[&str]| {
            let line = [&["dbduel", "report", "results/x"][..], words].concat();
            crate::command().try_get_matches_from(line).is_ok()
        };
        assert!(parsed(&["--brief"]) && parsed(&["--full", "--output", "x.txt"]));
        for words in [
            &["--brief", "--full"][..],
            &["--brief", "--format", "html"],
            &["--full", "--disclosure"],
        ] {
            assert!(!parsed(words), "{words:?}");
        }
    }

    #[test]
    fn all_that_a_run_leaves_is_made_again_and_the_data_stay() {
        let folder = tempfile::tempdir().unwrap();
        let dir = &folder.path().join("record");
        Scenario::duel().write(dir);
        // A writer that was killed left half a line, which is data too.
        let slices = dir.join("slices.csv");
        let torn = [fs::read(&slices).unwrap(), b"3,0,dou".to_vec()].concat();
        fs::write(&slices, torn).unwrap();
        let data = files(dir);

        let said = terminal_text(dir);
        assert!(
            said.starts_with("wrote report.html, report.md with "),
            "{said}"
        );
        assert!(said.contains(" charts and report.json in "), "{said}");
        let all = files(dir);
        let pictures = all.keys().filter(|name| name.ends_with(".svg")).count();
        assert!(said.contains(&format!("with {pictures} charts")), "{said}");
        for (name, content) in &data {
            assert_eq!(all.get(name), Some(content), "{name}");
        }

        let markdown = fs::read_to_string(dir.join("report.md")).unwrap();
        let picture = all.keys().find(|name| name.ends_with(".svg")).unwrap();
        assert!(markdown.contains(Path::new(picture).file_name().unwrap().to_str().unwrap()));
        for name in ["report.html", "report.md", "report.json"] {
            fs::remove_file(dir.join(name)).unwrap();
        }
        fs::remove_file(picture).unwrap();
        fs::write(dir.join("report-of-old.svg"), "stale").unwrap();
        terminal_text(dir);
        assert_eq!(files(dir), all);
    }

    #[test]
    fn a_record_that_is_being_written_gets_its_page_from_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let dir = &folder.path().join("record");
        Scenario::duel().write(dir);
        let writer = RecordWriter::open(dir, 1).unwrap();
        let said = terminal_text(dir);
        assert!(
            said.starts_with("could not rewrite the reports beside the data: "),
            "{said}"
        );
        assert!(!dir.join("report.html").exists());
        drop(writer);
    }
}
