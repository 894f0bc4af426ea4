//! The plan of an experiment as text: contenders, load, time, and data to be fetched and stored.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_audit::Grade;
use dbduel_inspect::planned;
use dbduel_machine::host;
use dbduel_record::Plan;
use dbduel_record::event::Severity;
use dbduel_record::plan::{Contender, DecisionRule, Parameters, Setting, Workload};
use dbduel_record::sweep::SweepPlan;
use dbduel_server::{Home, Meaning, ServerName, install};
use dbduel_workloads::fill::Extent;

use dbduel_lab::coverage;
use dbduel_lab::forecast::{Need, copies_with_snapshot, sentence};
use dbduel_report::words;

/// A budget for fewer than this many times the blocks that a verdict needs may decide nothing.
const SCARCE: u32 = 2;

/// Columns of the names before a line's text.
const NAMES: usize = 12;

/// The plan of one contest.
///
/// # Errors
/// When a name in the plan is not understood, or the free space of the home cannot be read.
pub fn contest(home: &Home, plan: &Plan) -> Result<String> {
    let mut text = format!("{}\n\n", plan.question);
    let widest = plan.contenders.iter().map(|one| one.name.chars().count());
    let width = widest.max().unwrap_or_default().max(NAMES);
    text.push_str("Contenders\n");
    for (number, contender) in plan.contenders.iter().enumerate() {
        let mark = if number == plan.baseline {
            "  (baseline)"
        } else {
            ""
        };
        writeln!(
            text,
            "  {:<width$}  {}{mark}",
            contender.name, contender.server
        )?;
        let baseline = &plan.contenders[plan.baseline];
        let is_baseline = number == plan.baseline;
        let is_shared = |setting: &&Setting| !is_baseline && baseline.settings.contains(setting);
        let shared = contender.settings.iter().filter(is_shared).count();
        if shared > 0 {
            writeln!(
                text,
                "  {:<width$}    as `{}` in {shared} of {} settings",
                "",
                baseline.name,
                contender.settings.len()
            )?;
        }
        for setting in contender.settings.iter().filter(|one| !is_shared(one)) {
            writeln!(
                text,
                "  {:<width$}    {} = {}",
                "", setting.name, setting.value
            )?;
        }
        if !contender.tables.is_empty() {
            writeln!(
                text,
                "  {:<width$}    tables: {}",
                "",
                parameters(&contender.tables)
            )?;
        }
    }
    text.push('\n');
    let mut line = |name: &str, value: &str| writeln!(text, "{name:<NAMES$} {value}");
    // What workloads of a suite share is said once, as that of the workload that fills the tables.
    line("Workload", &workload(&plan.workload, &Parameters::new())?)?;
    let shared = changed(&plan.workload)?;
    for (number, level) in plan.levels.iter().enumerate() {
        let name = if number == 0 { "Duels" } else { "" };
        let of_suite = match &level.cell {
            Some(cell) => format!(": {}", workload(&cell.workload, &shared)?),
            None => String::new(),
        };
        line(name, &format!("{}{of_suite}", level.label()))?;
    }
    if let Some(variants) = &plan.variants {
        let several = variants
            .groups
            .iter()
            .filter(|group| group.members.len() > 1);
        let several: Vec<String> = several
            .map(|group| format!("{} of `{}`", group.members.len(), group.name))
            .collect();
        let words = format!(
            "{} compete in the first {} of each duel; the best of each compete in the remaining \
             blocks",
            several.join(", "),
            words::things(variants.choosing_rounds.into(), "block")
        );
        line("Variants", &words)?;
    }
    if let Some(search) = &plan.search {
        let rates = format!(
            "up to {} rates are tried, each a duel of its own",
            search.rates_max
        );
        line("", &rates)?;
    }
    line("Verdict", &verdict(plan))?;
    line("Load", &time(plan))?;
    if let Some(note) = coverage::note(plan)? {
        line("Capture", &note.claim)?;
    }
    for part in stored(home, plan)? {
        line(part.0, &part.1)?;
    }
    line("Downloads", &downloads(home, plan)?)?;
    let audited = audit_command("FILE", plan, home);
    line("Fairness", &fairness(plan, home, &audited)?)?;
    writeln!(
        text,
        "\nNothing was started. `--json` prints every default and seed; `{audited}` shows whether it is fair."
    )?;
    Ok(text)
}

