//! What an experiment may ask of an agent: nothing that names a file, a program, a library or another machine.
//!
//! Checked where an experiment is submitted, for its author, and again by every agent, which relies on its own check.

use std::ops::Range;

use serde_json::Value;

use crate::lab::experiment::document::{Report, Troubles};
use crate::lab::experiment::{
    Contender, ExperimentFile, SweptFactor, SweptLevel, SweptTarget, Workload, WrittenParameter,
    normalised_name,
};
use crate::lab::server::{Meaning, ServerName};
use dbduel_load::workloads::{completion, script};

/// Settings with these words in their names may name programs, or hold statements that are run as an administrator.
const REFUSED_WORDS: &[&str] = &["command", "cmd", "init", "wsrep"];
/// Characters of a text in `[workload]` beside letters and digits: what names and options of tables need, and nothing with
/// which a statement or a path could be written.
const TEXT_CHARACTERS: &str = " _-=.,:%()+";

/// Said of hosts.
const NO_HOSTS: &str =
    "agents run contests on their own machine; run one with [hosts] or `host` by `dbduel run`";
/// Said of scripts.
const NO_SCRIPTS: &str = "agents run no scripts, which may do all that a program may; use a workload of `dbduel workloads`";

/// Refuses an experiment that an agent would not run.
///
/// # Errors
/// Everything that agents refuse in it, with line and column.
pub fn check(file: &ExperimentFile<'_>) -> Result<(), Troubles> {
    let report = Report::new(file.path, file.text);
    for contender in &file.experiment.contenders {
        check_contender(&report, contender);
    }
    if let Some(hosts) = &file.experiment.hosts {
        report.add(&hosts.span, NO_HOSTS);
    }
    check_workload(&report, &file.experiment.workload);
    let suite = file.experiment.suite.as_ref();
    if let Some(scripts) = suite.and_then(|suite| suite.scripts.as_ref()) {
        report.add(&scripts.span, NO_SCRIPTS);
    }
    for one in suite.iter().flat_map(|suite| &suite.workloads) {
        check_workload(&report, &one.workload);
    }
    for factor in &file.experiment.sweep {
        check_factor(&report, factor);
    }
    report.finish(())
}

fn check_contender(report: &Report<'_>, contender: &Contender) {
    if let Some(server) = &contender.server
        && let Ok(name) = ServerName::parse(&server.value)
        && let Some(message) = server_objection(&server.value, &name)
    {
        report.add(&server.span, message);
    }
    if let Some(host) = &contender.host {
        report.add(&host.span, NO_HOSTS);
    }
    if let Some(file) = &contender.password_file {
        report.add(&file.span, "agents read no files that an experiment names");
    }
    for setting in &contender.settings {
        check_name(report, &setting.name.value, &setting.name.span);
        check_value(report, &setting.value.value, &setting.value.span);
    }
    check_parameters(report, &contender.tables);
}

fn check_name(report: &Report<'_>, setting: &str, span: &Range<usize>) {
    if let Some(message) = name_objection(setting) {
        report.add(span, message);
    }
}

fn check_value(report: &Report<'_>, value: &str, span: &Range<usize>) {
    if let Some(message) = value_objection(value) {
        report.add(span, message);
    }
}

/// Why agents do not run a server.
#[must_use]
pub fn server_objection(written: &str, name: &ServerName) -> Option<String> {
    let is_permitted = match &name.meaning {
        Meaning::Provided { source, known, .. } => known.is_some() || source.scheme == "installed",
        Meaning::InProcess => true,
        Meaning::Running(_) => false,
    };
    (!is_permitted).then(|| {
        format!(
            "agents run servers of `dbduel servers list`, `installed` ones and `sqlite`; `{written}` would have them run a \
             program, or write to a database, of the author's choice"
        )
    })
}

/// Why agents do not take a setting, whatever its value is.
#[must_use]
pub fn name_objection(setting: &str) -> Option<String> {
    let name = normalised_name(setting);
    let mut words = REFUSED_WORDS.iter();
    let word = words.find(|word| name.split(['_', '.']).any(|part| part == **word))?;
    Some(format!(
        "agents refuse settings with `{word}` in their names: they may name a program or hold statements"
    ))
}

/// Why agents do not take the value of a setting.
#[must_use]
pub fn value_objection(value: &str) -> Option<&'static str> {
    value.contains(['/', '\\', '\n', '\r', '\0']).then_some(
        "agents refuse settings that may be paths; a server has its files in its sandbox",
    )
}

