//! One duel of a contender with itself, its resolution block by block, and its verdict.

use std::path::{Path, PathBuf};

use anyhow::Result;
use dbduel_experiment::ExperimentFile;
use dbduel_judge::injected::stopped_share;
use dbduel_judge::records::steadiness::{Steadiness, steadiness};
use dbduel_judge::summary::Comparison;
use dbduel_judge::{Summary, decide_level};
use dbduel_record::Record;
use dbduel_record::Verdict;
use dbduel_record::event::EndReason;
use dbduel_record::facts::Resolution;
use dbduel_record::plan::InjectedStalls;
use dbduel_record::rows::ALL_CLASSES;
use dbduel_report::words;
use dbduel_server::{Home, Meaning, ServerName};
use dbduel_workloads::parameters::ScriptAccess;

use super::Arguments;
use crate::commands::{record_reports, run};

/// Contenders of the duel.
const ONE: &str = "one";
const SAME: &str = "the-same";
/// Rows of the table: enough for one contender to fit into memory, and to load in a second.
const ROWS: u32 = 20_000;

/// How the duels of a self-test are set up.
#[derive(Debug, Clone)]
pub struct Match {
    /// Where the server comes from.
    pub server: String,
    pub workload: String,
    /// Connections.
    pub clients: u32,
    /// Budget of one duel, seconds.
    pub budget_s: f64,
    /// Length of all slices, seconds; absent when a pilot chooses, as in a contest that says nothing of slices.
    pub slice_s: Option<f64>,
    /// Within this the two are called equivalent; zero lets a duel take its whole budget.
    pub horizon: f64,
    /// Share of its slices in which the second server is stopped; zero for equal contenders.
    pub injected_share: f64,
    /// The stops, where they are stalls of a given length.
    pub stalls: Option<InjectedStalls>,
    /// Where the records go.
    pub results: PathBuf,
    /// True when only JSON may be printed.
    pub is_quiet: bool,
}

/// Result of one duel.
#[derive(Debug)]
pub struct Outcome {
    pub record: PathBuf,
    /// The judge's summary.
    pub summary: Summary,
    /// The server, as the record shows it.
    pub server: String,
    /// Width of the interval over time.
    pub resolution: Vec<Resolution>,
    /// Share of its slices in which the second server was really stopped.
    pub stopped_share: f64,
    /// Steadiness of throughput and of the costs.
    pub steadiness: Vec<Steadiness>,
}

impl Match {
    /// The match that the command line asks for.
    pub fn of(arguments: &Arguments, server: String) -> Self {
        // A single duel is for the width of the interval, and runs until its budget ends.
        let horizon = match arguments.duels {
            None => 0.0,
            Some(_) => arguments.horizon,
        };
        Self {
            server,
            workload: arguments.workload.clone(),
            clients: arguments.clients,
            budget_s: arguments.budget.as_secs_f64(),
            slice_s: arguments.slice.map(|slice| slice.as_secs_f64()),
            horizon,
            injected_share: match &arguments.stall {
                Some(stalls) => stalls.stopped_share(),
                None => arguments.inject.unwrap_or(0.0),
            },
            stalls: arguments.stall,
            results: arguments.results.clone(),
            is_quiet: arguments.json,
        }
    }

    /// Conducts one duel; `None` when the user stopped it.
    ///
    /// # Errors
    /// When it cannot be conducted.
    pub fn run_duel(&self, home: &Home) -> Result<Option<Outcome>> {
        let path = Path::new("selftest.toml");
        let text = self.experiment();
        let (experiment, plan) = run::plan_of(path, &text, ScriptAccess::Confined)?;
        let file = ExperimentFile {
            path,
            text: &text,
            experiment: &experiment,
        };
        let record = run::create(home, &self.results, &file, &plan)?;
        let options = run::RunOptions::default();
        if run::run_on_console(home, &record, &file, &plan, &options)? == EndReason::Interrupted {
            return Ok(None);
        }
        let summary = record_reports::write(&record, None)?;
        let evidence = Record::open(&record)?;
        let build = evidence
            .contenders
            .first()
            .and_then(|files| files.build.as_ref());
        Ok(Some(Outcome {
            server: build.map_or_else(
                || self.server.clone(),
                |build| format!("{} {}", build.product, build.version),
            ),
            resolution: resolution(&evidence),
            stopped_share: stopped_share(&evidence),
            steadiness: steadiness(&evidence),
            summary,
            record,
        }))
    }

    /// The experiment file of the duel.
    fn experiment(&self) -> String {
        let question = match self.injected_share {
            0.0 => "Does the lab find a difference where there is none?".to_owned(),
            share => format!(
                "Does the lab find a server that is stopped for {} of the time?",
                words::share(share)
            ),
        };
        let mut text = format!(
            "question = \"{question}\"\nhorizon = {}\nconfidence = 0.95\nbudget = \"{:.0} ms\"\n\n\
             [contenders.{ONE}]\nserver = {:?}\n",
            self.horizon,
            1e3 * self.budget_s,
            self.server
        );
        text.push_str(settings_of(&self.server));
        text.push_str(&format!(
            "\n[contenders.{SAME}]\nlike = \"{ONE}\"\n\n[workload]\nname = {:?}\ntables = 1\ntable_size = {ROWS}\n\n\
             [load]\nclients = {}\n",
            self.workload, self.clients
        ));
        if let Some(slice_s) = self.slice_s {
            text.push_str(&format!(
                "\n[schedule]\nslice = \"{:.0} ms\"\n",
                1e3 * slice_s
            ));
        }
        if self.injected_share > 0.0 {
            text.push_str(&format!(
                "\n[injection]\ncontender = \"{SAME}\"\n{}\n",
                self.stops()
            ));
        }
        text
    }