/// Grade of the audit of recorded defaults, with the number of its findings. No server is asked.
fn fairness(plan: &Plan, home: &Home, command: &str) -> Result<String> {
    let mut contenders = plan.contenders.iter();
    let is_asked = contenders.any(|one| planned::is_running(plan, &one.name));
    let foreseen = match planned::is_foreseeable(plan, home) && !is_asked {
        true => planned::foreseen(plan, home)?,
        false => None,
    };
    let Some(case) = foreseen else {
        return Ok("not known without asking the servers".to_owned());
    };
    let audit = dbduel_audit::audit(&case);
    let found = audit.counted(Severity::Doubt);
    let found = match found.is_empty() {
        true => "notes only".to_owned(),
        false => found.join(", "),
    };
    let refused = match audit.grade {
        Grade::NotComparable => format!("; the contest will not start, and `{command}` says why"),
        Grade::Fair | Grade::Doubtful | Grade::Unfair => String::new(),
    };
    let grade = audit.grade.word();
    Ok(format!(
        "{grade} by settings and recorded defaults: {found}{refused}"
    ))
}

/// The command that audits the experiment `file`: without starting servers where their versions are known.
#[must_use]
pub fn audit_command(file: &str, plan: &Plan, home: &Home) -> String {
    let dry = match planned::is_foreseeable(plan, home) {
        true => " --dry",
        false => "",
    };
    format!("dbduel audit {file}{dry}")
}

/// The plan of a sweep: its factors, and its first cell.
///
/// # Errors
/// As [`contest`].
pub fn sweep(home: &Home, sweep: &SweepPlan, cells: &[Plan]) -> Result<String> {
    let mut text = format!(
        "A sweep of {} cells, one contest after the other, {} of load in total:\n",
        sweep.cells.len(),
        words::duration(sweep.budget_s)
    );
    for factor in &sweep.factors {
        let labels: Vec<&str> = factor
            .levels
            .iter()
            .map(|level| level.label.as_str())
            .collect();
        writeln!(text, "  {}: {}", factor.name, labels.join(", "))?;
    }
    let first = sweep.cells.first().zip(cells.first());
    let (cell, plan) = first.context("a sweep has cells")?;
    writeln!(text, "\nThe first, with {}:\n", sweep.label(cell))?;
    text.push_str(&contest(home, plan)?);
    Ok(text)
}

/// A workload with the parameters that are neither at their defaults nor in `known`.
fn workload(used: &Workload, known: &Parameters) -> Result<String> {
    let mut changed = changed(used)?;
    changed.retain(|name, value| known.get(name) != Some(value));
    Ok(match changed.is_empty() {
        true => used.name.clone(),
        false => format!("{} with {}", used.name, parameters(&changed)),
    })
}

/// The parameters that are not at their defaults.
fn changed(used: &Workload) -> Result<Parameters> {
    let mut changed = used.parameters.clone();
    for parameter in dbduel_workloads::find(&used.name)?.parameters() {
        if changed.get(parameter.name) == Some(&parameter.default.value()) {
            changed.remove(parameter.name);
        }
    }
    Ok(changed)
}

fn parameters(parameters: &Parameters) -> String {
    let written: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    written.join(", ")
}

fn verdict(plan: &Plan) -> String {
    let DecisionRule {
        horizon,
        confidence,
        blocks_min,
        blocks_max,
        ..
    } = plan.decision;
    // Transactions that outlast short turns and the check of switches take a part that only the contest shows.
    let is_scarce = plan.schedule.pilot.is_some() && blocks_max < SCARCE * blocks_min;
    let scarce = match is_scarce {
        true => format!(
            ", and the budget holds at most {blocks_max}, fewer where turns turn out longer: raise `budget` if the duel must not \
             end undecided"
        ),
        false => String::new(),
    };
    format!(
        "faster, slower, or equivalent within {} %, at {} % confidence; a duel ends when it is decided, after {blocks_min} blocks or \
         later{scarce}",
        words::trimmed(horizon * 100.0),
        words::trimmed(confidence * 100.0)
    )
}

fn time(plan: &Plan) -> String {
    let schedule = &plan.schedule;
    let cut = match (&schedule.pilot, &schedule.epochs) {
        (Some(_), _) => "a pilot chooses the length of turns".to_owned(),
        (None, Some(epochs)) => format!(
            "{} starts of all servers, {} blocks of each duel in each; slices of {}",
            epochs.count,
            epochs.blocks,
            words::duration(schedule.slice_s)
        ),
        (None, None) => format!(
            "up to {} blocks of each duel; slices of {}",
            plan.decision.blocks_max,
            words::duration(schedule.slice_s)
        ),
    };
    format!(
        "at most {} on {} threads, including up to {} of warm-up per contender; {cut}",
        words::duration(schedule.budget_s),
        plan.load.threads,
        words::duration(schedule.warm_up_cap_s)
    )
}

