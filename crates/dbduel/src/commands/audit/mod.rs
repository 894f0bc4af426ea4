//! `dbduel audit`: was it fair? Checks dumps, option files, running servers, records, published results and experiments
//! (whose servers it starts), without load.

mod arguments;
mod fix;
mod several;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_audit::codes::{check_subject, check_waiver};
use dbduel_audit::{Audit, Case, Contest, Machine, Product, Waiver};
use dbduel_driver::TlsMode;
use dbduel_driver::address::{Address, AddressError};
use dbduel_experiment::ExperimentFile;
use dbduel_inspect::{self as inspect, Gathered, Origin, Subject, planned};
use dbduel_judge as judge;
use dbduel_lab::contest;
use dbduel_machine::host;
use dbduel_machine::interrupt;
use dbduel_record::Plan;
use dbduel_server::Home;
use dbduel_workloads::parameters::ScriptAccess;

use super::connection;
use crate::console::{self, Console};
use crate::exit::Exit;
use crate::home;
pub use arguments::Arguments;
use arguments::{AuditContest, AuditSide};

/// Audits the targets of the arguments.
///
/// # Errors
/// When a target cannot be read or parsed, or the fix cannot be written.
pub fn audit(home: Option<PathBuf>, arguments: &Arguments) -> Result<Exit> {
    if arguments.codes {
        console::print(&text::names(console::width()))?;
        return Ok(Exit::Done);
    }
    // Mistyped arguments are reported before servers are started.
    let waivers: Result<Vec<Waiver>> = arguments
        .waive
        .iter()
        .map(|one| parse_waiver(one))
        .collect();
    let waivers = waivers?;
    for subject in &arguments.about {
        check_subject(subject)
            .map_err(anyhow::Error::msg)
            .context("--about")?;
    }
    for target in &arguments.targets {
        refuse_password(target)?;
    }
    let tls = connection::tls(&arguments.tls);
    let is_running = |target: &String| inspect::is_address(target);
    if tls != TlsMode::Off && !arguments.targets.iter().any(is_running) {
        bail!(
            "--tls applies to addresses of running servers, and no target is one; the servers of \
             an experiment are queried without TLS, as in its contest"
        );
    }
    let (mut contests, left_out) = match arguments.targets.as_slice() {
        [one] => single(home, one, arguments)?,
        [a, b] => {
            let subjects = [
                subject(a, &arguments.a(), arguments, &tls)?,
                subject(b, &arguments.b(), arguments, &tls)?,
            ];
            (vec![inspect::pair(&subjects)?], Vec::new())
        }
        _ => bail!("an audit takes one or two targets"),
    };
    for Gathered { case, .. } in &mut contests {
        case.contest = match arguments.contest {
            AuditContest::Equalised => Contest::Equalised,
            AuditContest::OutOfTheBox => Contest::OutOfTheBox,
            AuditContest::Tuned => Contest::Tuned,
        };
        case.about.extend(arguments.about.iter().cloned());
        case.clients = arguments.clients.or(case.clients);
        case.waivers.extend(waivers.iter().cloned());
    }
    conclude(&contests, &left_out, arguments)
}

/// Audits the contests, prints the findings and writes the requested fix.
fn conclude(contests: &[Gathered], left_out: &[String], arguments: &Arguments) -> Result<Exit> {
    let audits: Vec<Audit> = contests
        .iter()
        .map(|contest| dbduel_audit::audit(&contest.case))
        .collect();
    let fixed = match (&arguments.fix, contests) {
        (None, _) => None,
        (Some(path), [only]) => Some((path, only, dbduel_audit::fix(&only.case))),
        (Some(_), several) => {
            let titles: Vec<String> = several
                .iter()
                .map(|contest| format!("`{}`", contest.title))
                .collect();
            bail!(
                "--fix takes one contest, and the target has {}: {}; name one of them",
                several.len(),
                titles.join(", ")
            )
        }
    };
    if arguments.json {
        let mut value = serde_json::json!({
            "schema_version": 1,
            "audited_by": env!("CARGO_PKG_VERSION"),
            "left_out": left_out,
            "fix": fixed.as_ref().map(|(_, _, fix)| &fix.settings),
        });
        if let ([contest], [audit]) = (contests, audits.as_slice()) {
            value["of"] = contest.title.as_str().into();
            value["audit"] = serde_json::to_value(audit)?;
        } else {
            let of = |(contest, audit): (&Gathered, &Audit)| {
                serde_json::json!({
                    "of": contest.title,
                    "runs": contest.runs,
                    "contests_alike": contest.alike,
                    "audit": audit,
                })
            };
            value["audits"] = contests.iter().zip(&audits).map(of).collect();
        }
        if several::is_summed_up(contests) {
            value["findings"] = serde_json::to_value(several::common(contests, &audits))?;
        }
        console::print_json(&value)?;
    } else if several::is_summed_up(contests) && !arguments.all {
        console::print(&several::render(contests, &audits, console::width()))?;
        console::print(&text::left_out(left_out, console::width()))?;
    } else {
        for (index, (contest, audit)) in contests.iter().zip(&audits).enumerate() {
            if contests.len() > 1 {
                let blank = if index == 0 { "" } else { "\n" };
                console::print(&format!("{blank}=== {} ===\n", contest.title))?;
            }
            console::print(&text::render(audit, arguments.all, console::width()))?;
        }
        console::print(&text::left_out(left_out, console::width()))?;
    }
    if let Some((path, contest, fix)) = &fixed {
        fix::write(path, contest, fix, scripts(arguments))?;
        if !arguments.json {
            console::print(&fix::summary(path, fix, console::width()))?;
        }
    }
    // A fix was asked for, and the file written is what runs next.
    let passes = match &fixed {
        Some((_, _, fix)) => fix.after.passes(arguments.strict),
        None => audits.iter().all(|audit| audit.passes(arguments.strict)),
    };
    Ok(if passes { Exit::Done } else { Exit::Void })
}

