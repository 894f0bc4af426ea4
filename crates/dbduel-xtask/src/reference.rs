//! Reference pages in Markdown on verbs, workloads, facts and rules, generated from the program's definitions.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Command;
use dbduel_audit::RULES;
use dbduel_audit::classes::Weight;
use dbduel_audit::table::table;
use dbduel_judge::rules::table::rules;

/// Columns of a verb's help.
const COLUMNS: usize = 100;

/// Writes all pages into `dir`.
///
/// # Errors
/// When one cannot be written.
pub fn write(command: Command, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("could not create `{}`", dir.display()))?;
    let pages = [
        ("commands.md", verbs(command)?),
        ("workloads.md", workload_parameters()?),
        ("facts.md", facts()?),
        ("rules.md", rule_list()?),
    ];
    for (name, text) in pages {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("could not write `{}`", path.display()))?;
    }
    Ok(())
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn workload_parameters() -> Result<String> {
    let mut page = String::from(
        "# Workloads and their parameters\n\nThe output of `dbduel workloads NAME`. A script \
         written for sysbench can be a workload too ([scripts](../scripts.md)), and captured statements \
         ([own workload](../own-workload.md)).\n",
    );
    for workload in dbduel_workloads::WORKLOADS {
        writeln!(
            page,
            "\n## {}\n\n{}",
            workload.name(),
            cell(workload.about())
        )?;
        if workload.parameters().is_empty() {
            continue;
        }
        page.push_str("\n| parameter | takes | default | meaning |\n| --- | --- | --- | --- |\n");
        for parameter in workload.parameters() {
            writeln!(
                page,
                "| `{}` | {} | `{}` | {} |",
                parameter.name,
                cell(&parameter.kind.to_string()),
                cell(&parameter.default.value().to_string()),
                cell(parameter.about)
            )?;
        }
    }
    Ok(page)
}

fn facts() -> Result<String> {
    let mut page = String::from(
        "# Facts of the audit\n\nThe facts that the audit compares: D durability, S semantics, P \
         performance, I information. `about` and `[waivers]` take the names of facts and of \
         classes ([fairness](../fairness.md)).\n",
    );
    let mut facts: Vec<_> = table().facts.iter().collect();
    facts.sort_by_key(|fact| (fact.class.weight() == Weight::Information, fact.class.id));
    let mut class = "";
    for fact in facts {
        if fact.class.id != class {
            class = fact.class.id;
            writeln!(
                page,
                "\n## {class}: {}\n\n| fact | what | why it matters |\n| --- | --- | --- |",
                fact.class.title
            )?;
        }
        let unit = match fact.unit.as_str() {
            "" => String::new(),
            unit => format!(" ({unit})"),
        };
        writeln!(
            page,
            "| `{}` | {}{unit} | {} |",
            fact.name,
            cell(&fact.title),
            cell(&fact.why)
        )?;
    }
    Ok(page)
}

fn rule_list() -> Result<String> {
    let mut page = String::from(
        "# Rules\n\nChecks beside the facts, and the reason for each. Findings carry the rule's \
         name. Those with a class belong to the audit and can be waived by it; the others are \
         about a run.\n\n| rule | class | why it matters |\n| --- | --- | --- |\n",
    );
    let of_servers = RULES.iter().map(|rule| (rule.id, rule.class, rule.why));
    for (id, class, why) in of_servers.chain(rules().map(|rule| (rule.id, "", rule.why))) {
        writeln!(page, "| `{id}` | {class} | {} |", cell(why))?;
    }
    Ok(page)
}

/// The help of every visible verb.
fn verbs(command: Command) -> Result<String> {
    let mut page = String::from(
        "# Command line\n\nThe output of `--help`; the exit codes are at the end of the first \
         part. [Commands](../commands.md) explains the verbs.\n",
    );
    let mut command = command.term_width(COLUMNS);
    command.build();
    let mut pending = vec![command];
    while let Some(mut command) = pending.pop() {
        let name = command.get_bin_name().unwrap_or("dbduel").to_owned();
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        writeln!(page, "\n## {name}\n\n```text\n{}\n```", lines.join("\n"))?;
        let is_shown = |verb: &&Command| !verb.is_hide_set() && verb.get_name() != "help";
        let below: Vec<Command> = command
            .get_subcommands()
            .filter(is_shown)
            .cloned()
            .collect();
        pending.extend(below.into_iter().rev());
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_workload_fact_and_rule_is_on_its_page() {
        let dir = tempfile::tempdir().unwrap();
        write(dbduel::command(), dir.path()).unwrap();
        let page = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let verbs = page("commands.md");
        for part in [
            "## dbduel run\n",
            "## dbduel servers install\n",
            "--fail-if",
            "Exit codes:",
        ] {
            assert!(verbs.contains(part), "{part}");
        }
        assert!(!verbs.contains("## dbduel drive"));
        let workloads_page = page("workloads.md");
        for workload in dbduel_workloads::WORKLOADS {
            assert!(workloads_page.contains(&format!("\n## {}\n", workload.name())));
        }
        let (facts_page, rules_page) = (page("facts.md"), page("rules.md"));
        for fact in &table().facts {
            assert_eq!(
                facts_page.matches(&format!("| `{}` |", fact.name)).count(),
                1
            );
        }
        for id in RULES
            .iter()
            .map(|rule| rule.id)
            .chain(rules().map(|rule| rule.id))
        {
            assert!(rules_page.contains(&format!("| `{id}` |")));
        }
        // A class has one table.
        let classes = facts_page.lines().filter(|line| line.starts_with("## "));
        let mut seen: Vec<&str> = classes.collect();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
