//! Audits of several contests or runs: one line per distinct finding, with the number of runs that have it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use dbduel_audit::Finding;
use dbduel_audit::{Audit, Grade, Product};
use dbduel_inspect::Gathered;
use dbduel_record::event::Severity;
use dbduel_report as report;
use dbduel_text::counts;
use serde::Serialize;

use super::text::{INDENT, WIDTH_MIN, wrap};

/// A finding that contests of a directory share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Common {
    /// Its severity.
    pub severity: Severity,
    /// Class, empty for a contest as a whole.
    pub class: String,
    /// Fact or rule that found it.
    pub rule: String,
    /// Contenders that it is about; empty for all.
    pub about: Vec<String>,
    /// Its claim in the first of its contests.
    pub claim: String,
    /// Runs of these contenders in contests with this finding.
    pub runs: usize,
    /// Number of distinct claims.
    pub claims: usize,
    /// True when it rests on an option file that its server does not accept.
    pub is_moot: bool,
}

/// A finding, its claims, and the indexes of contest and contender that have it.
type Counted<'a> = (Common, Vec<&'a str>, BTreeSet<(usize, usize)>);

/// A server of the contests.
#[derive(Debug, Clone, PartialEq)]
struct Server {
    name: String,
    product: Product,
    version: String,
    runs: usize,
}

/// Number of runs that a contender of a contest represents.
fn runs_of(contest: &Gathered, index: usize) -> usize {
    contest.runs.get(index).copied().unwrap_or(1)
}

/// True when the report is one line per finding, not every audit in full: several contests or runs.
pub fn is_summed_up(contests: &[Gathered]) -> bool {
    let is_of_several_runs = |contest: &Gathered| contest.runs.iter().any(|&runs| runs > 1);
    contests.len() > 1 || contests.iter().any(is_of_several_runs)
}

/// The distinct findings of all contests, by severity, then by number of runs.
pub fn common(contests: &[Gathered], audits: &[Audit]) -> Vec<Common> {
    let mut found: Vec<Counted<'_>> = Vec::new();
    for (number, (contest, audit)) in contests.iter().zip(audits).enumerate() {
        let refusals = audit.findings.iter();
        let refused: Vec<&String> = refusals
            .filter(|finding| finding.makes_others_moot())
            .flat_map(|finding| &finding.about)
            .collect();
        for finding in &audit.findings {
            let about = contenders_about(contest, finding).map(|index| (number, index));
            let is_moot = !finding.makes_others_moot()
                && finding.about.iter().any(|name| refused.contains(&name));
            let known = found.iter_mut().find(|(known, _, _)| {
                (known.severity, &known.rule, &known.about, known.is_moot)
                    == (finding.severity, &finding.rule, &finding.about, is_moot)
            });
            match known {
                Some((known, claims, of)) => {
                    of.extend(about);
                    if !claims.contains(&finding.claim.as_str()) {
                        claims.push(&finding.claim);
                        known.claims += 1;
                    }
                }
                None => found.push((
                    Common {
                        severity: finding.severity,
                        class: finding.class.clone(),
                        rule: finding.rule.clone(),
                        about: finding.about.clone(),
                        claim: finding.claim.clone(),
                        runs: 0,
                        claims: 1,
                        is_moot,
                    },
                    vec![&finding.claim],
                    about.collect(),
                )),
            }
        }
    }
    // The baseline of a contest of several is in each of its pairs, and its runs count once.
    let counted = |(common, _, of): Counted<'_>| Common {
        runs: of
            .iter()
            .map(|&(number, index)| runs_of(&contests[number], index))
            .sum(),
        ..common
    };
    let mut found: Vec<Common> = found.into_iter().map(counted).collect();
    // Stable: audits have their findings in the order of their classes.
    found.sort_by_key(|one| (one.is_moot, Reverse(one.severity), Reverse(one.runs)));
    found
}

