//! `dbduel init`: writes an experiment with comments, from options or from answers to questions.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use dbduel_audit::finding::RemedySetting;
use dbduel_audit::{Fix, fix};
use dbduel_experiment::ExperimentFile;
use dbduel_inspect::planned;
use dbduel_record::Plan;
use dbduel_record::event::Severity;
use dbduel_server::{ARCHIVE_ENDINGS, Home, Meaning, ServerName, shell_word};
use dbduel_workloads::Workload;
use dbduel_workloads::parameters::{self, ScriptAccess};

use super::run::{audit_command, plan_of, refuse_in_plan};
use crate::console;
use crate::exit::Exit;
use crate::home;

/// Options of `dbduel init`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The experiment file to write.
    #[arg(default_value = "duel.toml", value_name = "FILE")]
    pub file: PathBuf,
    /// A server of `dbduel servers list`, or the address of a running one. Give two or more; with one, the second
    /// contender is the same server with other settings, which you add to the file.
    #[arg(long = "server", value_name = "SERVER")]
    pub servers: Vec<String>,
    /// Workload; `dbduel workloads` lists the names.
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Connections; several numbers, separated by commas, give one duel each.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: Vec<u32>,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

/// Default workload.
const WORKLOAD: &str = "oltp-read-write";
/// Default number of connections.
const CLIENTS: u32 = 16;

/// Most characters of a contender's name; a number that makes it unique may follow.
const NAME_CHARACTERS: usize = 50;

/// Why no experiment was written.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// No server was named, and there is no terminal to ask on.
    #[error(
        "no server was named; give `--server` twice, such as `dbduel init --server mariadb-11.8 \
         --server mysql-8.0.33`; `dbduel servers list` shows the known ones"
    )]
    NoServers,
    /// The file exists.
    #[error("`{}` exists already; name another file, or overwrite it with `--force`", .0.display())]
    FileExists(PathBuf),
}

/// Choices for the new experiment.
struct Choice {
    servers: Vec<ServerName>,
    workload: &'static dyn Workload,
    clients: Vec<u32>,
}

/// Writes the experiment and prints the next commands.
///
/// # Errors
/// When a server or workload is unknown, no server was named and there is no terminal to ask on, or the file exists
/// already.
pub fn init(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    let choice = choose(arguments)?;
    let path = &arguments.file;
    let bare = experiment(&choice, &[])?;
    // What is written is accepted: the same check as that of `run --plan`.
    let home = home::find(home)?;
    let plan = accepted(&home, path, &bare)?;
    let fix = equalised(&plan, &home)?;
    let text = match &fix {
        Some(fix) => experiment(&choice, &fix.settings)?,
        None => bare,
    };
    let plan = accepted(&home, path, &text)?;
    write(path, &text, arguments.force)?;
    if let Some(fix) = &fix {
        console::print(&equality(fix))?;
    }
    console::print(&next(path, &plan, &home))?;
    Ok(Exit::Done)
}

/// The plan of an experiment that `run --plan` accepts.
fn accepted(home: &Home, path: &Path, text: &str) -> Result<Plan> {
    let (experiment, plan) = plan_of(path, text, ScriptAccess::Confined)?;
    let file = ExperimentFile {
        path,
        text,
        experiment: &experiment,
    };
    refuse_in_plan(home, &file, &plan)?;
    Ok(plan)
}

/// The commands that follow.
fn next(path: &Path, plan: &Plan, home: &Home) -> String {
    let file = shell_word(&path.display().to_string());
    let commands = [
        (
            format!("dbduel run {file} --plan"),
            "show what it will do, fetch and store",
        ),
        (audit_command(&file, plan, home), "check fairness"),
        (format!("dbduel run {file}"), ""),
    ];
    let width = commands.iter().map(|(command, _)| command.chars().count());
    let width = width.max().unwrap_or_default();
    let mut text = format!("wrote `{}`; next:\n", path.display());
    for (command, purpose) in commands {
        // Writing to a string does not fail.
        let _ = match purpose {
            "" => writeln!(text, "  {command}"),
            purpose => writeln!(text, "  {command:<width$}   # {purpose}"),
        };
    }
    text
}

