//! From an experiment to a plan: every default is applied here and nowhere else.
//!
//! The time is passed in as `created` and the randomness as the seed, so that a plan can be reproduced.

mod bisect;
mod blocks;
mod captured;
mod contenders;
mod decision;
mod design;
mod extension;
mod extras;
mod hosts;
mod levels;
mod long_turns;
mod schedule;
mod search;
mod suite;
mod suite_scripts;
mod sweep;
mod variants;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dbduel_driver::executor::policy::threads_beside_a_server;
use dbduel_record::plan::{
    Contender, LoadLevel, LoadProcess, Objective, Schedule, Suite, Workload,
};
use dbduel_record::{FormatVersion, Plan};
use dbduel_workloads::parameters::ScriptAccess;
use dbduel_workloads::script;

use crate::experiment::document::{Report, Troubles};
use crate::experiment::{self, Experiment, ExperimentFile};
use contenders::{check_exclusive, complete_contender, with_tables};
use decision::{check_blocks, complete_decision, complete_limits};
use extras::{
    check_confinement, check_objective, check_proof, check_running_once, complete_injection,
    processors,
};
use levels::{CLIENTS, complete_levels};
use schedule::{block_form, complete_schedule, rounds_within};
use search::{LEVELS_OF_A_SEARCH, complete_search, first_rate};
use suite::complete_suite;
use suite_scripts::with_scripts;
use workload::{check_clients, check_work, complete_workload};

pub use bisect::{StepContest, expand_step};
pub use decision::TRANSACTION_RETRIES;
pub use extension::{chosen_blocks, least_extension_s, more_blocks};
pub use extras::same_server;
pub use long_turns::{LONG_TURNS_SHARE_MAX, LongTurns, long_turns};
pub use schedule::load_s;
pub use search::blocks_at_rate;
pub use sweep::{expand_cell, expand_sweep};

/// Equal for every contest, so that a snapshot serves the next one.
pub const DATASET_SEED: u64 = 1;
/// Limit of blocks of one level in a plan.
const BLOCKS_CAP: u32 = 5000;
/// Default settling time between writes and the following reads in a suite.
const SETTLE: Duration = Duration::from_secs(5);

/// Facts of the surroundings that a plan depends on.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The current time, RFC 3339, UTC.
    pub created: String,
    /// The seed for an experiment without one.
    pub fresh_seed: u64,
    /// Number of processors that the system schedules on.
    pub cpus: u32,
    /// Numbers of the processors that processes may be confined to, ascending.
    pub processors: Vec<u32>,
    /// True when the contest runs on this machine. Plans for other machines are read here too, for an audit.
    pub runs_here: bool,
    /// Access of a workload's script while its options are determined.
    pub scripts: ScriptAccess,
}

/// The product of counts, saturating.
fn product(counts: impl IntoIterator<Item = usize>) -> usize {
    counts.into_iter().fold(1, usize::saturating_mul)
}

/// A number of combinations, for display.
fn counted(combinations: usize) -> String {
    match combinations {
        usize::MAX => "countless".to_owned(),
        count => count.to_string(),
    }
}