/// The contenders of a contest that a finding is about.
fn contenders_about<'a>(
    contest: &'a Gathered,
    finding: &'a Finding,
) -> impl Iterator<Item = usize> + 'a {
    let contenders = contest.case.contenders.iter().enumerate();
    contenders
        .filter(|(_, one)| finding.about.is_empty() || finding.about.contains(&one.name))
        .map(|(index, _)| index)
}

/// The contests as text.
pub fn render(contests: &[Gathered], audits: &[Audit], width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let servers = servers(contests, audits);
    let total: usize = servers.iter().map(|server| server.runs).sum();
    let grade = audits.iter().map(|audit| audit.grade).max();
    let held = contests
        .iter()
        .map(|contest| 1 + contest.alike)
        .sum::<usize>();
    let mut text = String::new();
    let head = format!(
        "Was it fair? {}: {} of {} in {}",
        grade.unwrap_or(Grade::Fair).word(),
        counts::things(total as u64, "run"),
        counts::things(servers.len() as u64, "server"),
        counts::things(held as u64, "contest")
    );
    wrap(&mut text, &head, 0, width);
    text.push('\n');
    for server in &servers {
        let line = format!(
            "{}: {} {}, {}",
            server.name,
            server.product,
            server.version,
            counts::things(server.runs as u64, "run")
        );
        wrap(&mut text, &line, 2, width);
    }
    let findings = common(contests, audits);
    let (moot, certain): (Vec<&Common>, Vec<&Common>) =
        findings.iter().partition(|finding| finding.is_moot);
    let (heavy, notes): (Vec<&Common>, Vec<&Common>) = certain
        .into_iter()
        .partition(|finding| finding.severity > Severity::Note);
    if !heavy.is_empty() {
        text.push('\n');
    }
    for finding in heavy {
        line(&mut text, finding, total, width);
    }
    text.push('\n');
    if !moot.is_empty() {
        let line = format!(
            "{} more rest on option files that their servers do not accept.",
            counts::things(moot.len() as u64, "finding")
        );
        wrap(&mut text, &line, 0, width);
    }
    let line = format!(
        "{} not shown. For evidence and remedies use `--all`, or audit one folder.",
        counts::things(notes.len() as u64, "note")
    );
    wrap(&mut text, &line, 0, width);
    text
}

/// A finding as one line, or as a few where the terminal is narrow.
fn line(text: &mut String, finding: &Common, total: usize, width: usize) {
    let word = match finding.severity {
        Severity::Void => "void",
        Severity::Doubt => "doubt",
        Severity::Note => "note",
    };
    let more = match finding.claims {
        1 => String::new(),
        claims => format!(" ({} more like it)", claims - 1),
    };
    let name = format!("{} {}", finding.class, finding.rule);
    let head = format!(
        "{word:<5}  {} of {total} runs  {}  ",
        finding.runs,
        name.trim()
    );
    let claim = format!("{}{more}", finding.claim).replace(char::is_control, " ");
    let lines = report::wrap(&claim, width, head.chars().count(), INDENT);
    for (number, line) in lines.iter().enumerate() {
        let start = if number == 0 {
            head.clone()
        } else {
            " ".repeat(INDENT)
        };
        let _ = writeln!(text, "{start}{line}");
    }
}

fn servers(contests: &[Gathered], audits: &[Audit]) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    for (contest, audit) in contests.iter().zip(audits) {
        for (index, contender) in audit.contenders.iter().enumerate() {
            let runs = runs_of(contest, index);
            let server = Server {
                name: contender.name.clone(),
                product: contender.product,
                version: contender.version.clone(),
                runs: 0,
            };
            match servers
                .iter_mut()
                .find(|known| (&known.name, &known.version) == (&server.name, &server.version))
            {
                Some(known) => known.runs += runs,
                None => servers.push(Server { runs, ..server }),
            }
        }
    }
    servers
}
