//! `dbduel audit`: was it fair? On dumps, option files, running servers, records, published results
//! and experiments, whose servers are started for it. Without any load.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_record::Plan;
use dbduel_record::event::Severity;

use crate::cli;
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::home;
use crate::interrupt;
use crate::judge::audit::{
    self, Audit, AuditFinding, Case, Contest, Fix, Outcome, Product, Version, Waiver,
};
use crate::lab::contest::board::Board;
use crate::lab::contest::{self, Setting};
use crate::lab::experiment::Experiment;
use crate::lab::host;
use crate::lab::inspect::{self, Subject, planned};
use crate::lab::server::Home;

/// Narrowest text that is wrapped, columns.
const WIDTH_MIN: usize = 60;
/// Where the text of a finding begins, columns.
const INDENT: usize = 7;
/// Values of a side that are printed; all are in the JSON.
const READS_PRINTED: usize = 6;

/// Audits what the arguments name.
///
/// # Errors
/// When something cannot be read, understood or written.
pub fn audit(home: Option<PathBuf>, arguments: &cli::Audit) -> Result<Exit> {
    let mut case = match arguments.targets.as_slice() {
        [one] => single(home, one, arguments.dry)?,
        [a, b] => inspect::pair(&[subject(a, &arguments.a())?, subject(b, &arguments.b())?])?,
        _ => bail!("an audit takes one or two targets"),
    };
    case.contest = match arguments.contest {
        cli::AuditContest::Equalised => Contest::Equalised,
        cli::AuditContest::OutOfTheBox => Contest::OutOfTheBox,
        cli::AuditContest::Tuned => Contest::Tuned,
    };
    case.subject.extend(arguments.about.iter().cloned());
    case.clients = arguments.clients.or(case.clients);
    for waiver in &arguments.waive {
        case.waivers.push(parse_waiver(waiver)?);
    }
    conclude(&case, arguments)
}

/// Judges a case, prints it and writes the fix that was asked for.
///
/// # Errors
/// When the output cannot be written.
pub fn conclude(case: &Case, arguments: &cli::Audit) -> Result<Exit> {
    let audit = audit::audit(case);
    let fix = arguments.fix.as_ref().map(|path| (path, audit::fix(case)));
    if arguments.json {
        let value = serde_json::json!({
            "schema_version": 1,
            "audited_by": env!("CARGO_PKG_VERSION"),
            "audit": audit,
            "fix": fix.as_ref().map(|(_, fix)| &fix.settings),
        });
        console::print(&(serde_json::to_string_pretty(&value)? + "\n"))?;
    } else {
        console::print(&render(&audit, arguments.all, console::width()))?;
    }
    if let Some((path, fix)) = &fix {
        write_fix(path, case, fix)?;
        if !arguments.json {
            console::print(&after_fix(path, fix))?;
        }
    }
    Ok(if audit.passes(arguments.strict) {
        Exit::Done
    } else {
        Exit::Void
    })
}

/// A single target: a record, a directory of results or an experiment file.
fn single(home: Option<PathBuf>, target: &str, is_dry: bool) -> Result<Case> {
    let path = Path::new(target);
    if path.is_dir() {
        return inspect::directory(path);
    }
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        let text = fs::read_to_string(path)
            .with_context(|| format!("could not read the experiment file `{target}`"))?;
        let (experiment, plan) = super::run::plan_of(path, &text)?;
        if is_dry {
            return planned::case(&plan);
        }
        return started(&home::find(home)?, path, &experiment, &plan);
    }
    bail!(
        "`{target}` is one server; name the other too, or give a record, a directory of results or an experiment file (.toml)"
    )
}

/// The case that an experiment's servers make when they run.
fn started(home: &Home, path: &Path, experiment: &Experiment, plan: &Plan) -> Result<Case> {
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let console = Console::new();
    super::run::clear_leftovers(home, &console);
    // There is no record; its name keeps the sandboxes of two audits apart.
    let record = home
        .root()
        .join(format!("audit-{}-{}", plan.seed, std::process::id()));
    let setting = Setting {
        plan,
        experiment,
        experiment_path: path,
        record: &record,
        home,
        console: &console,
        board: &Board::default(),
        keep: false,
        stacks: false,
    };
    let evidence = contest::rehearse(&setting);
    console.finish();
    let mut case = planned::case_of_running(plan, evidence?);
    case.host = Some(host::read(home.root()));
    Ok(case)
}

