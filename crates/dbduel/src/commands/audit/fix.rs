//! The experiment that `--fix` writes: the user's own file with the settings that make its contenders
//! equal, or a new one where there was none.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use dbduel_record::Plan;
use dbduel_record::event::Severity;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::text::wrap;
use crate::commands::run::plan_of;
use crate::judge::audit::{AuditFinding, Fix, RemedySetting, ServerEvidence};
use crate::lab::experiment::normalised_name;
use crate::lab::inspect::{Gathered, Origin};
use crate::lab::server::{Meaning, ServerName, Version, reserved};

/// Stands above what is added to an experiment.
const MARK: &str = "# Added by `dbduel audit --fix`, so that the contenders are equal.\n";

/// Writes the experiment and checks that it can be planned.
///
/// # Errors
/// When the file exists or cannot be written, or what was found cannot be made an experiment.
pub fn write(path: &Path, contest: &Gathered, fix: &Fix) -> Result<()> {
    if path.exists() {
        bail!("`{}` exists; name a new file", path.display());
    }
    let text = match &contest.origin {
        Origin::Experiment { path: given, text } => experiment(given, text, path, contest, fix)?,
        Origin::Servers(addresses) => {
            let text = composed(contest, addresses, fix);
            plan_of(path, &text).context("the equalised experiment cannot be planned")?;
            text
        }
    };
    fs::write(path, text).with_context(|| format!("could not write `{}`", path.display()))
}

/// What was set, and what no setting changes, for the terminal.
#[must_use]
pub fn summary(path: &Path, fix: &Fix, width: usize) -> String {
    let mut text = format!(
        "\n`{}` sets {}; with that the audit says: {}.\n",
        path.display(),
        match fix.settings.len() {
            0 => "nothing, for there is nothing that a setting would make equal".to_owned(),
            1 => "1 thing".to_owned(),
            many => format!("{many} things"),
        },
        fix.after.grade.word()
    );
    for setting in &fix.settings {
        let RemedySetting {
            contender,
            name,
            value,
        } = setting;
        let _ = writeln!(text, "  {contender}: {name} = {value}");
    }
    for finding in left(fix) {
        wrap(
            &mut text,
            &format!("Left as it is: {}", finding.claim),
            2,
            width,
        );
    }
    text
}

/// What is more than a note after the fix: no setting changes it, or the contest is about it.
fn left(fix: &Fix) -> impl Iterator<Item = &AuditFinding> {
    let findings = fix.after.findings.iter();
    findings.filter(|finding| finding.severity > Severity::Note)
}

/// An experiment's text with these settings; everything else, comments too, stays as it is.
fn amended(text: &str, settings: &[RemedySetting]) -> Result<String> {
    let mut document: DocumentMut = text.parse()?;
    for setting in settings {
        let (table, has_lines) = settings_of(&mut document, &setting.contender)
            .with_context(|| format!("there is no table of contender `{}`", setting.contender))?;
        set(table, has_lines, &setting.name, &setting.value);
    }
    Ok(document.to_string())
}

/// The table of a contender's settings, made where there is none, and whether each setting in it has a line of
/// its own, so that a comment may stand above.
fn settings_of<'d>(
    document: &'d mut DocumentMut,
    contender: &str,
) -> Option<(&'d mut dyn TableLike, bool)> {
    let contender = document
        .get_mut("contenders")?
        .as_table_like_mut()?
        .get_mut(contender)?;
    let is_inline = contender.is_inline_table();
    let contender = contender.as_table_like_mut()?;
    if !contender.contains_key("settings") {
        let empty = if is_inline {
            Item::Value(Value::InlineTable(InlineTable::new()))
        } else {
            Item::Table(Table::new())
        };
        contender.insert("settings", empty);
    }
    let settings = contender.get_mut("settings")?;
    let has_lines = settings.as_table().is_some_and(|table| !table.is_dotted());
    Some((settings.as_table_like_mut()?, has_lines))
}