    /// The stops of the second server, as keys of an experiment file.
    fn stops(&self) -> String {
        let Some(InjectedStalls {
            stall_s,
            every_s: [least, most],
        }) = self.stalls
        else {
            return format!("stopped = {}", self.injected_share);
        };
        format!("stall = \"{stall_s} s\"\nevery = \"{least} s to {most} s\"")
    }
}

/// Settings of the server's product for little memory and no sync per commit; empty when the lab does not start it or
/// its name does not give the product.
fn settings_of(server: &str) -> &'static str {
    let Ok(Meaning::Provided { known, locator, .. }) =
        ServerName::parse(server).map(|name| name.meaning)
    else {
        return "";
    };
    match known.map_or(locator.as_str(), |known| known.product) {
        "postgresql" | "postgres" => {
            "settings = { shared_buffers = \"64MB\", synchronous_commit = \"off\" }\n"
        }
        "mariadb" | "mysql" | "percona" | "mariadbd" | "mysqld" => {
            "settings = { innodb_buffer_pool_size = \"64M\", innodb_flush_log_at_trx_commit = 2 }\n"
        }
        _ => "",
    }
}

impl Outcome {
    /// The comparison of the two.
    pub fn comparison(&self) -> Option<&Comparison> {
        self.summary.duels.first()?.comparisons.first()
    }

    /// The verdict; void when there is no comparison.
    pub fn verdict(&self) -> Verdict {
        self.comparison()
            .map_or(Verdict::Void, |comparison| comparison.verdict)
    }

    /// Verdict, ratio and interval in words.
    pub fn described(&self) -> String {
        let Some(comparison) = self.comparison() else {
            return "nothing was compared".to_owned();
        };
        let ratio = words::ratio_value(&comparison.ratio).unwrap_or_default();
        let interval = words::ratio_interval(&comparison.ratio);
        format!("{} {ratio} ({interval})", comparison.verdict.word())
    }
}

/// The width of the interval after every minute of load, and at the end.
fn resolution(record: &Record) -> Vec<Resolution> {
    let mut reached: Vec<Resolution> = Vec::new();
    let mut used_s = 0.0;
    let mut minute = 0.0;
    let blocks = record.plan.blocks.iter();
    for block in blocks.filter(|block| record.slices.iter().any(|row| row.block == block.id)) {
        let own = record.slices.iter().filter(|row| row.block == block.id);
        let own = own.filter(|row| row.class == ALL_CLASSES);
        used_s += own.map(|row| row.guard_s + row.measured_s).sum::<f64>();
        let so_far: Vec<_> = record
            .slices
            .iter()
            .filter(|row| row.block <= block.id)
            .cloned()
            .collect();
        let decision = decide_level(&record.plan, &so_far, 0);
        let interval = decision
            .comparisons
            .first()
            .and_then(|comparison| comparison.ratio.interval());
        let Some((low, high)) = interval.filter(|(low, high)| *low > 0.0 && high.is_finite())
        else {
            continue;
        };
        let now = Resolution {
            minutes: used_s / 60.0,
            blocks: decision.blocks_complete,
            half_width: (high / low).sqrt() - 1.0,
        };
        // The last entry of a minute stands for it.
        if now.minutes.floor() == minute && !reached.is_empty() {
            reached.pop();
        }
        minute = now.minutes.floor();
        reached.push(now);
    }
    reached
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn settings_are_those_of_the_product() {
        for (server, setting) in [
            ("mariadb-10.11", "innodb_buffer_pool_size"),
            ("mysql-8.0.33", "innodb_buffer_pool_size"),
            ("installed:mysqld", "innodb_buffer_pool_size"),
            ("postgresql-18", "shared_buffers"),
            ("installed:postgres", "shared_buffers"),
        ] {
            assert!(settings_of(server).contains(setting), "{server}");
        }
        for server in ["sqlite", "tcp://host", "unix:/socket", "path:/opt/server"] {
            assert_eq!(settings_of(server), "", "{server}");
        }
    }

    #[test]
    fn every_budget_gives_an_experiment_that_has_a_plan() {
        let slices = [None, Some(0.5)];
        for (budget_s, slice_s) in [40.0, 60.0, 180.0, 3600.0]
            .into_iter()
            .flat_map(|budget_s| slices.map(|slice_s| (budget_s, slice_s)))
        {
            let stalls = InjectedStalls {
                stall_s: 1.0,
                every_s: [2.0, 6.0],
            };
            for (injected_share, stalls) in [(0.0, None), (0.1, None), (0.2, Some(stalls))] {
                let set = Match {
                    server: "mariadb-10.11".to_owned(),
                    workload: "oltp-point-select".to_owned(),
                    clients: 8,
                    budget_s,
                    slice_s,
                    horizon: 0.05,
                    injected_share,
                    stalls,
                    results: PathBuf::new(),
                    is_quiet: false,
                };
                let text = set.experiment();
                let (_, plan) =
                    run::plan_of(Path::new("selftest.toml"), &text, ScriptAccess::Confined)
                        .context(budget_s.to_string())
                        .unwrap();
                assert_eq!(plan.schedule.pilot.is_some(), slice_s.is_none());
                assert_eq!(plan.injection.is_some(), injected_share > 0.0);
                let planned = plan.injection.and_then(|injection| injection.stalls);
                assert_eq!(planned, stalls);
            }
        }
    }
}