fn subject(target: &str, side: &cli::AuditSide<'_>) -> Result<Subject> {
    let product = side.product.map(|name| {
        Product::named(name)
            .with_context(|| format!("`{name}` is no product; write mysql, mariadb or percona"))
    });
    let version = side.version.map(|text| {
        Version::parse(text)
            .with_context(|| format!("`{text}` is no version; write for example 5.6.24"))
    });
    Ok(Subject {
        target: target.to_owned(),
        name: side.name.map_or_else(|| short_name(target), str::to_owned),
        product: product.transpose()?,
        version: version.transpose()?,
        password_file: side.password_file.map(Path::to_owned),
    })
}

/// Names of files that say what is in them and not whose they are.
const NO_NAMES: &[&str] = &["variables", "my", "mysqld", "server", "vars", "config"];

/// What to call a target: an address as it is, a file by its name, or by its directory's where the name says nothing.
fn short_name(target: &str) -> String {
    if target.contains("://") || target.starts_with("unix:") {
        return target.to_owned();
    }
    let path = Path::new(target);
    let name = if path.is_dir() {
        path.file_name()
    } else {
        path.file_stem()
    };
    let is_no_name =
        name.is_some_and(|name| NO_NAMES.iter().any(|word| name.eq_ignore_ascii_case(word)));
    let parent = path
        .parent()
        .and_then(Path::file_name)
        .filter(|_| is_no_name);
    parent.or(name).map_or_else(
        || target.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn parse_waiver(text: &str) -> Result<Waiver> {
    match text.split_once('=') {
        Some((of, reason)) if !of.trim().is_empty() && !reason.trim().is_empty() => Ok(Waiver {
            of: of.trim().to_owned(),
            reason: reason.trim().to_owned(),
        }),
        _ => bail!(
            "`{text}` is no waiver; write CLASS=REASON, for example D3=\"the device writes pages whole\""
        ),
    }
}

/// The audit as text.
fn render(audit: &Audit, is_everything: bool, width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut text = format!("Was it fair? {}\n\n", audit.grade.word());
    let longest = audit
        .contenders
        .iter()
        .map(|contender| contender.name.chars().count())
        .max()
        .unwrap_or(0);
    for contender in &audit.contenders {
        let _ = writeln!(
            text,
            "  {:<longest$}  {} {}  ({})",
            contender.name, contender.product, contender.version, contender.source
        );
        wrap(&mut text, &contender.promise, longest + 4, width);
    }
    for finding in &audit.findings {
        text.push('\n');
        render_finding(&mut text, finding, is_everything, width);
    }
    render_counts(&mut text, audit, is_everything);
    for waiver in &audit.unused_waivers {
        let _ = writeln!(
            text,
            "The waiver of {} was not needed: {}",
            waiver.of, waiver.reason
        );
    }
    text
}

fn render_finding(text: &mut String, finding: &AuditFinding, is_everything: bool, width: usize) {
    let word = match finding.severity {
        Severity::Void => "void ",
        Severity::Doubt => "doubt",
        Severity::Note => "note ",
    };
    let _ = writeln!(text, "{word}  {}  {}", finding.class, finding.rule);
    wrap(text, &finding.claim, INDENT, width);
    if let Some(reason) = &finding.waived {
        wrap(text, &format!("Waived: {reason}"), INDENT, width);
    }
    if finding.severity == Severity::Note && !is_everything {
        return;
    }
    for side in finding.evidence.iter().filter(|side| !side.from.is_empty()) {
        let mut reads: Vec<String> = side
            .from
            .iter()
            .take(READS_PRINTED)
            .map(|read| format!("{}={}", read.name, read.value))
            .collect();
        if side.from.len() > READS_PRINTED {
            reads.push(format!("and {} more", side.from.len() - READS_PRINTED));
        }
        let line = format!("{}: {}", side.contender, reads.join(" "));
        wrap(text, &line, INDENT + 2, width);
    }
    wrap(text, &finding.why, INDENT, width);
    wrap(text, &finding.remedy, INDENT, width);
}

fn render_counts(text: &mut String, audit: &Audit, is_everything: bool) {
    let count = |outcome: Outcome| {
        audit
            .comparisons
            .iter()
            .filter(|one| one.outcome == outcome)
            .count()
    };
    let _ = writeln!(
        text,
        "\n{} facts are equal, {} equivalent, {} differ, {} exist on one side, {} were not looked at, {} could not be read.",
        count(Outcome::Equal),
        count(Outcome::Equivalent),
        count(Outcome::Differs),
        count(Outcome::OneSided),
        count(Outcome::NotSeen),
        count(Outcome::Unreadable)
    );
    let favoured: Vec<String> = audit
        .contenders
        .iter()
        .map(|contender| (audit.favours(&contender.name), &contender.name))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} `{name}`"))
        .collect();
    if !favoured.is_empty() {
        let _ = writeln!(
            text,
            "Of the doubts whose direction is known, these favour: {}.",
            favoured.join(", ")
        );
    }
    if is_everything {
        for one in &audit.comparisons {
            let _ = writeln!(
                text,
                "  {:<4} {}: {} | {}",
                one.class, one.title, one.sides[0].value, one.sides[1].value
            );
        }
    }
}

/// Appends `line`, broken at blanks and indented. Control characters, which other people's files may
/// hold, do not reach the terminal.
fn wrap(text: &mut String, line: &str, indent: usize, width: usize) {
    let line = line.replace(char::is_control, " ");
    let mut column = 0;
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            text.push('\n');
            column = 0;
        }
        if column == 0 {
            let _ = write!(text, "{:indent$}{word}", "");
            column = indent + length;
        } else {
            text.push(' ');
            text.push_str(word);
            column += 1 + length;
        }
    }
    text.push('\n');
}

