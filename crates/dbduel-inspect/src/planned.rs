//! The contenders of a plan before anything is started: recorded defaults with the requested settings, and servers that
//! run already.

use anyhow::{Context as _, Result, bail};
use dbduel_audit::postgresql::contradiction;
use dbduel_audit::{Case, Machine, Product, ServerEvidence, Version, expected, set_option};
use dbduel_driver::address::ServerAddress;
use dbduel_driver::{Dialect, sqlite_version};
use dbduel_experiment::ExperimentFile;
use dbduel_experiment::document::{Trouble, Troubles};
use dbduel_machine::host;
use dbduel_record::Plan;
use dbduel_record::facts::Host;
use dbduel_record::plan::{Contender, Workload};
use dbduel_server::{
    self, Home, Meaning, SQLITE, ServerName, ServerProduct, Setting, install, refused_by_lab,
    unless_written,
};
use dbduel_workloads::parameters;

use super::live;

/// A setting that its server does not accept or that the lab reserves, or a workload that does not support the server.
#[derive(Debug, thiserror::Error)]
#[error("contender `{contender}`: {why}")]
pub struct RefusedInPlan {
    /// Name of the contender.
    pub contender: String,
    /// Name of the setting; `None` for the workload.
    pub setting: Option<String>,
    /// The reason.
    pub why: String,
}

/// The case of a plan.
///
/// # Errors
/// When a contender's server must be fetched to find its version, a setting is refused ([`RefusedInPlan`]), or a
/// running server does not answer.
pub fn case(plan: &Plan, home: &Home) -> Result<Case> {
    let machine = for_servers(plan, facts_of_servers(plan, home).as_ref());
    let contenders = plan.contenders.iter();
    let contenders: Result<Vec<ServerEvidence>> = contenders
        .map(|one| contender(plan, one, machine, home))
        .collect();
    let mut case = Case::of(contenders?);
    about_plan(&mut case, plan);
    Ok(case)
}

/// Facts of the machine that the servers of a plan run on; `None` for machines whose agents run them.
fn facts_of_servers(plan: &Plan, home: &Home) -> Option<Host> {
    (!plan.has_server_hosts()).then(|| host::read(home.root()))
}

/// The machine as the servers of a plan see it.
fn for_servers(plan: &Plan, facts: Option<&Host>) -> Machine {
    let machine = facts.map(Machine::of).unwrap_or_default();
    let confined = u32::try_from(plan.load.server_cores.len()).ok();
    Machine {
        cpus: confined.filter(|&cores| cores > 0).or(machine.cpus),
        ..machine
    }
}

/// The case of a plan as far as predictable without fetching or starting anything. Contenders of unknown version are
/// left out; `None` when fewer than two remain.
///
/// # Errors
/// When a setting is refused ([`RefusedInPlan`]).
pub fn foreseen(plan: &Plan, home: &Home) -> Result<Option<Case>> {
    let facts = facts_of_servers(plan, home);
    let machine = for_servers(plan, facts.as_ref());
    let mut contenders = Vec::new();
    let mut baseline = 0;
    for (index, contender) in plan.contenders.iter().enumerate() {
        let Ok(name) = ServerName::parse(&contender.server) else {
            continue;
        };
        let foreseen = without_asking(plan, contender, &name, machine, home)?;
        let evidence = match &name.meaning {
            // A server that does not answer now is for the contest to report.
            Meaning::Running(address) => running(plan, contender, address).ok(),
            Meaning::InProcess | Meaning::Provided { .. } => foreseen,
        };
        if let Some(evidence) = evidence {
            if index == plan.baseline {
                baseline = contenders.len();
            }
            contenders.push(evidence);
        }
    }
    if contenders.len() < 2 {
        return Ok(None);
    }
    let mut case = Case::of(contenders);
    about_plan(&mut case, plan);
    case.baseline = baseline;
    case.host = facts;
    Ok(Some(case))
}

/// Refuses settings and workloads that are invalid without fetching, starting or querying anything.
///
/// # Errors
/// When a setting or the workload is refused ([`RefusedInPlan`]).
pub fn check(plan: &Plan, home: &Home) -> Result<()> {
    let machine = for_servers(plan, facts_of_servers(plan, home).as_ref());
    for contender in &plan.contenders {
        if let Ok(name) = ServerName::parse(&contender.server) {
            without_asking(plan, contender, &name, machine, home)?;
        }
    }
    Ok(())
}