/// Alters the setting where it stands, under whatever spelling, or adds it at the end.
fn set(table: &mut dyn TableLike, has_lines: bool, name: &str, value: &str) {
    let mut new = match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => Value::from(number),
        _ => Value::from(value),
    };
    // `skip_log_bin` beside `log_bin = "ON"` would be two answers to one question.
    if let Some(opposite) = name
        .strip_prefix("skip_")
        .and_then(|bare| spelled(table, bare))
    {
        table.remove(&opposite);
    }
    if let Some(spelling) = spelled(table, name) {
        if let Some(old) = table.get_mut(&spelling).and_then(Item::as_value_mut) {
            // What stands around the value is the user's: blanks, and a comment after it.
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        return;
    }
    let is_marked = table.iter().any(|(key, _)| {
        let before = table.key(key).and_then(|key| key.leaf_decor().prefix());
        before
            .and_then(|before| before.as_str())
            .is_some_and(|before| before.ends_with(MARK))
    });
    table.insert(name, Item::Value(new));
    if let Some(mut key) = table.key_mut(name).filter(|_| has_lines && !is_marked) {
        key.leaf_decor_mut().set_prefix(MARK);
    }
    if !has_lines {
        tidy(table);
    }
}

/// Moves the blank before the closing brace of an inline table behind what is its last value now.
fn tidy(table: &mut dyn TableLike) {
    let mut closing = None;
    for (_, item) in table.iter_mut() {
        let Some(value) = item.as_value_mut() else {
            continue;
        };
        let after = value.decor().suffix().and_then(|after| after.as_str());
        if let Some(blank) = after.filter(|after| !after.is_empty() && after.trim().is_empty()) {
            closing = Some(blank.to_owned());
            value.decor_mut().set_suffix("");
        }
    }
    let last = table.iter_mut().last();
    if let (Some(blank), Some(value)) = (closing, last.and_then(|(_, item)| item.as_value_mut())) {
        value.decor_mut().set_suffix(blank);
    }
}

/// How the table spells a setting.
fn spelled(table: &dyn TableLike, name: &str) -> Option<String> {
    let mut keys = table.iter().map(|(key, _)| key);
    keys.find(|key| normalised_name(key) == normalised_name(name))
        .map(str::to_owned)
}

/// Settings of a plan's contenders, by contender and normalised name.
fn settings_by_name(plan: &Plan) -> BTreeMap<(String, String), String> {
    let contenders = plan.contenders.iter();
    let settings = contenders.flat_map(|contender| {
        contender.settings.iter().map(|setting| {
            let key = (contender.name.clone(), normalised_name(&setting.name));
            (key, setting.value.clone())
        })
    });
    settings.collect()
}

/// Rounds of amending: the settings of the fix, and what keeps others as they were.
const ROUNDS: usize = 2;

/// The given experiment, amended. A contender that is like an amended one keeps what it had.
fn experiment(
    given: &Path,
    text: &str,
    path: &Path,
    contest: &Gathered,
    fix: &Fix,
) -> Result<String> {
    let (_, before) = plan_of(given, text)?;
    refuse_running(&before, fix)?;
    let mut settings = fix.settings.clone();
    for _ in 0..ROUNDS {
        let amended = amended(text, &settings)
            .with_context(|| format!("could not amend `{}`", given.display()))?;
        let (_, after) = plan_of(path, &amended).with_context(|| {
            format!(
                "the amended experiment cannot be planned from `{}`; name a file beside `{}`",
                path.display(),
                given.display()
            )
        })?;
        let inherited = inherited(&before, &after, &settings, contest)?;
        if inherited.is_empty() {
            return Ok(amended);
        }
        settings.extend(inherited);
    }
    bail!(
        "the contenders take settings from each other in a way that cannot be amended; give each its own"
    )
}