/// Writes an experiment in which the contenders are equal.
fn write_fix(path: &Path, case: &Case, fix: &Fix) -> Result<()> {
    if path.exists() {
        bail!("`{}` exists; name a new file", path.display());
    }
    fs::write(path, experiment(case, fix))
        .with_context(|| format!("could not write `{}`", path.display()))
}

fn experiment(case: &Case, fix: &Fix) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text = String::from(
        "# Written by `dbduel audit --fix`: the contenders with the settings that make them equal.\n\
         # Settings that were theirs come first; those below the line make them equal.\n",
    );
    for finding in fix
        .after
        .findings
        .iter()
        .filter(|finding| finding.severity > Severity::Note)
    {
        let _ = writeln!(
            text,
            "# No setting changes this: {}",
            finding.claim.replace('\n', " ")
        );
    }
    text.push_str("question = \"Do these servers differ when their settings are equal?\"\n");
    for contender in &case.contenders {
        let name = quoted(&contender.name);
        let server = quoted(&format!(
            "{}-{}",
            contender.product.word(),
            contender.version
        ));
        let _ = write!(
            text,
            "\n[contenders.{name}]\nserver = {server}\n\n[contenders.{name}.settings]\n"
        );
        for setting in fix
            .kept
            .iter()
            .filter(|setting| setting.contender == contender.name)
        {
            let _ = writeln!(text, "{} = {}", setting.name, quoted(&setting.value));
        }
        text.push_str("# ---\n");
        for setting in fix
            .settings
            .iter()
            .filter(|setting| setting.contender == contender.name)
        {
            let _ = writeln!(text, "{} = {}", setting.name, quoted(&setting.value));
        }
    }
    text.push_str("\n[workload]\nname = \"oltp-read-write\"\n\n[load]\nclients = [1, 16]\n");
    text
}

fn after_fix(path: &Path, fix: &Fix) -> String {
    let grade = fix.after.grade.word();
    format!(
        "\n`{}` has {} settings that make them equal; with these the audit says: {grade}.\n",
        path.display(),
        fix.settings.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waivers_need_a_class_and_a_reason() {
        assert_eq!(
            parse_waiver("D3 = ours = fine").unwrap(),
            Waiver {
                of: "D3".to_owned(),
                reason: "ours = fine".to_owned()
            }
        );
        for text in ["D3", "D3=", "=why", ""] {
            assert!(parse_waiver(text).is_err(), "{text}");
        }
    }

    #[test]
    fn long_lines_are_broken_at_blanks() {
        let mut text = String::new();
        wrap(&mut text, "one two three", 2, 9);
        assert_eq!(text, "  one two\n  three\n");
        text.clear();
        wrap(&mut text, "a\u{1b}[31mb\nc", 0, 60);
        assert_eq!(text, "a [31mb c\n");
    }
}