/// Settings that make servers with different defaults equal in what they promise and do; `None` when nothing has to be
/// set, or when fewer than two servers have defaults that are known before fetching.
fn equalised(plan: &Plan, home: &Home) -> Result<Option<Fix>> {
    let Some(case) = planned::foreseen(plan, home)? else {
        return Ok(None);
    };
    let mut fix = fix(&case);
    // Their owner sets those.
    fix.settings
        .retain(|setting| !planned::is_running(plan, &setting.contender));
    Ok((!fix.settings.is_empty()).then_some(fix))
}

/// Terminal text on the settings added and the differences that remain.
fn equality(fix: &Fix) -> String {
    let mut text = format!(
        "By default the servers differ in what they promise or do: {} {} made equal.\n",
        fix.settings.len(),
        match fix.settings.len() {
            1 => "setting is",
            _ => "settings are",
        }
    );
    let findings = fix.after.findings.iter();
    for finding in findings.filter(|finding| finding.severity > Severity::Note) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "No setting changes this: {}", finding.claim);
    }
    text
}

/// Choices from the options; asks for missing ones on a terminal.
fn choose(arguments: &Arguments) -> Result<Choice> {
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    let mut servers = arguments
        .servers
        .iter()
        .map(|written| ServerName::parse(written))
        .collect::<Result<Vec<_>, _>>()?;
    if servers.is_empty() {
        if !is_asked {
            return Err(InitError::NoServers.into());
        }
        servers = ask(
            "Servers, separated by spaces (`dbduel servers list` shows them)",
            "mariadb-11.8 mysql-8.0.33",
            |answer| {
                let names = answer.split_whitespace().map(ServerName::parse);
                names
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|error| error.to_string())
            },
        )?;
    }
    let find = |name: &str| dbduel_workloads::find(name).map_err(|error| error.to_string());
    let workload = match &arguments.workload {
        Some(name) => dbduel_workloads::find(name)?,
        None if is_asked => ask("Workload (`dbduel workloads` lists them)", WORKLOAD, find)?,
        None => dbduel_workloads::find(WORKLOAD)?,
    };
    let usual = usual_clients(workload);
    let clients = match arguments.clients.is_empty() {
        false => arguments.clients.clone(),
        true if is_asked => ask("Clients, separated by commas", &usual.to_string(), counts)?,
        true => vec![usual],
    };
    Ok(Choice {
        servers,
        workload,
        clients,
    })
}

/// The number of clients that the workload requires with its default parameters, else the default up to its maximum.
fn usual_clients(workload: &dyn Workload) -> u32 {
    let parameters = parameters::resolve(workload, &Default::default()).unwrap_or_default();
    let most = workload.clients_max(&parameters).unwrap_or(u64::MAX);
    let needed = workload.clients_exactly(&parameters);
    let clients = needed.unwrap_or_else(|| most.min(CLIENTS.into()));
    u32::try_from(clients).unwrap_or(CLIENTS)
}

fn counts(answer: &str) -> Result<Vec<u32>, String> {
    let parts = answer.split(',').map(str::trim);
    let number = |part: &str| match part.parse() {
        Ok(count @ 1..=100_000) => Ok(count),
        _ => Err(format!("`{part}` is not a number from 1 to 100000")),
    };
    parts.map(number).collect()
}

/// Asks until the answer is valid; an empty answer means the default.
fn ask<T>(
    question: &str,
    default: &str,
    understand: impl Fn(&str) -> Result<T, String>,
) -> Result<T> {
    loop {
        let mut output = io::stderr();
        write!(output, "{question} [{default}]: ").and_then(|()| output.flush())?;
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer)? == 0 {
            bail!("the input ended before the question `{question}` was answered");
        }
        let answer = match answer.trim() {
            "" => default,
            answer => answer,
        };
        match understand(answer) {
            Ok(understood) => return Ok(understood),
            Err(error) => console::status_line(&error),
        }
    }
}