/// A server that runs already is not ours to set.
fn refuse_running(plan: &Plan, fix: &Fix) -> Result<()> {
    let is_running = |contender: &str| {
        let mut contenders = plan.contenders.iter();
        let found = contenders.find(|one| one.name == contender);
        let name = found.and_then(|one| ServerName::parse(&one.server).ok());
        name.is_some_and(|name| matches!(name.meaning, Meaning::Running { .. }))
    };
    let on_running = fix.settings.iter().filter(|one| is_running(&one.contender));
    let lines: Vec<String> = on_running
        .map(|one| format!("  {}: {} = {}", one.contender, one.name, one.value))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    bail!(
        "servers that run already are not set by an experiment; set these on them and audit again:\n{}",
        lines.join("\n")
    )
}

/// Settings that contenders took over from an amended one, with the values that they had.
fn inherited(
    before: &Plan,
    after: &Plan,
    settings: &[RemedySetting],
    contest: &Gathered,
) -> Result<Vec<RemedySetting>> {
    let (before, after) = (settings_by_name(before), settings_by_name(after));
    let is_meant = |contender: &str, name: &str| {
        settings.iter().any(|setting| {
            let set = normalised_name(&setting.name);
            setting.contender == contender
                && (set == name || set.strip_prefix("skip_") == Some(name))
        })
    };
    let mut found = Vec::new();
    for (key, value) in &after {
        let (contender, name) = key;
        if before.get(key) == Some(value) || is_meant(contender, name) {
            continue;
        }
        let mut contenders = contest.case.contenders.iter();
        let evidence = contenders.find(|one| one.name == *contender);
        let shown = evidence.and_then(|evidence| evidence.variables.get(name));
        let had = before.get(key).or(shown).with_context(|| {
            format!(
                "`{contender}` is like a contender that needs `{name}`, which its server does not have; give it settings of its own"
            )
        })?;
        found.push(RemedySetting {
            contender: contender.clone(),
            name: name.clone(),
            value: had.clone(),
        });
    }
    Ok(found)
}

/// An experiment of servers that had none.
fn composed(contest: &Gathered, addresses: &[Option<String>], fix: &Fix) -> String {
    let mut text = String::from(
        "# Written by `dbduel audit --fix`: the servers with settings that make them equal.\n",
    );
    for finding in left(fix) {
        let _ = writeln!(
            text,
            "# No setting changes this: {}",
            finding.claim.replace(char::is_control, " ")
        );
    }
    text.push_str("question = \"Do these servers differ when their settings are equal?\"\n");
    for (contender, address) in contest.case.contenders.iter().zip(addresses) {
        compose_contender(&mut text, contender, address.as_deref(), fix);
    }
    text.push_str(
        "\n# The workload and the load are examples; put your own here.\n\
         [workload]\nname = \"oltp-read-write\"\n\n[load]\nclients = [1, 16]\n",
    );
    text
}