/// Completes the experiment of a file: the plan.
///
/// # Errors
/// Values that contradict each other or do not exist, with line and column.
pub fn expand(file: &ExperimentFile<'_>, surroundings: &Surroundings) -> Result<Plan, Troubles> {
    let attribute = file.experiment.attribute.as_ref();
    let designed = attribute.map(|attribute| design::designed(file, attribute));
    let (own, design) = designed.transpose()?.unzip();
    let (crossed, groups) = variants::crossed(file)?.unzip();
    let own = own.or(crossed);
    let ExperimentFile { path, text, .. } = *file;
    let experiment = own.as_ref().unwrap_or(file.experiment);
    let report = Report::new(path, text);
    let scripted = with_scripts(&report, path, experiment, surroundings.scripts);
    let experiment = scripted.as_ref().unwrap_or(experiment);
    let contenders: Vec<Contender> = experiment
        .contenders
        .iter()
        .map(|contender| complete_contender(&report, path, experiment, contender))
        .collect();
    let baseline = experiment.baseline.as_ref().map_or(0, |name| {
        contenders
            .iter()
            .position(|contender| contender.name == name.value)
            .unwrap_or(0)
    });
    captured::check_data(&report, experiment);
    let (workload, levels) = match &experiment.suite {
        Some(suite) => complete_suite(&report, path, experiment, suite, surroundings.scripts),
        None => complete_duel(&report, path, experiment, surroundings.scripts),
    };
    let contenders: Vec<Contender> = contenders
        .into_iter()
        .zip(&experiment.contenders)
        .map(|(contender, written)| {
            with_tables(&report, path, experiment, &workload, contender, written)
        })
        .collect();
    let search = complete_search(&report, experiment);
    // All levels have the same threads, so the one with the fewest clients says how many.
    let busy_clients = levels.iter().map(LoadLevel::busy_clients).min();
    let load = LoadProcess {
        threads: experiment.load.threads.unwrap_or_else(|| {
            threads_beside_a_server(surroundings.cpus, busy_clients.unwrap_or_default())
        }),
        // Bounded where it is read, far below what overflows.
        busy_poll_us: experiment.load.busy_poll.unwrap_or_default().as_micros() as u32,
        cores: processors(&report, &experiment.load.cores, surroundings),
        server_cores: processors(&report, &experiment.load.server_cores, surroundings),
        server_io: experiment.load.server_io.as_ref().map(|limit| limit.value),
    };
    check_exclusive(&report, experiment, &contenders, &levels);
    check_confinement(&report, experiment, &contenders);
    captured::check_contenders(&report, experiment, &contenders, &workload, &levels);
    captured::check_trace(&report, experiment, &workload);
    hosts::check_server_hosts(&report, experiment, &contenders, &workload, &levels);
    let hosts = hosts::complete_hosts(&report, experiment, &contenders, &workload, &levels);
    check_running_once(&report, experiment, &contenders);
    let seed = experiment.seed.unwrap_or(surroundings.fresh_seed);
    let shares = search.as_ref().map_or(levels.len(), |_| LEVELS_OF_A_SEARCH);
    let (mirrored, block_form) = block_form(experiment, contenders.len(), levels.len());
    let depends_on_past_work = check_work(&report, experiment, &workload);
    let schedule = complete_schedule(
        experiment,
        contenders.len(),
        &levels,
        shares,
        mirrored,
        depends_on_past_work,
    );
    check_objective(&report, experiment, &schedule);
    check_proof(&report, experiment, &workload, &contenders, surroundings);
    let schedules: Vec<Schedule> = levels.iter().map(|level| schedule.at(level)).collect();
    let average = average(&schedule, &schedules);
    let (variants, judged) = groups
        .map(|groups| variants::share_time(groups, &average, levels.len()))
        .unzip();
    let average = judged.unwrap_or(average);
    // Of variants one each is judged.
    let judged = match &variants {
        Some(variants) => variants.groups.len(),
        None => contenders.len(),
    };
    let statements = match &design {
        Some(design) => design.factors.len(),
        None => judged.saturating_sub(1),
    };
    let decision = complete_decision(
        &report,
        experiment,
        &average,
        judged,
        levels.len(),
        statements,
    );
    let choosing_rounds = variants.as_ref().map_or(0, |one| one.choosing_rounds);
    let rounds = match &search {
        Some(search) => search.looks.last().copied().unwrap_or(0),
        None => {
            let rounds = rounds_within(&average, judged, 1).min(BLOCKS_CAP);
            choosing_rounds + rounds.max(decision.blocks_max)
        }
    };
    let is_drawn = schedule.pilot.is_none()
        && check_blocks(&report, experiment, &schedule, &decision, levels.len());
    let blocks = match is_drawn {
        true => blocks::draw(seed, contenders.len(), &schedules, rounds),
        false => Vec::new(),
    };
    let injection = experiment
        .injection
        .as_ref()
        .and_then(|written| complete_injection(&report, written, &contenders));
    let question = experiment
        .question
        .clone()
        .unwrap_or_else(|| default_question(&contenders, &workload, experiment.suite.as_ref()));
    report.finish(Plan {
        format: FormatVersion::CURRENT,
        dbduel: env!("CARGO_PKG_VERSION").to_owned(),
        created: surroundings.created.clone(),
        question,
        seed,
        dataset_seed: DATASET_SEED,
        contenders,
        baseline,
        workload,
        levels,
        suite: experiment.suite.as_ref().map(|written| Suite {
            block_form,
            settle_s: written.settle.unwrap_or(SETTLE).as_secs_f64(),
        }),
        load,
        hosts,
        schedule,
        decision,
        limits: complete_limits(&experiment.limits),
        injection,
        design,
        variants,
        objective: experiment.load.objective.as_ref().map(|written| Objective {
            share: written.value.share,
            latency_us: written.value.latency.as_secs_f64() * 1e6,
        }),
        search,
        about: experiment
            .about
            .iter()
            .map(|name| name.value.clone())
            .collect(),
        waivers: experiment
            .waivers
            .iter()
            .map(|(class, reason)| (class.value.clone(), reason.value.clone()))
            .collect(),
        blocks,
        turns: BTreeMap::new(),
    })
}