/// The text of the experiment, with these settings of its contenders.
fn experiment(choice: &Choice, equal: &[RemedySetting]) -> Result<String> {
    let Choice {
        servers,
        workload,
        clients,
    } = choice;
    let names = contender_names(servers);
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let mut text = String::new();
    writeln!(
        text,
        "# Made by `dbduel init`. `dbduel run FILE --plan` shows what it does, `dbduel audit FILE \
         --dry` whether it is fair."
    )?;
    let question = match names.as_slice() {
        [only] => format!("What does the changed setting cost on {only}?"),
        several => format!("Which is fastest: {}?", several.join(", ")),
    };
    writeln!(text, "question = {}", quoted(&question))?;
    text.push_str(
        "horizon = \"3 %\"       # smaller differences count as equivalent\n\
         confidence = 0.95     # probability that all statements of a duel are right\n\
         budget = \"20 min\"     # longest time for warm-up and measurement; a duel ends when it is decided\n\
         # about = [\"…\"]       # settings in which the contenders differ on purpose; other differences are findings\n",
    );
    for (number, (name, server)) in names.iter().zip(servers).enumerate() {
        let comment = match number {
            0 => "# The first contender is the baseline.\n",
            _ => "",
        };
        writeln!(
            text,
            "\n{comment}[contenders.{}]\nserver = {}\n{}",
            quoted(name),
            quoted(&server.written),
            settings_of(name, server, equal)
        )?;
    }
    if let [only] = names.as_slice() {
        writeln!(
            text,
            "\n# The same server with other settings; without any, the contest compares equal \
             servers.\n[contenders.changed]\nlike = {}\n{}",
            quoted(only),
            settings_of("changed", &servers[0], equal)
        )?;
    }
    writeln!(
        text,
        "\n[workload]\nname = {}    # {}",
        quoted(workload.name()),
        workload.about()
    )?;
    for parameter in workload.parameters() {
        let default = toml::Value::try_from(parameter.default.value())?;
        writeln!(
            text,
            "# {} = {default}    # {}",
            parameter.name, parameter.about
        )?;
    }
    let clients: Vec<String> = clients.iter().map(u32::to_string).collect();
    writeln!(
        text,
        "\n[load]\nclients = [{}]    # connections; one duel each",
        clients.join(", ")
    )?;
    Ok(text)
}

/// The settings that make a contender equal to the others, or a line to write settings into.
fn settings_of(name: &str, server: &ServerName, equal: &[RemedySetting]) -> String {
    let own = equal.iter().filter(|setting| setting.contender == name);
    let own: Vec<String> = own
        .map(|setting| {
            format!(
                "{} = {}",
                setting.name,
                toml::Value::from(setting.value.as_str())
            )
        })
        .collect();
    match own.is_empty() {
        true => example_of(server).to_owned(),
        false => format!(
            "# These make the contenders equal; without them `dbduel audit FILE --dry` lists the \
             differences.\nsettings = {{ {} }}",
            own.join(", ")
        ),
    }
}

/// Lines to write settings into. Each can be uncommented alone, also beside those that `audit --fix` adds.
fn example_of(server: &ServerName) -> &'static str {
    if matches!(server.meaning, Meaning::Running(_)) {
        return "# a running server keeps its own settings; password_file = \"…\" names the file with its password";
    }
    if matches!(server.meaning, Meaning::InProcess) {
        return "# settings.journal_mode = \"wal\"\n# settings.synchronous = \"full\"";
    }
    if server.written.contains("postgres") {
        return "# settings.shared_buffers = \"1GB\"\n# settings.synchronous_commit = \"on\"";
    }
    "# settings.innodb_buffer_pool_size = \"1G\"\n# settings.innodb_flush_log_at_trx_commit = 1"
}