/// The data to be loaded and the disk space they take; nothing for a workload that makes its own tables.
fn stored(home: &Home, plan: &Plan) -> Result<Vec<(&'static str, String)>> {
    let workload = dbduel_workloads::find(&plan.workload.name)?;
    let Some(extent) = Extent::of(workload, &plan.workload.parameters) else {
        return Ok(Vec::new());
    };
    let each = match plan.contenders.len() {
        1 => "",
        _ => ", for each contender; snapshots of equal data are reused",
    };
    let data = sentence(extent, &plan.workload.parameters);
    let beside = match plan.dump_beside() {
        Some(_) => ", and the dump of [data], whose size is not known before it is loaded",
        None => "",
    };
    let mut parts = vec![("Data", format!("{data}{each}{beside}"))];
    let place = existing(home.root());
    let copies = copies_with_snapshot(place);
    let mut need = Need::default();
    for contender in plan.contenders.iter().filter(|one| is_ours(one)) {
        let parameters = plan.workload_of(contender).parameters;
        need = need.and(Need::to_load(extent, &parameters, copies));
    }
    let free = host::free_disk_bytes(place)
        .with_context(|| format!("could not read the free space of `{}`", place.display()))?;
    let snapshots = match copies {
        1 => ", snapshots included, which share blocks with the data there",
        _ => ", snapshots included",
    };
    let disk = format!(
        "up to about {} below `{}`{snapshots} ({} free), plus the servers' logs",
        words::bytes(need.expected_bytes as u64),
        home.root().display(),
        words::bytes(free)
    );
    if need != Need::default() {
        parts.push(("Disk", disk));
    }
    Ok(parts)
}

/// The nearest existing ancestor of a folder, or itself.
fn existing(path: &Path) -> &Path {
    let there = path.ancestors().find(|folder| folder.exists());
    there.unwrap_or(Path::new("/"))
}

/// True for a server that dbduel runs itself, and for SQLite: their data and snapshots are in the home.
fn is_ours(contender: &Contender) -> bool {
    ServerName::parse(&contender.server).is_ok_and(|name| match name.meaning {
        Meaning::Provided { .. } | Meaning::InProcess => true,
        Meaning::Running(_) => false,
    })
}