/// A schedule whose blocks have the mean length over all levels.
fn average(schedule: &Schedule, of_levels: &[Schedule]) -> Schedule {
    let sum: f64 = of_levels.iter().map(|level| level.slice_s).sum();
    Schedule {
        slice_s: match of_levels.len() {
            0 => schedule.slice_s,
            levels => sum / levels as f64,
        },
        ..schedule.clone()
    }
}

/// The one workload, and its load levels.
fn complete_duel(
    report: &Report<'_>,
    path: &Path,
    experiment: &Experiment,
    access: ScriptAccess,
) -> (Workload, Vec<LoadLevel>) {
    let clients = experiment.load.clients.as_ref();
    let most = clients.and_then(|clients| clients.value.iter().copied().max());
    let most = most.unwrap_or(CLIENTS);
    let with_dump = captured::with_dump(report, experiment, &experiment.workload);
    let written = with_dump.as_ref().unwrap_or(&experiment.workload);
    let (workload, asked) = complete_workload(report, path, written, most, access);
    let levels = complete_levels(report, &experiment.load, &asked, first_rate(experiment));
    let span = clients.map_or(0..0, |clients| clients.span.clone());
    check_clients(report, &span, &workload, &levels);
    (workload, levels)
}

fn default_question(
    contenders: &[Contender],
    workload: &Workload,
    suite: Option<&experiment::Suite>,
) -> String {
    let names: Vec<&str> = contenders
        .iter()
        .map(|contender| contender.name.as_str())
        .collect();
    if suite.is_some() {
        return format!("Which is faster on which workload: {}?", names.join(", "));
    }
    let work = script::file_name(workload).unwrap_or(&workload.name);
    format!("Which is faster on {work}: {}?", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(text: &str) -> Result<Plan, Troubles> {
        let path = Path::new("duel.toml");
        let surroundings = Surroundings {
            created: String::new(),
            fresh_seed: 1,
            cpus: 2,
            processors: vec![0, 1],
            runs_here: false,
            scripts: ScriptAccess::Confined,
        };
        let experiment = &Experiment::parse(path, text)?;
        let file = ExperimentFile {
            path,
            text,
            experiment,
        };
        expand(&file, &surroundings)
    }

    #[track_caller]
    fn check_refused(text: &str, part: &str) {
        let refused = planned(text).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
    }

    const PAIR: &str = "[contenders.a]\nserver = \"sqlite\"\n[contenders.b]\nlike = \"a\"\nsettings = { locking_mode = \"EXCLUSIVE\" }\n\
                        [workload]\nname = \"oltp-point-select\"\n";

    #[test]
    fn a_budget_of_countless_blocks_is_refused() {
        let duel = |budget: &str| {
            format!(
                "budget = \"{budget}\"\n{PAIR}[load]\nclients = 1\n[schedule]\nslice = \"0.05 s\"\n"
            )
        };
        check_refused(
            &duel("1000 h"),
            "duel.toml:12:9: the budget of 3600000 s holds ",
        );
        check_refused(
            &duel("1000 h"),
            "a plan has at most 200,000: use longer slices",
        );
        assert!(planned(&duel("2 h")).unwrap().blocks.len() > 5_000);
    }

    #[test]
    fn a_file_that_one_client_locks_has_one_client() {
        let duel = |clients: u32| format!("{PAIR}[load]\nclients = {clients}\n");
        assert!(planned(&duel(1)).is_ok());
        check_refused(&duel(2), "duel.toml:5:29: with `locking_mode = exclusive`");
        check_refused(&duel(2), "2 clients cannot share it");
    }

    const CAPTURED: &str = "[contenders.a]\nserver = \"mariadb-10.11\"\n[contenders.b]\nserver = \"mysql-8.0.33\"\n\
                            [workload]\nname = \"captured\"\ncapture = \"shop.cap\"\n";

    #[test]
    fn captured_statements_need_a_dump_and_a_capture() {
        check_refused(CAPTURED, "duel.toml:6:8: `captured` needs the tables");
        let with_data = format!("{CAPTURED}[data]\ndump = \"shop.sql.gz\"\n");
        check_refused(
            &with_data,
            "duel.toml:7:1: parameter `capture` cannot be used",
        );
        check_refused(&with_data, "/shop.cap` is no capture");
        let in_workload = format!("{CAPTURED}dump = \"shop.sql\"\n");
        check_refused(&in_workload, "duel.toml:8:1: `dump` belongs in [data]");
        check_refused(
            &with_data.replace("dump", "dmp"),
            "unknown key `dmp` in [data]",
        );
        for (written, part) in [
            (
                "dump = \"a\"\nserver = \"tcp://db/shop\"",
                "10:10: [data] has a `dump` and a `server`",
            ),
            (
                "dump = \"a\"\ndatabase = \"shop\"",
                "10:12: `database` goes with `server`",
            ),
            ("server = \"tcp://db\"", "9:10: no database is named"),
            ("password_file = \"p\"", "8:1: [data] needs `dump`"),
        ] {
            check_refused(&format!("{CAPTURED}[data]\n{written}\n"), part);
        }
        let of_server = format!("{CAPTURED}[data]\nserver = \"tcp://db/shop\"\n");
        check_refused(&of_server, "/shop.cap` is no capture");
        let of_tables = format!("{PAIR}[data]\ndump = \"x\"\n");
        check_refused(&of_tables, "[data] goes with the workload `captured`");
        let timeout = with_data.replace("[data]", "lock_timeout = \"long\"\n[data]");
        check_refused(&timeout, "duel.toml:8:16: ");
    }

    #[test]
    fn captured_statements_run_on_servers_that_dbduel_starts() {
        let with_data = format!("{CAPTURED}[data]\ndump = \"shop.sql.gz\"\n");
        let running = with_data.replace("mysql-8.0.33", "tcp://u@db");
        check_refused(
            &running,
            "duel.toml:4:10: `captured` does not run on running servers",
        );
        let sqlite = with_data.replace("mysql-8.0.33", "sqlite");
        check_refused(&sqlite, "`captured` does not run on SQLite");
        let suite = "[suite]\n[[suite.workload]]\nname = \"x\"\nworkload = \"oltp-point-select\"\n";
        let suite = format!("{with_data}{suite}");
        check_refused(&suite, "put `captured` into [[suite.workload]]");
        check_refused(
            &suite,
            "`captured`, which is not in this suite: remove [data]",
        );
    }

    #[test]
    fn a_key_among_the_parameters_of_a_workload_is_told_where_it_belongs() {
        let text = PAIR.replace("[workload]\n", "[workload]\nbudget = \"1 min\"\n");
        check_refused(&text, "a key `budget` belongs at the top of the file");
        let text = PAIR.replace("[workload]\n", "[workload]\ntabel_size = 5\n");
        check_refused(
            &text,
            "`dbduel workloads oltp-point-select` lists its parameters",
        );
    }
}