fn compose_contender(
    text: &mut String,
    contender: &ServerEvidence,
    address: Option<&str>,
    fix: &Fix,
) {
    let name = quoted(&contender.name);
    let _ = writeln!(text, "\n[contenders.{name}]");
    let of = |settings: &[RemedySetting]| -> Vec<RemedySetting> {
        let own = settings.iter();
        own.filter(|setting| setting.contender == contender.name)
            .cloned()
            .collect()
    };
    if let Some(address) = address {
        let _ = writeln!(text, "server = {}", quoted(address));
        let settings = of(&fix.settings);
        if !settings.is_empty() {
            text.push_str(
                "# dbduel does not configure a server that runs already. Set these there first:\n",
            );
        }
        for setting in settings {
            let _ = writeln!(text, "#   {} = {}", setting.name, setting.value);
        }
        return;
    }
    let (remark, server) = server_of(contender);
    if let Some(remark) = remark {
        let _ = writeln!(text, "# {remark}");
    }
    let _ = writeln!(
        text,
        "server = {}\n\n[contenders.{name}.settings]",
        quoted(&server)
    );
    for setting in of(&fix.kept) {
        let line = format!("{} = {}", setting.name, quoted(&setting.value));
        match reserved(&setting.name, &setting.value) {
            Some(why) => {
                let _ = writeln!(text, "# left out, {why}: {line}");
            }
            None => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    let settings = of(&fix.settings);
    if !settings.is_empty() {
        text.push_str("# Above what was theirs, below what makes them equal.\n");
    }
    for setting in settings {
        let _ = writeln!(text, "{} = {}", setting.name, quoted(&setting.value));
    }
}

/// The name of a server that can be had, with a remark where it is not the very one, or nobody has it.
fn server_of(contender: &ServerEvidence) -> (Option<String>, String) {
    let (product, version) = (contender.product.word(), contender.version);
    let is_it = Version::new(version.major, version.minor, version.patch);
    let series = format!("{product}-{}.{}", version.major, version.minor);
    for name in [format!("{product}-{version}"), series] {
        let Ok(ServerName {
            meaning: Meaning::Provided {
                known: Some(known), ..
            },
            ..
        }) = ServerName::parse(&name)
        else {
            continue;
        };
        let remark = format!(
            "{version} itself cannot be fetched by name; this is {} of the same series. For your own: \"path:/opt/{product}\"",
            known.version
        );
        return ((!known.promises(is_it)).then_some(remark), name);
    }
    let remark = format!(
        "FILL IN where {product} {version} is on this machine: no such server can be fetched by name."
    );
    (Some(remark), format!("path:/FILL-IN/{product}-{version}"))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Defaults;

    fn setting(contender: &str, name: &str, value: &str) -> RemedySetting {
        RemedySetting {
            contender: contender.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn an_experiment_keeps_its_comments_order_and_spelling() {
        let text = "# mine\nquestion = \"?\"  # why\n\n[contenders.b]\nserver = \"mysql-5.6\"\n\n\
                    [contenders.b.settings]\nInnoDB-IO-Capacity = 200   # as it came\n# last word\n\n\
                    [contenders.a]\nserver = \"mariadb-10.1\"\nsettings = { log_bin = \"ON\" }\n\n\
                    [contenders.c]\nlike = \"a\"\n\n[workload]\nname = \"x\"\n";
        let settings = [
            setting("b", "innodb_io_capacity", "2000"),
            setting("b", "innodb_flush_method", "O_DIRECT"),
            setting("b", "innodb_doublewrite", "1"),
            setting("a", "skip_log_bin", "1"),
            setting("a", "sync_binlog", "1"),
            setting("c", "innodb_io_capacity", "300"),
        ];
        let expected = "# mine\nquestion = \"?\"  # why\n\n[contenders.b]\nserver = \"mysql-5.6\"\n\n\
                    [contenders.b.settings]\nInnoDB-IO-Capacity = 2000   # as it came\n\
                    # Added by `dbduel audit --fix`, so that the contenders are equal.\n\
                    innodb_flush_method = \"O_DIRECT\"\ninnodb_doublewrite = 1\n# last word\n\n\
                    [contenders.a]\nserver = \"mariadb-10.1\"\nsettings = { skip_log_bin = 1, sync_binlog = 1 }\n\n\
                    [contenders.c]\nlike = \"a\"\n\n[contenders.c.settings]\n\
                    # Added by `dbduel audit --fix`, so that the contenders are equal.\n\
                    innodb_io_capacity = 300\n\n[workload]\nname = \"x\"\n";
        assert_eq!(amended(text, &settings).unwrap(), expected);
    }

    #[test]
    fn servers_are_named_as_they_can_be_had() {
        let server = |recorded: &str, version: &str| {
            let mut server = Defaults::of(recorded).unwrap().evidence("a").unwrap();
            server.version = crate::judge::audit::Version::parse(version).unwrap();
            server_of(&server)
        };
        assert_eq!(
            server("mysql-5.6.24", "5.6.24"),
            (None, "mysql-5.6.24".to_owned())
        );
        assert_eq!(
            server("mariadb-10.11.19", "10.11.19"),
            (None, "mariadb-10.11".to_owned())
        );
        let (remark, name) = server("mysql-5.6.24", "5.6.23");
        assert!(name == "mysql-5.6" && remark.unwrap().contains("5.6.24"));
        let (remark, name) = server("mysql-5.6.24", "5.7.44");
        assert!(name.starts_with("path:/FILL-IN") && remark.unwrap().contains("FILL IN"));
    }
}