/// The part of a server's name that identifies it: the last component of a path, archive or image, or an address
/// without its scheme.
fn distinctive_part(server: &ServerName) -> &str {
    let written = server.written.as_str();
    if matches!(server.meaning, Meaning::Running(_)) {
        return written.split_once("://").map_or(written, |(_, rest)| rest);
    }
    let plain = written.split_once('#').map_or(written, |(plain, _)| plain);
    let plain = plain.trim_end_matches('/');
    let last = plain.rsplit_once('/').map_or(plain, |(_, last)| last);
    let mut endings = ARCHIVE_ENDINGS.iter();
    let bare = endings.find_map(|ending| last.strip_suffix(ending));
    bare.unwrap_or(last)
}

/// A name for each contender: that of its server, reduced to characters allowed in a folder name.
fn contender_names(servers: &[ServerName]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for server in servers {
        let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let part = distinctive_part(server);
        // Versions are at the end, so a long name loses its beginning.
        let begin = part.chars().count().saturating_sub(NAME_CHARACTERS);
        let name: String = part
            .chars()
            .skip(begin)
            .map(|c| if usable(c) { c } else { '-' })
            .collect();
        let name = match name.trim_matches(['-', '.', '_']) {
            "" => "server",
            name => name,
        };
        let mut unique = name.to_owned();
        let mut number = 2;
        while names.contains(&unique) {
            unique = format!("{name}-{number}");
            number += 1;
        }
        names.push(unique);
    }
    names
}

