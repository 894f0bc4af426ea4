//! Adds settings to the user's experiment. Comments, order and spelling are kept, and contenders that inherit from an
//! amended one (`like`) keep their settings.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use dbduel_audit::Fix;
use dbduel_audit::finding::RemedySetting;
use dbduel_experiment::normalised_name;
use dbduel_inspect::Gathered;
use dbduel_inspect::planned::is_running;
use dbduel_record::Plan;
use dbduel_workloads::parameters::ScriptAccess;
use toml_edit::{Document, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

use crate::commands::run::plan_of;

/// Comment above the settings added to an experiment.
const MARK: &str = "# Added by `dbduel audit --fix`, so that the contenders are equal.\n";

/// Rounds of amending: the settings of the fix, then those that keep inheriting contenders unchanged.
const ROUNDS: usize = 2;

/// Text of the amended experiment. A contender that inherits from an amended one keeps its settings.
pub(super) fn experiment(
    given: &Path,
    text: &str,
    path: &Path,
    contest: &Gathered,
    fix: &Fix,
    scripts: ScriptAccess,
) -> Result<String> {
    let (_, before) = plan_of(given, text, scripts)?;
    refuse_running(&before, fix)?;
    let mut settings = fix.settings.clone();
    for _ in 0..ROUNDS {
        let amended = amended(text, &settings)
            .with_context(|| format!("could not amend `{}`", given.display()))?;
        let (_, after) = plan_of(path, &amended, scripts).with_context(|| {
            format!(
                "the amended experiment cannot be planned as `{}`; name a file beside `{}`",
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
        "the contenders inherit settings from each other in a way that cannot be amended; give \
         each its own"
    )
}

/// Refuses settings for a running server, which dbduel does not configure.
fn refuse_running(plan: &Plan, fix: &Fix) -> Result<()> {
    let settings = fix.settings.iter();
    let on_running = settings.filter(|one| is_running(plan, &one.contender));
    let lines: Vec<String> = on_running
        .map(|one| format!("  {}: {} = {}", one.contender, one.name, one.value))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    bail!(
        "an experiment does not configure running servers; set these on them and audit again:\n{}",
        lines.join("\n")
    )
}

/// Settings that contenders inherited from an amended one, with their values before it was amended.
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
                "`{contender}` inherits from a contender that needs `{name}`, a setting that its \
                 own server lacks; give `{contender}` settings of its own"
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

/// An experiment's text with these settings added; everything else is unchanged, also comments but for [`single_examples`].
fn amended(text: &str, settings: &[RemedySetting]) -> Result<String> {
    let mut document: DocumentMut = text.parse()?;
    for setting in settings {
        let (table, has_lines) = settings_of(&mut document, &setting.contender)
            .with_context(|| format!("there is no table for contender `{}`", setting.contender))?;
        set(table, has_lines, &setting.name, &setting.value);
    }
    let is_crlf = text.contains('\n') && text.matches('\n').count() == text.matches("\r\n").count();
    let amended = with_single_examples(&document.to_string(), settings)?;
    // New lines end as those of the file.
    Ok(match is_crlf {
        true => amended.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => amended,
    })
}

/// The text with [`single_examples`] in the tables of contenders that get settings.
fn with_single_examples(text: &str, settings: &[RemedySetting]) -> Result<String> {
    let document = Document::parse(text)?;
    let mut values = Vec::new();
    value_spans(document.as_table(), &mut values);
    let (mut at, mut is_meant) = (0, false);
    let lines = text.split_inclusive('\n').map(|line| {
        let start = at;
        at += line.len();
        let is_in_value = values
            .iter()
            .any(|span| span.start < start && start < span.end);
        if !is_in_value && line.trim_start().starts_with('[') {
            let contender = contender_of(line);
            is_meant = settings
                .iter()
                .any(|one| Some(one.contender.as_str()) == contender.as_deref());
        }
        let divided = (is_meant && !is_in_value).then(|| single_examples(line));
        divided.flatten().unwrap_or_else(|| line.to_owned())
    });
    Ok(lines.collect())
}

/// Places of all values below a table, also of those over several lines.
fn value_spans(table: &dyn TableLike, spans: &mut Vec<Range<usize>>) {
    for (_, item) in table.iter() {
        match item {
            Item::None => {}
            Item::Value(value) => spans.extend(value.span()),
            Item::Table(table) => value_spans(table, spans),
            Item::ArrayOfTables(tables) => {
                for table in tables {
                    value_spans(table, spans);
                }
            }
        }
    }
}

/// The contender whose own table this header begins.
fn contender_of(header: &str) -> Option<String> {
    let document: DocumentMut = header.parse().ok()?;
    let (name, table) = document.get("contenders")?.as_table()?.iter().next()?;
    table.as_table()?.is_empty().then(|| name.to_owned())
}

/// The examples of a commented inline table `# settings = { … }`, which earlier versions of `dbduel init` wrote, as a line each:
/// beside added settings the table could not be uncommented. `None` for any other line.
fn single_examples(line: &str) -> Option<String> {
    let comment = line.strip_prefix("# ")?.trim_end();
    let document: DocumentMut = comment.parse().ok()?;
    let examples = document.get("settings")?.as_inline_table()?;
    if examples.is_empty() || !comment.ends_with('}') {
        return None;
    }
    let lines = examples.iter().map(|(name, value)| {
        let value = value.to_string();
        format!("# settings.{} = {}\n", Key::new(name), value.trim())
    });
    Some(lines.collect())
}

/// The table of a contender's settings, created if missing, and true when each setting has its own line, so that a
/// comment can precede it. A new one is written as `settings.NAME = VALUE`, beside which the examples that `dbduel init`
/// leaves in comments can be uncommented; a table of its own would be a second definition.
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
            let mut lines = Table::new();
            lines.set_dotted(true);
            Item::Table(lines)
        };
        contender.insert("settings", empty);
    }
    let settings = contender.get_mut("settings")?;
    let has_lines = settings.is_table();
    Some((settings.as_table_like_mut()?, has_lines))
}

/// Changes the setting in place, under any spelling of its name, or appends it.
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

/// Moves the blank before the closing brace of an inline table to its new last value.
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

#[cfg(test)]
mod tests {
    use super::*;

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
                    [contenders.c]\nlike = \"a\"\n\
                    # Added by `dbduel audit --fix`, so that the contenders are equal.\n\
                    settings.innodb_io_capacity = 300\n\n[workload]\nname = \"x\"\n";
        assert_eq!(amended(text, &settings).unwrap(), expected);
    }

    #[test]
    fn a_commented_example_can_be_uncommented_beside_added_settings() {
        let settings = [
            setting("a", "sync_binlog", "1"),
            setting("a", "innodb_doublewrite", "1"),
        ];
        for (example, count) in [
            ("# settings.innodb_io_capacity = 200", 1),
            (
                "# settings = { innodb_buffer_pool_size = \"1G\", innodb_io_capacity = 200 }",
                2,
            ),
        ] {
            let text = format!(
                "[contenders.a]\nserver = \"mysql-5.6\"\n{example}\n\n[workload]\nname = \"x\"\n"
            );
            let amended = amended(&text, &settings).unwrap();
            assert_eq!(amended.matches(MARK).count(), 1, "{amended}");
            let uncommented = amended.replace("# settings", "settings");
            let document: DocumentMut = uncommented.parse().unwrap();
            let own = document["contenders"]["a"]["settings"].as_table_like();
            assert_eq!(own.unwrap().len(), 2 + count, "{uncommented}");
        }
    }

    #[test]
    fn examples_of_other_contenders_and_in_strings_are_left_alone() {
        let text = "question = \'\'\'\n[contenders.a]\n# settings = { x = 1 }\n\'\'\'\n\n\
                    [contenders.a]\nserver = \"mysql-5.6\"\n# settings = { y = 1 }\n\n\
                    [contenders.b]\nserver = \"mysql-5.6\"\n# settings = { z = 1 }\n\n\
                    [workload]\nname = \'\'\'\n# settings = { x = 1 }\n\'\'\'\n";
        let expected = text.replace(
            "# settings = { y = 1 }\n",
            &format!("{MARK}settings.sync_binlog = 1\n# settings.y = 1\n"),
        );
        // Where the comment precedes the next table, the setting precedes the comment.
        let settings = [setting("a", "sync_binlog", "1")];
        assert_eq!(amended(text, &settings).unwrap(), expected);
        let windows = text.replace('\n', "\r\n");
        let expected = expected.replace('\n', "\r\n");
        assert_eq!(amended(&windows, &settings).unwrap(), expected);
    }

    #[test]
    fn only_a_commented_table_of_settings_is_divided() {
        for line in [
            "settings = { a = 1 }\n",
            "# settings = {}\n",
            "# settings = { a = 1 } # why\n",
            "# settings = 3\n",
            "# the settings = { a = 1 }\n",
        ] {
            assert_eq!(single_examples(line), None, "{line}");
        }
        assert_eq!(
            single_examples("# settings = { a = 1, \"b.c\" = \"x, y\" }").unwrap(),
            "# settings.a = 1\n# settings.\"b.c\" = \"x, y\"\n"
        );
    }
}
