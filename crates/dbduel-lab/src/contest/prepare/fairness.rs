//! Fairness audit of the running servers before anything is measured.

use std::path::Path;

use anyhow::Result;
use dbduel_audit::Finding;
use dbduel_audit::{Audit, Case, Grade, ServerEvidence, audit, declaration, fix};
use dbduel_record::Plan;
use dbduel_record::event::Severity;
use dbduel_record::facts::Host;

use crate::contest::journal::Journal;
use dbduel_inspect::planned::{case_of_running, is_running};

/// The audit's rule on settings that did not take effect.
const NOT_TAKEN: &str = "R17";

/// Audits the contenders on a machine with these facts, and journals findings that weaken a verdict.
///
/// # Errors
/// When the contenders are not comparable and no waiver accepts that.
pub fn check(
    plan: &Plan,
    experiment: &Path,
    facts: Host,
    evidence: Vec<ServerEvidence>,
    journal: &mut Journal<'_>,
) -> Result<()> {
    let mut case = case_of_running(plan, evidence);
    case.host = Some(facts);
    let audit = audit(&case);
    // Settings that did not take effect are reported when settings are read back, with the server's own words.
    let is_news =
        |finding: &&Finding| finding.severity > Severity::Note && finding.rule != NOT_TAKEN;
    for finding in audit.findings.iter().filter(is_news) {
        journal.notice(finding.listed().into())?;
    }
    NotComparable::refuse(
        plan,
        &case,
        &audit,
        &format!("dbduel audit {}", experiment.display()),
        experiment,
    )?;
    Ok(())
}

/// The contenders differ in durability or semantics, so no verdict on them is valid.
#[derive(Debug, thiserror::Error)]
#[error("the contenders are not comparable:\n  {}\n{cure}{acceptance}", findings.join("\n  "))]
pub struct NotComparable {
    findings: Vec<String>,
    /// True where settings would make them equal.
    is_curable: bool,
    /// What would make them equal.
    cure: String,
    /// How the experiment declares or accepts the difference.
    acceptance: String,
}

impl NotComparable {
    /// Refuses a case whose audit has a void finding. `command` audits the same case of this experiment.
    ///
    /// # Errors
    /// All void findings, with the command that fixes them, if settings can.
    pub fn refuse(
        plan: &Plan,
        case: &Case,
        audit: &Audit,
        command: &str,
        experiment: &Path,
    ) -> Result<(), Self> {
        let is_void = |finding: &&Finding| finding.severity == Severity::Void;
        let void: Vec<&Finding> = audit.findings.iter().filter(is_void).collect();
        if void.is_empty() {
            return Ok(());
        }
        let declare = match declaring(case, &void) {
            Some(about) => format!(
                "; or, if this difference is the question, declare it in the experiment: {about}"
            ),
            None => String::new(),
        };
        let is_curable = is_cured_by_fix(plan, case);
        let cure = match is_curable {
            true => format!(
                "`{command} --fix {}` writes an experiment with equal settings; run that one",
                experiment.with_file_name("equal.toml").display()
            ),
            false => "no experiment settings can make them equal".to_owned(),
        };
        Err(Self {
            findings: void.into_iter().map(as_line).collect(),
            is_curable,
            cure,
            acceptance: format!("{declare}; or accept it under [waivers] with a reason"),
        })
    }

    /// The same of contenders that the experiment gives as one, with the same settings.
    #[must_use]
    pub fn with_one_contender(self) -> Self {
        let cure = match self.is_curable {
            true => "set a value that the server of every revision accepts in `settings` of the contender".to_owned(),
            false => self.cure,
        };
        Self { cure, ..self }
    }
}

/// The line that declares void findings, with no more names than that takes; `None` where no declaration does. Facts are
/// named where variables are not enough: a server without the variable has the fact, too.
fn declaring(case: &Case, void: &[&Finding]) -> Option<String> {
    // Those that come first are left out first.
    let facts = void.iter().map(|found| found.rule.as_str());
    let mut names: Vec<&str> = facts
        .chain(void.iter().flat_map(|found| found.subject_names()))
        .collect();
    names.dedup();
    let is_enough = |names: &[&str]| {
        let mut declared = case.clone();
        declared
            .about
            .extend(names.iter().map(|&name| name.to_owned()));
        audit(&declared).grade != Grade::NotComparable
    };
    if !is_enough(&names) {
        return None;
    }
    let mut needed = names.clone();
    for name in names {
        let fewer: Vec<&str> = needed.iter().copied().filter(|&one| one != name).collect();
        if is_enough(&fewer) {
            needed = fewer;
        }
    }
    Some(declaration(&case.about, &needed))
}

/// True when the experiment written by `dbduel audit --fix` passes.
fn is_cured_by_fix(plan: &Plan, case: &Case) -> bool {
    let fix = fix(case);
    let mut settings = fix.settings.iter();
    fix.after.grade != Grade::NotComparable
        && !settings.any(|setting| is_running(plan, &setting.contender))
}

fn as_line(finding: &Finding) -> String {
    format!("{}: {} {}", finding.class, finding.claim, finding.remedy)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dbduel_record::facts::ServerHost;
    use dbduel_record::files::{FileSystem, LocalFiles};

    use super::*;
    use dbduel_audit::{Machine, Product, Version, expected, set_option};
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn servers_on_hosts_are_audited_by_the_facts_of_the_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("record");
        let scenario = Scenario::duel();
        scenario.write(&dir);
        let files: Arc<dyn FileSystem> = Arc::new(LocalFiles);
        let mut journal = Journal::open(&files, &dir, &[]).unwrap();
        let mut plan = scenario.plan();
        plan.waivers.clear();
        for contender in &mut plan.contenders {
            contender.settings.clear();
        }
        let mut check_on = |device: &str| {
            let host = ServerHost {
                name: "db1".to_owned(),
                facts: Host {
                    block_device: Some(device.to_owned()),
                    ..Host::default()
                },
                ..ServerHost::default()
            };
            let evidence = plan.contenders.iter().map(|contender| {
                let version = Version::parse("10.1.8").unwrap();
                let mut server = expected(
                    &contender.name,
                    Product::MariaDb,
                    version,
                    Machine::default(),
                )
                .unwrap();
                set_option(&mut server, "innodb_use_atomic_writes", Some("1")).unwrap();
                server
            });
            let facts = Host::of_server_hosts(vec![host]);
            let experiment = Path::new("duel.toml");
            check(&plan, experiment, facts, evidence.collect(), &mut journal)
        };
        check_on("/dev/fioa").unwrap();
        let refused = check_on("/dev/vda").unwrap_err();
        assert!(refused.is::<NotComparable>(), "{refused:#}");
        assert!(refused.to_string().contains("/dev/vda"), "{refused}");
        assert!(
            refused
                .to_string()
                .contains("dbduel audit duel.toml --fix equal.toml"),
            "{refused}"
        );
    }
}
