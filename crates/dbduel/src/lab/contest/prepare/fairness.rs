//! Whether the contest is fair, asked of the running servers before anything is measured.

use anyhow::Result;
use dbduel_record::event::Severity;

use crate::judge::audit::{AuditFinding, Grade, ServerEvidence, audit};
use crate::lab::contest::Setting;
use crate::lab::contest::journal::Journal;
use crate::lab::host;
use crate::lab::inspect::planned::case_of_running;

/// The audit's rule about settings that did not take effect.
const NOT_TAKEN: &str = "R17";

/// Audits the contenders and keeps what weakens a verdict in the journal.
///
/// # Errors
/// When the contenders do not promise the same and no waiver accepts that: a contest would compare
/// what cannot be compared.
pub fn check(
    setting: &Setting<'_>,
    evidence: Vec<ServerEvidence>,
    journal: &mut Journal,
) -> Result<()> {
    let mut case = case_of_running(setting.plan, evidence);
    case.host = Some(host::read(setting.home.root()));
    let audit = audit(&case);
    // Settings that did not take effect are told by the interview, with the server's own words.
    let is_news =
        |finding: &&AuditFinding| finding.severity > Severity::Note && finding.rule != NOT_TAKEN;
    for finding in audit.findings.iter().filter(is_news) {
        journal.notice(finding.to_finding())?;
    }
    if audit.grade == Grade::NotComparable {
        let void: Vec<String> = audit
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Void)
            .map(as_line)
            .collect();
        return Err(NotComparable(void.join("\n  ")).into());
    }
    Ok(())
}

/// The contenders promise or mean different things, so that no verdict on them could stand.
#[derive(Debug, thiserror::Error)]
#[error(
    "the contenders are not comparable:\n  {0}\nmend the settings, or accept it under [waivers] with a reason"
)]
pub struct NotComparable(String);

fn as_line(finding: &AuditFinding) -> String {
    format!("{}: {} {}", finding.class, finding.claim, finding.remedy)
}