fn write(path: &Path, text: &str, is_forced: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    match is_forced {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let mut file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => InitError::FileExists(path.to_owned()).into(),
        _ => anyhow::Error::new(error).context(format!("could not create `{}`", path.display())),
    })?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("could not write `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_audit::{Grade, audit};

    fn written(servers: &[&str], workload: &str, clients: &[u32]) -> String {
        let choice = Choice {
            servers: servers
                .iter()
                .map(|server| ServerName::parse(server).unwrap())
                .collect(),
            workload: dbduel_workloads::find(workload).unwrap(),
            clients: clients.to_vec(),
        };
        experiment(&choice, &[]).unwrap()
    }

    #[test]
    fn what_is_written_is_accepted_for_every_workload() {
        for workload in dbduel_workloads::WORKLOADS {
            // A script is named by its file, and there is none.
            if workload.name() == "script" {
                continue;
            }
            let clients = usual_clients(*workload);
            let text = written(
                &["mariadb-11.8", "mysql-8.0.33"],
                workload.name(),
                &[clients],
            );
            let planned = plan_of(Path::new("duel.toml"), &text, ScriptAccess::Confined);
            assert!(
                planned.is_ok(),
                "{}: {:?}\n{text}",
                workload.name(),
                planned.err()
            );
        }
    }

    #[test]
    fn defaults_in_comments_are_accepted_when_they_are_uncommented() {
        let text = written(&["mariadb-11.8"], "oltp-read-write", &[1, 16]);
        let (workload, load) = text
            .split_once("[workload]")
            .unwrap()
            .1
            .split_once("[load]")
            .unwrap();
        let uncommented = workload.replace("\n# ", "\n");
        let text = text.replace(workload, &uncommented);
        assert!(load.contains("clients = [1, 16]"));
        let (_, plan) = plan_of(Path::new("duel.toml"), &text, ScriptAccess::Confined).unwrap();
        assert_eq!(plan.contenders.len(), 2);
        assert_eq!(plan.contenders[1].name, "changed");
    }

    #[test]
    fn contenders_have_names_of_their_own() {
        let servers = [
            "tcp://u@db1:3306",
            "path:/opt/mysql-8.4",
            "path:/srv/mysql-8.4/",
            "tar:/srv/mysql-9.1.0.tar.xz",
            "oci:docker.io/library/mysql:8.4",
            "mariadb-11.8",
            "path:/builds/a-directory-with-a-very-long-name-of-a-branch/a-directory-with-a-very-long-name-of-a-branch-mysql-8.4",
        ];
        let servers = servers.map(|server| ServerName::parse(server).unwrap());
        assert_eq!(
            contender_names(&servers),
            [
                "u-db1-3306",
                "mysql-8.4",
                "mysql-8.4-2",
                "mysql-9.1.0",
                "mysql-8.4-3",
                "mariadb-11.8",
                "ectory-with-a-very-long-name-of-a-branch-mysql-8.4"
            ]
        );
        let text = written(
            &["tcp://u@db1:3306", "postgresql-17-debian"],
            "oltp-point-select",
            &[8],
        );
        assert!(
            text.contains("a running server keeps") && text.contains("shared_buffers"),
            "{text}"
        );
    }

    #[test]
    fn servers_that_differ_as_they_come_are_set_alike() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        for pair in [
            ["mariadb-10.11", "mariadb-11.8"],
            ["mysql-8.0.33", "mysql-9.7"],
            ["mariadb-11.8", "mysql-8.0.33"],
            ["postgresql-12", "postgresql-17"],
        ] {
            let choice = Choice {
                servers: pair
                    .map(|server| ServerName::parse(server).unwrap())
                    .to_vec(),
                workload: dbduel_workloads::find("oltp-read-write").unwrap(),
                clients: vec![1],
            };
            let plan = |text: &str| {
                plan_of(Path::new("duel.toml"), text, ScriptAccess::Confined)
                    .unwrap()
                    .1
            };
            let bare = experiment(&choice, &[]).unwrap();
            let settings = equalised(&plan(&bare), &home).unwrap();
            let settings = settings.map(|fix| fix.settings).unwrap_or_default();
            let text = experiment(&choice, &settings).unwrap();
            let case = planned::foreseen(&plan(&text), &home).unwrap().unwrap();
            let audit = audit(&case);
            assert_ne!(
                audit.grade,
                Grade::NotComparable,
                "{pair:?}: {:#?}",
                audit.findings
            );
            assert!(
                equalised(&plan(&text), &home).unwrap().is_none(),
                "{pair:?}\n{text}"
            );
        }
    }

    #[test]
    fn a_file_that_is_there_stays_unless_its_replacement_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("duel.toml");
        write(&path, "one", false).unwrap();
        let error = write(&path, "two", false).unwrap_err().to_string();
        assert!(error.contains("--force"), "{error}");
        write(&path, "three", true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three");
    }

    #[test]
    fn the_commands_that_follow_fit_the_file_and_its_servers() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let commands = |file: &str, server: &str| {
            let text = written(&[server, "mariadb-11.8"], "oltp-point-select", &[1]);
            let path = Path::new(file);
            next(path, &accepted(&home, path, &text).unwrap(), &home)
        };
        let text = commands("my duel.toml", "mysql-8.0.33");
        assert!(
            text.contains("  dbduel run 'my duel.toml' --plan  "),
            "{text}"
        );
        assert!(
            text.contains("  dbduel audit 'my duel.toml' --dry "),
            "{text}"
        );
        // Its version is known when it was fetched.
        let text = commands("duel.toml", "oci:docker.io/library/mysql:8.4");
        assert!(text.contains("  dbduel audit duel.toml   "), "{text}");
        let bare = written(
            &["path:/nonexistent/x", "mariadb-11.8"],
            "oltp-point-select",
            &[1],
        );
        let refused = accepted(&home, Path::new("duel.toml"), &bare).unwrap_err();
        let refused = format!("{refused:#}");
        assert!(
            refused.contains("there is no server at `/nonexistent/x`"),
            "{refused}"
        );
    }

    #[test]
    fn counts_of_clients_are_numbers_above_zero() {
        assert_eq!(counts("1, 16").unwrap(), [1, 16]);
        assert!(counts("0").is_err() && counts("many").is_err() && counts("").is_err());
    }
}