/// True when [`case`] fetches and starts nothing for the plan.
#[must_use]
pub fn is_foreseeable(plan: &Plan, home: &Home) -> bool {
    plan.contenders.iter().all(|contender| {
        ServerName::parse(&contender.server).is_ok_and(|name| {
            matches!(name.meaning, Meaning::Running(_))
                || known_version(&name).is_some()
                || version_at_hand(contender, &name, home).is_some()
        })
    })
}

/// Predicted evidence of a server that is ours to start; `None` where its version is not known yet. Of a running server
/// only the workload is checked.
fn without_asking(
    plan: &Plan,
    contender: &Contender,
    name: &ServerName,
    machine: Machine,
    home: &Home,
) -> Result<Option<ServerEvidence>> {
    if let Meaning::Running(address) = &name.meaning {
        refuse_workload(plan, contender, address.dialect, "")?;
        return Ok(None);
    }
    version_at_hand(contender, name, home)
        .or_else(|| known_version(name))
        .map(|(product, version)| predicted(plan, contender, product, version, machine))
        .transpose()
}

/// The error with the place of the setting in the experiment, when it is about one.
#[must_use]
pub fn at_its_place(error: anyhow::Error, file: &ExperimentFile<'_>) -> anyhow::Error {
    let place = error
        .downcast_ref::<RefusedInPlan>()
        .and_then(|wrong| match &wrong.setting {
            Some(setting) => file.experiment.setting_span(&wrong.contender, setting),
            None => file.experiment.workload_span(),
        });
    match place {
        Some(span) => anyhow::Error::new(Troubles {
            path: file.path.to_owned(),
            list: vec![Trouble::at(file.text, span.start, error.to_string())],
        }),
        None => error,
    }
}

/// Adds a plan's requested settings and claims to evidence of its running servers.
#[must_use]
pub fn case_of_running(plan: &Plan, mut contenders: Vec<ServerEvidence>) -> Case {
    for (evidence, contender) in contenders.iter_mut().zip(&plan.contenders) {
        ask_for(contender, evidence);
    }
    let mut case = Case::of(contenders);
    about_plan(&mut case, plan);
    case
}

/// True for a contender whose server runs already and cannot be configured by an experiment.
#[must_use]
pub fn is_running(plan: &Plan, contender: &str) -> bool {
    let mut contenders = plan.contenders.iter();
    let found = contenders.find(|one| one.name == contender);
    let name = found.and_then(|one| ServerName::parse(&one.server).ok());
    name.is_some_and(|name| matches!(name.meaning, Meaning::Running(_)))
}

/// Adds a contender's requested settings to its server's evidence.
pub fn ask_for(contender: &Contender, evidence: &mut ServerEvidence) {
    for setting in &contender.settings {
        evidence.ask(&setting.name, &setting.value);
    }
}

/// Adds the facts of a plan about its contest.
fn about_plan(case: &mut Case, plan: &Plan) {
    case.baseline = plan.baseline;
    case.clients = plan.levels.iter().map(|level| level.clients).max();
    case.about.clone_from(&plan.about);
    case.waive(&plan.waivers);
    case.declare_design(plan);
    case.declare_tables(plan);
    case.set_sessions(plan);
    case.set_hosts(plan);
    case.declare_what_was_asked();
}

fn contender(
    plan: &Plan,
    contender: &Contender,
    machine: Machine,
    home: &Home,
) -> Result<ServerEvidence> {
    let about = || format!("contender `{}`", contender.name);
    let name = ServerName::parse(&contender.server).with_context(about)?;
    if let Meaning::Running(address) = &name.meaning {
        return running(plan, contender, address);
    }
    let known = known_version(&name).or_else(|| version_at_hand(contender, &name, home));
    let Some((product, version)) = known else {
        install::require_path(&name, home).with_context(about)?;
        bail!(
            "contender `{}`: the version of `{}` is unknown until it is fetched; omit `--dry` to fetch and start it",
            contender.name,
            contender.server
        )
    };
    predicted(plan, contender, product, version, machine)
}

/// Evidence of a running server, with its contender's requested settings.
fn running(plan: &Plan, contender: &Contender, address: &ServerAddress) -> Result<ServerEvidence> {
    let mut evidence = live::of_contender(contender, address, plan)?;
    ask_for(contender, &mut evidence);
    Ok(evidence)
}

/// Product and version of a server that need not be fetched, from its program's output. Programs of other machines are
/// not available.
fn version_at_hand(
    contender: &Contender,
    name: &ServerName,
    home: &Home,
) -> Option<(Product, Version)> {
    if contender.host.is_some() {
        return None;
    }
    let build = install::at_hand(name, home)?;
    Some((Product::named(&build.product)?, build.version))
}