/// Of a swept parameter the levels are checked in the cells that it makes.
fn check_factor(report: &Report<'_>, factor: &SweptFactor) {
    match &factor.target {
        SweptTarget::Parameter => {}
        SweptTarget::Setting { name, .. } => {
            check_name(report, name, &factor.name.span);
            for level in &factor.levels {
                if let SweptLevel::Value(Value::String(text)) = &level.value {
                    check_value(report, text, &level.span);
                }
            }
        }
        SweptTarget::ServerCores | SweptTarget::ServerIo => {
            let message = format!(
                "`{}` means processors or a device of one machine, and cells of a fleet run on several; submit an \
                 experiment for each level",
                factor.name.value
            );
            report.add(&factor.name.span, message);
        }
    }
}

fn check_workload(report: &Report<'_>, workload: &Workload) {
    if workload.name.value == script::NAME {
        report.add(&workload.name.span, NO_SCRIPTS);
        return;
    }
    check_parameters(report, &workload.parameters);
}

fn check_parameters(report: &Report<'_>, parameters: &[WrittenParameter]) {
    for (name, value) in parameters {
        if name.value == completion::CONFIG {
            report.add(&name.span, "agents read no files that an experiment names");
        } else if let Value::String(text) = &value.value {
            check_text(report, &value.span, text);
        }
    }
}

/// The first character of a text that might be part of a path or of a statement.
#[must_use]
pub fn foreign_character(text: &str) -> Option<char> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || TEXT_CHARACTERS.contains(c);
    text.chars().find(|c| !is_plain(*c))
}

fn check_text(report: &Report<'_>, span: &Range<usize>, text: &str) {
    if let Some(other) = foreign_character(text) {
        let message = format!(
            "agents take texts of letters, digits and `{TEXT_CHARACTERS}` here, found {other:?}: it might be part of a path \
             or of a statement"
        );
        report.add(span, message);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::lab::experiment::Experiment;

    const PLAIN: &str = "[contenders.a]\nserver = \"mariadb-10.11\"\nsettings = { innodb_log_file_size = \"1G\", \
                         plugin_load_add = \"ha_rocksdb\" }\n[contenders.b]\nserver = \"sqlite\"\n[workload]\n\
                         name = \"oltp-read-write\"\ntables = 2\n";

    fn refusals(text: &str) -> String {
        let experiment = Experiment::parse(Path::new("duel.toml"), text).unwrap();
        let file = ExperimentFile {
            path: Path::new("duel.toml"),
            text,
            experiment: &experiment,
        };
        check(&file).map_or_else(|troubles| troubles.to_string(), |()| String::new())
    }

    #[track_caller]
    fn refused(old: &str, new: &str, place: &str, part: &str) {
        assert!(PLAIN.contains(old), "{old}");
        let said = refusals(&PLAIN.replacen(old, new, 1));
        assert!(said.starts_with(&format!("duel.toml:{place}: ")), "{said}");
        assert!(said.contains(part), "{said}");
    }

    #[test]
    fn servers_of_the_catalogue_and_their_settings_are_run() {
        assert_eq!(refusals(PLAIN), "");
    }

    #[test]
    fn programs_and_databases_of_the_author_s_choice_are_not() {
        for server in [
            "path:/opt/mysql",
            "archive:/tmp/mysql.tar.gz",
            "url:https://example.org/mysql.tar.gz",
            "npm:something",
            "oci:docker.io/library/mysql:8.4",
            "tcp://root@db1",
            "unix:/run/mysqld/mysqld.sock",
            "sqlite:/var/lib/x.db",
        ] {
            if ServerName::parse(server).is_ok() {
                refused("mariadb-10.11", server, "2:10", "agents run servers");
            }
        }
    }

    #[test]
    fn files_programs_statements_and_scripts_are_not() {
        refused("\"1G\"", "\"/etc/x\"", "3:37", "may be paths");
        refused(
            "innodb_log_file_size",
            "archive_command",
            "3:14",
            "`command`",
        );
        refused("innodb_log_file_size", "wsrep_notify_cmd", "3:14", "`cmd`");
        refused("innodb_log_file_size", "init-connect", "3:14", "`init`");
        refused(
            "name = \"oltp-read-write\"",
            "script = \"x.lua\"",
            "7:10",
            "no scripts",
        );
        refused("tables = 2", "x = \"a; DROP TABLE t\"", "8:5", "';'");
        refused("tables = 2", "config = \"x\"", "8:1", "no files");
        refused("tables = 2", "x = \"a'b\"", "8:5", "part of a path");
        let swept = "tables = 2\n[sweep]\nsettings.init_connect = [\"SET a = 1\", \"/x\"]";
        refused("tables = 2", swept, "10:10", "`init`");
        refused(
            "tables = 2",
            swept,
            "10:10",
            "10:39: agents refuse settings that may be paths",
        );
    }
}
