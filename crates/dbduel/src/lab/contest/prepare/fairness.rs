//! Whether the contest is fair, asked of the running servers before anything is measured.

use anyhow::Result;
use dbduel_record::event::Severity;

use crate::judge::audit::{Audit, ServerEvidence, audit};
use crate::judge::finding::Finding;
use crate::lab::contest::ContestConfig;
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
    config: &ContestConfig<'_>,
    evidence: Vec<ServerEvidence>,
    journal: &mut Journal,
) -> Result<()> {
    let mut case = case_of_running(config.plan, evidence);
    case.host = Some(host::read(config.home.root()));
    let audit = audit(&case);
    // Settings that did not take effect are reported when settings are read back, with the server's own words.
    let is_news =
        |finding: &&Finding| finding.severity > Severity::Note && finding.rule != NOT_TAKEN;
    for finding in audit.findings.iter().filter(is_news) {
        journal.notice(finding.listed().into())?;
    }
    NotComparable::refuse(&audit)?;
    Ok(())
}

/// The contenders promise or mean different things, so that no verdict on them could stand.
#[derive(Debug, thiserror::Error)]
#[error("the contenders are not comparable:\n  {}\n{remedy}", findings.join("\n  "))]
pub struct NotComparable {
    findings: Vec<String>,
    remedy: String,
}

impl NotComparable {
    /// Refuses an audit with a void finding.
    ///
    /// # Errors
    /// All that is void, with what to do.
    pub fn refuse(audit: &Audit) -> Result<(), Self> {
        let is_void = |finding: &&Finding| finding.severity == Severity::Void;
        let void: Vec<&Finding> = audit.findings.iter().filter(is_void).collect();
        let Some(first) = void.first() else {
            return Ok(());
        };
        let declare = match first.class.as_bytes().first() {
            Some(b'D' | b'S') => format!(
                "; or, if it is the question, declare it in the experiment, about = [\"{}\"]",
                first.class
            ),
            _ => String::new(),
        };
        let remedy =
            format!("correct the settings{declare}; or accept it under [waivers] with a reason");
        Err(Self {
            findings: void.into_iter().map(as_line).collect(),
            remedy,
        })
    }
}

fn as_line(finding: &Finding) -> String {
    format!("{}: {} {}", finding.class, finding.claim, finding.remedy)
}