/// Product and version of a server of the catalogue, or of the SQLite that comes with this program.
fn known_version(name: &ServerName) -> Option<(Product, Version)> {
    if matches!(name.meaning, Meaning::InProcess) {
        let product = Product::named(SQLITE)?;
        return Some((product, product.parse_version(sqlite_version())?));
    }
    let Meaning::Provided {
        known: Some(known), ..
    } = &name.meaning
    else {
        return None;
    };
    let product = Product::named(known.product)?;
    Some((product, product.parse_version(known.version)?))
}

/// Predicted evidence of a server of this version with the contender's settings and the workload's tables.
fn predicted(
    plan: &Plan,
    contender: &Contender,
    product: Product,
    version: Version,
    machine: Machine,
) -> Result<ServerEvidence> {
    let mut evidence = expected(&contender.name, product, version, machine)
        .context("no defaults are recorded for this product")?;
    let dialect =
        dbduel_server::by_name(product.word()).map_or(Dialect::Sqlite, ServerProduct::dialect);
    refuse_workload(plan, contender, dialect, &version.to_string())?;
    pace(&mut evidence, plan, contender);
    evidence.source = format!("settings of the experiment over {}", evidence.source);
    for setting in contender.settings.iter().map(Setting::of_plan) {
        set(&mut evidence, &setting).map_err(|why| RefusedInPlan {
            contender: contender.name.clone(),
            setting: Some(setting.name.clone()),
            why,
        })?;
    }
    if product == Product::PostgreSql
        && let Some((name, why)) = contradiction(&evidence.variables)
    {
        return Err(RefusedInPlan {
            contender: contender.name.clone(),
            setting: Some(name.to_owned()),
            why,
        }
        .into());
    }
    if product.has_innodb() {
        evidence.schema = schema(&plan.workload_of(contender));
    }
    Ok(evidence)
}

/// Adds the settings that dbduel gives the server of a contest for its turns. The contender did not ask for them.
fn pace(evidence: &mut ServerEvidence, plan: &Plan, contender: &Contender) {
    let Some(product) = dbduel_server::by_name(evidence.product.word()) else {
        return;
    };
    let asked = evidence.asked.clone();
    let paced = product.paced_settings(plan.contenders.len() as u32);
    for setting in unless_written(paced, &contender.settings) {
        // Every version has these settings; one that has not keeps what it has.
        let _ = set_option(evidence, &setting.name, setting.value.as_deref());
    }
    evidence.asked = asked;
}

/// As [`check_workload`].
fn refuse_workload(
    plan: &Plan,
    contender: &Contender,
    dialect: Dialect,
    version: &str,
) -> Result<(), RefusedInPlan> {
    check_workload(plan, contender, dialect, version).map_err(|error| RefusedInPlan {
        contender: contender.name.clone(),
        setting: None,
        why: format!("{error:#}"),
    })
}

/// Refuses a workload that has no statements for a product's dialect, or parameters that mean nothing to it in this
/// version; it is empty where it is not known.
pub fn check_workload(
    plan: &Plan,
    contender: &Contender,
    dialect: Dialect,
    version: &str,
) -> Result<()> {
    let mut all = vec![plan.workload_of(contender)];
    if plan.suite.is_some() {
        all.extend((0..plan.levels.len()).map(|level| plan.workload_at(level, contender)));
    }
    let mut silent = None;
    for one in &all {
        let workload = dbduel_workloads::find(&one.name)?;
        if workload.speaks(dialect) {
            parameters::check_dialect(workload, dialect, &one.parameters)
                .and_then(|()| parameters::check_version(dialect, version, &one.parameters))?;
        } else {
            silent = Some(workload);
        }
    }
    let Some(workload) = silent else {
        return Ok(());
    };
    let others = dbduel_workloads::WORKLOADS.iter();
    let others: Vec<&str> = others
        .filter(|workload| workload.speaks(dialect))
        .map(|workload| workload.name())
        .collect();
    bail!(
        "workload `{}` does not support {}; choose one of {}",
        workload.name(),
        dialect.product(),
        others.join(", ")
    )
}

/// Adds a setting of a plan to its server's predicted evidence.
///
/// # Errors
/// Why the lab or the server refuses it.
fn set(evidence: &mut ServerEvidence, setting: &Setting) -> Result<(), String> {
    let version = evidence.version;
    let product = dbduel_server::by_name(evidence.product.word());
    let by_lab = product.and_then(|product| refused_by_lab(setting, version, product));
    match by_lab {
        Some(why) => Err(format!("`{}` cannot be set: {why}", setting.name)),
        None => set_option(evidence, &setting.name, setting.value.as_deref()).map(drop),
    }
}