/// Downloads that the contest needs.
fn downloads(home: &Home, plan: &Plan) -> Result<String> {
    let servers: BTreeSet<&str> = plan
        .contenders
        .iter()
        .map(|one| one.server.as_str())
        .collect();
    let mut fetched = Vec::new();
    for server in servers {
        let name = ServerName::parse(server)?;
        let Meaning::Provided { source, known, .. } = &name.meaning else {
            continue;
        };
        if source.is_in_place || install::is_installed(&name, home) {
            continue;
        }
        if source.scheme == "tar" {
            fetched.push(format!("none for {server}, which will be unpacked"));
            continue;
        }
        let size = known.and_then(|known| known.download_mb);
        let size = size.map_or("of unknown size".to_owned(), |size| {
            format!("about {size} MB")
        });
        let from = match known.filter(|_| source.scheme == "oci") {
            Some(known) => format!("image {}, to be pulled", known.locator),
            None => format!("from {}", source.scheme),
        };
        fetched.push(format!("{server} ({size}, {from})"));
    }
    Ok(match fetched.is_empty() {
        true => "none; all servers are here".to_owned(),
        false => fetched.join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::run::plan_of;
    use dbduel_workloads::parameters::ScriptAccess;

    fn text(experiment: &str) -> String {
        let path = Path::new("duel.toml");
        let (_, plan) = plan_of(path, experiment, ScriptAccess::Confined).unwrap();
        let home = tempfile::tempdir().unwrap();
        let text = contest(&Home::new(home.path()), &plan).unwrap();
        text.replace(&home.path().display().to_string(), "/a/home")
    }

    #[test]
    fn the_plan_of_a_duel_says_what_it_takes() {
        let text = text(
            "question = \"Which?\"\nhorizon = \"3 %\"\nbudget = \"10 min\"\n\
             [contenders.a]\nserver = \"mariadb-10.11\"\nsettings = { innodb_flush_log_at_trx_commit = 1 }\n\
             [contenders.b]\nserver = \"mysql-8.0.33\"\n\
             [workload]\nname = \"oltp-read-write\"\ntables = 4\ntable_size = 1_000_000\n[load]\nclients = [4, 16]\n",
        );
        for part in [
            "Which?",
            "mariadb-10.11  (baseline)",
            "innodb_flush_log_at_trx_commit = 1",
            "oltp-read-write with table_size = 1000000, tables = 4",
            "4 clients",
            "16 clients",
            "equivalent within 3 %, at 95 % confidence",
            "at most 10 min",
            "4,000,000 rows",
            "below `/a/home`",
            "mariadb-10.11 (about 25 MB, from apt), mysql-8.0.33 (about 554 MB, from maven)",
        ] {
            assert!(text.contains(part), "`{part}` is missing in:\n{text}");
        }
    }

    #[test]
    fn what_contenders_and_workloads_share_is_said_once() {
        let text = text(
            "[contenders.a]\nserver = \"mariadb-10.11\"\nsettings = { innodb_purge_threads = 1, innodb_io_capacity = 500 }\n\
             [contenders.b]\nlike = \"a\"\nsettings = { innodb_io_capacity = 900 }\n\
             [workload]\ntable_size = 2_000\n[load]\nclients = 1\n[suite]\n\
             [[suite.workload]]\nname = \"ranges\"\nworkload = \"oltp-read-only\"\nrange_size = 7\n\
             [[suite.workload]]\nname = \"points\"\nworkload = \"oltp-point-select\"\n",
        );
        for part in [
            "as `a` in 1 of 2 settings",
            "innodb_io_capacity = 900",
            "oltp-read-only with table_size = 2000\n",
            "ranges: oltp-read-only with range_size = 7\n",
            "points: oltp-point-select\n",
        ] {
            assert!(text.contains(part), "`{part}` is missing in:\n{text}");
        }
        assert_eq!(text.matches("innodb_purge_threads").count(), 1, "{text}");
    }

    #[test]
    fn the_plan_of_a_small_budget_has_the_grade_the_room_of_snapshots_and_the_blocks_that_a_verdict_needs()
     {
        let duel = |budget: &str, weak: &str| {
            text(&format!(
                "budget = \"{budget}\"\nabout = [\"journal_mode\"]\n[contenders.a]\nserver = \"sqlite\"\n\
                 settings = {{ journal_mode = \"delete\", synchronous = \"full\" }}\n\
                 [contenders.b]\nlike = \"a\"\nsettings = {{ journal_mode = \"wal\"{weak} }}\n\
                 [workload]\nname = \"oltp-update-non-index\"\ntable_size = 20_000\n[load]\nclients = 1\n\
                 [schedule]\nwarm_up = \"3 s\"\n",
            ))
        };
        let text = duel("10 min", "");
        assert!(
            text.contains("Fairness     fair by settings and recorded defaults: notes only"),
            "{text}"
        );
        assert!(text.contains("snapshots included"), "{text}");
        assert!(text.contains("after 6 blocks or later\n"), "{text}");
        let text = duel("30 s", ", synchronous = \"normal\"");
        assert!(
            text.contains("Fairness     doubtful by settings and recorded defaults: 1 doubt"),
            "{text}"
        );
        assert!(
            text.contains("raise `budget` if the duel must not end undecided"),
            "{text}"
        );
    }

    #[test]
    fn an_archive_is_unpacked_and_not_downloaded() {
        let archive = tempfile::NamedTempFile::with_suffix(".tar.xz").unwrap();
        let archive = archive.path().display();
        let text = text(&format!(
            "[contenders.a]\nserver = \"path:/opt/mysql\"\n[contenders.b]\nserver = \"tar:{archive}\"\n\
             [workload]\nname = \"oltp-point-select\"\n[load]\nclients = 1\n",
        ));
        let expected = format!("Downloads    none for tar:{archive}, which will be unpacked");
        assert!(text.contains(&expected), "{text}");
    }

    #[test]
    fn running_servers_need_neither_room_nor_downloads() {
        let text = text(
            "[contenders.a]\nserver = \"tcp://u@one\"\n[contenders.b]\nserver = \"tcp://u@two\"\n\
             [workload]\nname = \"oltp-point-select\"\n[load]\nclients = 1\n",
        );
        assert!(text.contains("Downloads    none"), "{text}");
        assert!(!text.contains("Disk "), "{text}");
    }
}