/// The contests of a single target: a record, a directory of results or an experiment file.
fn single(
    home: Option<PathBuf>,
    target: &str,
    arguments: &Arguments,
) -> Result<(Vec<Gathered>, Vec<String>)> {
    let path = Path::new(target);
    if path.is_dir() {
        return inspect::directory(path, arguments.root.as_deref(), judge::case);
    }
    if path.extension().is_none_or(|extension| extension != "toml") {
        bail!(
            "`{target}` is not a directory, so it is read as one server; name the other server \
             too, or give a record, a directory of results or an experiment file (.toml)"
        );
    }
    let text = inspect::text::whole(path)?;
    let (experiment, plan) = super::run::plan_of(path, &text, scripts(arguments))?;
    let file = ExperimentFile {
        path,
        text: &text,
        experiment: &experiment,
    };
    let case = if arguments.dry {
        planned::case(&plan, &home::find(home)?)
            .map_err(|error| planned::at_its_place(error, &file))?
    } else {
        started(&home::find(home)?, &file, &plan)?
    };
    let origin = Origin::Experiment {
        path: path.to_owned(),
        text,
    };
    let only = Gathered {
        title: target.to_owned(),
        case,
        origin,
        runs: Vec::new(),
        alike: 0,
    };
    Ok((vec![only], Vec::new()))
}

/// Refuses a target that looks like an address with a password, before any message repeats it.
fn refuse_password(target: &str) -> Result<()> {
    let shown = Address::without_password(target);
    if shown != target && (inspect::is_address(target) || target.contains("://")) {
        return Err(AddressError::Password).with_context(|| format!("could not use `{shown}`"));
    }
    Ok(())
}

/// Access of an audited experiment's workload script.
fn scripts(arguments: &Arguments) -> ScriptAccess {
    match arguments.run_script {
        true => ScriptAccess::Full,
        false => ScriptAccess::Confined,
    }
}

/// Starts the servers of an experiment and returns their case.
fn started(home: &Home, file: &ExperimentFile<'_>, plan: &Plan) -> Result<Case> {
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let console = Console::new();
    super::run::clear_leftovers(home, &console);
    let evidence = contest::without_record("audit", home, file, plan, &console, contest::rehearse);
    console.finish();
    let mut case = planned::case_of_running(plan, evidence?);
    case.host = Some(host::read(home.root()));
    Ok(case)
}

fn subject(
    target: &str,
    side: &AuditSide<'_>,
    arguments: &Arguments,
    tls: &TlsMode,
) -> Result<Subject> {
    let product = side.product.map(|name| {
        Product::named(name).with_context(|| {
            format!("`{name}` is not a known product; write mysql, mariadb, percona, postgresql or sqlite")
        })
    });
    let product = product.transpose()?;
    let version = side.version.map(|text| {
        product
            .unwrap_or(Product::MySql)
            .parse_version(text)
            .with_context(|| format!("`{text}` is not a version; write for example 5.6.24"))
    });
    Ok(Subject {
        target: target.to_owned(),
        name: side.name.map_or_else(|| short_name(target), str::to_owned),
        product,
        version: version.transpose()?,
        password_file: side.password_file.map(Path::to_owned),
        tls: tls.clone(),
        machine: Machine {
            cpus: arguments.cpus,
            memory_bytes: arguments.memory,
            files: None,
        },
        root: arguments.root.clone(),
    })
}

/// Generic file names, which do not identify a server.
const NO_NAMES: &[&str] = &["variables", "my", "mysqld", "server", "vars", "config"];

/// Name for a target: an address as it is, else the file's name, or its directory's where the file's is generic.
fn short_name(target: &str) -> String {
    if target.contains("://") || target.starts_with("unix:") {
        return target.to_owned();
    }
    let path = Path::new(target);
    let name = if path.is_dir() {
        path.file_name()
    } else {
        path.file_stem()
    };
    let is_no_name =
        name.is_some_and(|name| NO_NAMES.iter().any(|word| name.eq_ignore_ascii_case(word)));
    let parent = path
        .parent()
        .and_then(Path::file_name)
        .filter(|_| is_no_name);
    parent.or(name).map_or_else(
        || target.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn parse_waiver(text: &str) -> Result<Waiver> {
    match text.split_once('=') {
        Some((of, reason)) if !of.trim().is_empty() && !reason.trim().is_empty() => {
            check_waiver(of)
                .map_err(anyhow::Error::msg)
                .context("--waive")?;
            Ok(Waiver {
                of: of.trim().to_owned(),
                reason: reason.trim().to_owned(),
            })
        }
        _ => bail!(
            "`{text}` is not a waiver; write CLASS=REASON, for example D3=\"the device writes \
             pages whole\""
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waivers_need_a_class_and_a_reason() {
        assert_eq!(
            parse_waiver("D3 = ours = fine").unwrap(),
            Waiver {
                of: "D3".to_owned(),
                reason: "ours = fine".to_owned()
            }
        );
        for text in ["D3", "D3=", "=why", "", "D33=why"] {
            assert!(parse_waiver(text).is_err(), "{text}");
        }
    }
}