/// The statements that create a workload's tables; `None` where its script decides.
fn schema(workload: &Workload) -> Option<String> {
    let known = dbduel_workloads::find(&workload.name).ok()?;
    let tables = known.tables(Dialect::MySql, &workload.parameters);
    let statements: Vec<String> = tables.into_iter().map(|table| table.create).collect();
    (!statements.is_empty()).then(|| statements.join(";\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    /// A build of the server that all contenders of [`Scenario`] name.
    const BUILD: &str = r#"{
        "id": "mariadb-10.11", "source": "apt", "locator": "", "artifacts": [], "product": "MariaDB",
        "version": { "major": 10, "minor": 11, "patch": 99 }, "version_text": "", "daemon": "mariadbd",
        "daemon_digests": { "bytes": 0, "sha256": "", "blake3": "" }, "basedir": "", "share": "", "plugins": null,
        "library_path": [], "loader": null
    }"#;

    /// Settings that are reserved on one product only, which the reader of experiments cannot know.
    #[test]
    fn settings_that_the_lab_keeps_for_itself_are_refused_in_a_plan() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let mut plan = Scenario::duel().plan();
        for contender in &mut plan.contenders {
            contender.server = "postgresql-17".to_owned();
            contender.settings.clear();
        }
        for (name, value) in [
            ("plperl.on_init", "use evil"),
            ("archive_command", "cp %p backup"),
            ("restart_after_crash", "on"),
            ("work mem", "1MB"),
        ] {
            plan.contenders[1].settings = vec![dbduel_record::plan::Setting {
                name: name.to_owned(),
                value: value.to_owned(),
            }];
            let error = check(&plan, &home).unwrap_err();
            let refused = error.downcast::<RefusedInPlan>().unwrap();
            assert_eq!(refused.setting.as_deref(), Some(name));
            assert!(refused.why.contains("cannot be set"), "{}", refused.why);
        }
    }

    #[test]
    fn the_workload_of_a_running_server_is_checked_by_its_dialect() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let mut plan = Scenario::duel().plan();
        "script".clone_into(&mut plan.workload.name);
        "sqlite:/tmp/one.db".clone_into(&mut plan.contenders[0].server);
        for refused in [
            check(&plan, &home).unwrap_err(),
            foreseen(&plan, &home).unwrap_err(),
        ] {
            let refused = refused.downcast::<RefusedInPlan>().unwrap();
            let of = (refused.contender, refused.setting);
            assert_eq!(of, (plan.contenders[0].name.clone(), None));
            assert!(
                refused.why.contains("`script` does not support SQLite"),
                "{}",
                refused.why
            );
        }
    }

    #[test]
    fn timers_are_foreseen_as_the_contest_sets_them() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let mut plan = Scenario::duel().plan();
        for contender in &mut plan.contenders {
            contender.server = "postgresql-17".to_owned();
            contender.settings.clear();
        }
        plan.contenders[1].settings = vec![dbduel_record::plan::Setting {
            name: "checkpoint_timeout".to_owned(),
            value: "5min".to_owned(),
        }];
        let count = plan.contenders.len() as f64;
        let case = foreseen(&plan, &home).unwrap().unwrap();
        let seconds = |contender: usize, name: &str| {
            let server = &case.contenders[contender];
            (server.number(name), server.asked.contains_key(name))
        };
        let checkpoint = |contender| seconds(contender, "checkpoint_timeout");
        assert_eq!(checkpoint(0), (Some(300.0 * count), false));
        assert_eq!(checkpoint(1), (Some(300.0), true));
        for contender in 0..plan.contenders.len() {
            let nap = seconds(contender, "autovacuum_naptime");
            assert_eq!(nap, (Some(60.0 * count), false));
        }
    }

    #[test]
    fn servers_on_hosts_are_foreseen_without_the_facts_and_programs_of_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let build = home.servers().join("mariadb-10.11");
        std::fs::create_dir_all(&build).unwrap();
        std::fs::write(build.join("build.json"), BUILD).unwrap();
        let mut plan = Scenario::duel().plan();
        let seen = |plan: &Plan| {
            let case = foreseen(plan, &home).unwrap().unwrap();
            let server = &case.contenders[0];
            (case.host.is_some(), server.basis.machine, server.version)
        };
        let own = Version::parse("10.11.99").unwrap();
        let (knows_host, machine, version) = seen(&plan);
        assert!(knows_host && machine.cpus.is_some());
        assert_eq!(version, own);
        for contender in &mut plan.contenders {
            contender.host = Some("db1".to_owned());
        }
        let (knows_host, machine, version) = seen(&plan);
        assert!(!knows_host);
        assert_eq!(machine, Machine::default());
        assert_ne!(version, own);
    }
}
