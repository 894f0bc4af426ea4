//! Records made of arithmetic, for the tests of the judge and the reports.
//!
//! A [`Scenario`] says what happened; [`Scenario::record`] is the record that a reader would see, and
//! [`Scenario::write`] writes it with the real writer. No server, no clock: the same scenario gives the
//! same record.

mod bisection;
pub mod captured;
pub mod continuity;
mod course;
mod facts;
mod machine;
mod measured;
pub mod order_entry;
pub mod suite;
mod sweep;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use dbduel_record::design::{ChangeKind, Design, DesignChange, DesignFactor};
use dbduel_record::event::{EndReason, Event, Notice, SliceId, Stamped};
use dbduel_record::plan::{
    Arrival, Block, Contender, DecisionRule, Limits, LoadLevel, LoadProcess, Schedule, TurnChoice,
    TurnLength, TurnReason, Workload,
};
use dbduel_record::rows::{ReadingRow, SecondRow, SliceRow, TickRow};
use dbduel_record::seed::named_seed;
use dbduel_record::statement_classes::StatementClasses;
use dbduel_record::{FormatVersion, Plan, Record, RecordWriter, tsv};
use dbduel_stats::attribution::FactorialDesign;

use crate::noise::Noise;
use course::Step;
use facts::{files, host, settings};

pub use bisection::{bisection, write_bisection};
pub use machine::{NASTY, Noise as MachineNoise, QUIET, TYPICAL};
pub use sweep::{sweep, write_sweep};

/// 2026-11-20 14:30:00 UTC.
const START_MS: u64 = 1_795_185_000_000;

/// One synthetic contender.
#[derive(Debug, Clone)]
pub struct Side {
    /// Name of the contender.
    pub name: String,
    /// Throughput relative to the first contender, per level.
    pub speed: Vec<f64>,
    /// Probability per second of a stall of a few seconds.
    pub stalls_per_s: f64,
    /// Share of transactions that are given up.
    pub failed_share: f64,
    /// Digest of its data.
    pub digest: String,
}

/// What happens in a synthetic run.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The experiment's question.
    pub question: String,
    /// The contenders; the first is the baseline.
    pub sides: Vec<Side>,
    /// Clients of each level.
    pub clients: Vec<u32>,
    /// Blocks per level that are run.
    pub blocks: u32,
    /// Middle of a slice, seconds.
    pub slice_s: f64,
    /// Standard deviation of the logarithm of a tick's throughput.
    pub noise: f64,
    /// Slices that bring no result.
    pub lost: Vec<SliceId>,
    /// Blocks after which all servers were started anew, eight hours later.
    pub resumed_after: Option<u32>,
    /// Journal entries in addition.
    pub noticed: Vec<Notice>,
    /// Why the run ended.
    pub ended: Option<EndReason>,
    /// What was observed of the servers; nothing but processor time when absent.
    pub observation: Option<Observation>,
    /// How the difference of two of the contenders is divided.
    pub design: Option<Design>,
    /// Root of everything random.
    pub seed: u64,
}

/// What a transaction took of the servers' resources, contender by contender.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Bytes written to the device.
    pub written_bytes: Vec<f64>,
    /// Pages written to the doublewrite buffer.
    pub doublewrite_pages: Vec<f64>,
}

impl Observation {
    /// The second contender writes every page once instead of twice.
    pub fn doublewrite() -> Self {
        Self {
            written_bytes: vec![52_000.0, 30_700.0],
            doublewrite_pages: vec![1.4, 0.0],
        }
    }

    /// All contenders do the same.
    pub fn alike() -> Self {
        Self {
            written_bytes: vec![52_000.0; 2],
            doublewrite_pages: vec![1.4; 2],
        }
    }
}

impl Side {
    /// A well-behaved contender with this speed at every level.
    pub fn new(name: &str, speed: &[f64]) -> Self {
        Self {
            name: name.to_owned(),
            speed: speed.to_vec(),
            stalls_per_s: 0.0,
            failed_share: 0.0,
            digest: "5f2b9c0d8e7a41d3".to_owned(),
        }
    }
}

/// Turns as a pilot might have chosen them.
pub fn turn_choice(turn_s: f64, guard_s: f64) -> TurnChoice {
    TurnChoice {
        turn_s,
        guard_s,
        tick_s: 0.7 * turn_s,
        blocks_max: 60,
        reason: TurnReason::Scatter,
        lengths: vec![TurnLength {
            turn_s,
            blocks: 40,
            block_sd: 0.05,
            half_width_per_minute: 0.01,
        }],
        seconds: 5.0,
        switch_s: 0.01,
        transient_s: 0.02,
        repeats_min: 1,
    }
}

impl Scenario {
    /// Two contenders at three levels on a quiet machine: faster, equivalent, undecided.
    pub fn duel() -> Self {
        Self {
            question: "What does the doublewrite buffer cost when data exceed memory?".to_owned(),
            sides: vec![
                Side::new("doublewrite", &[1.0; 3]),
                Side::new("no-doublewrite", &[1.08, 1.002, 1.015]),
            ],
            clients: vec![1, 16, 64],
            blocks: 14,
            slice_s: 15.0,
            noise: 0.03,
            lost: Vec::new(),
            resumed_after: None,
            noticed: Vec::new(),
            ended: Some(EndReason::BudgetSpent),
            observation: None,
            design: None,
            seed: 7,
        }
    }

    /// The same with its servers observed.
    pub fn observed(self, observation: Observation) -> Self {
        Self {
            observation: Some(observation),
            ..self
        }
    }

    /// Four contenders at three levels, some of them with stalls.
    pub fn four() -> Self {
        let mut sides = vec![
            Side::new("mariadb-10.11", &[1.0, 1.0, 1.0]),
            Side::new("mariadb-11.8", &[1.03, 1.06, 1.15]),
            Side::new("mysql-8.0", &[0.92, 1.0, 1.31]),
            Side::new("mysql-9.7", &[0.90, 0.97, 1.30]),
        ];
        sides[2].stalls_per_s = 0.01;
        Self {
            question: "Which server takes the most read-write work on this machine?".to_owned(),
            sides,
            blocks: 12,
            seed: 11,
            ..Self::duel()
        }
    }

    /// The contenders between two that differ in three settings, of which the first brings 20 %, the second 8 % and the
    /// third nothing.
    pub fn designed() -> Self {
        let matrix = FactorialDesign::new(3).unwrap();
        let names = ["safe", "fast", "a", "b", "c", "ab", "ac", "bc"];
        let speed = |run: &Vec<bool>| {
            let worth = run
                .iter()
                .zip([1.2, 1.08, 1.0])
                .filter(|(is_changed, _)| **is_changed);
            worth.map(|(_, worth)| worth).product::<f64>()
        };
        let runs = names.iter().zip(matrix.runs());
        let settings = [
            ("innodb_flush_log_at_trx_commit", "1", "2"),
            ("innodb_doublewrite", "ON", "OFF"),
            ("innodb_lru_scan_depth", "1536", "256"),
        ];
        let factor = |(name, from, to): (&str, &str, &str)| DesignFactor {
            name: name.to_owned(),
            is_listed: true,
            changes: vec![DesignChange {
                kind: ChangeKind::Setting,
                name: name.to_owned(),
                from: Some(from.to_owned()),
                to: Some(to.to_owned()),
            }],
            grouped_because: None,
        };
        Self {
            question: "Which setting makes `fast` fast?".to_owned(),
            sides: runs
                .map(|(name, run)| Side::new(name, &[speed(run)]))
                .collect(),
            clients: vec![16],
            blocks: 20,
            noise: 0.02,
            design: Some(Design {
                target: 1,
                factors: settings.map(factor).into(),
                runs: matrix.runs().to_vec(),
            }),
            ..Self::duel()
        }
    }

    /// The plan of the scenario.
    pub fn plan(&self) -> Plan {
        let contenders = self.sides.iter().map(|side| Contender {
            name: side.name.clone(),
            server: "mariadb-10.11".to_owned(),
            settings: settings(&side.name),
            password_file: None,
            host: None,
            tables: Default::default(),
        });
        Plan {
            format: FormatVersion::CURRENT,
            dbduel: "0.1.0".to_owned(),
            created: "2026-11-20T14:29:51Z".to_owned(),
            question: self.question.clone(),
            seed: self.seed,
            dataset_seed: self.seed,
            contenders: contenders.collect(),
            baseline: 0,
            workload: Workload {
                name: "oltp-read-write".to_owned(),
                parameters: [
                    ("tables".to_owned(), 8.into()),
                    ("table_size".to_owned(), 1_000_000.into()),
                ]
                .into(),
            },
            levels: self
                .clients
                .iter()
                .map(|&clients| LoadLevel {
                    clients,
                    arrival: Arrival::Closed { think_ms: 0.0 },
                    cell: None,
                })
                .collect(),
            suite: None,
            hosts: None,
            load: LoadProcess {
                threads: 2,
                busy_poll_us: 0,
                cores: vec![],
                server_cores: vec![],
                server_io: None,
            },
            schedule: Schedule {
                budget_s: 3600.0,
                slice_s: self.slice_s,
                jitter: 0.3,
                guard_s: 2.0,
                drain_s: 5.0,
                tick_s: 1.0,
                warm_up_cap_s: 300.0,
                warm_up_hold_s: 60.0,
                epochs: None,
                pilot: None,
                mirrored: true,
            },
            decision: DecisionRule {
                confidence: 0.95,
                horizon: 0.02,
                blocks_min: 6,
                blocks_max: self.blocks.max(20),
                reserve: 0.2,
                paths: 4999,
            },
            limits: Limits {
                server_start_s: 60.0,
                server_stop_s: 60.0,
                statement_s: 30.0,
                dataset_s: 3600.0,
                transaction_retries: 5,
                server_restarts: 2,
                free_disk_bytes_min: 1 << 30,
                prove: None,
            },
            injection: None,
            design: self.design.clone(),
            variants: None,
            objective: None,
            search: None,
            about: Vec::new(),
            waivers: [("D3".to_owned(), "the device writes pages whole".to_owned())].into(),
            blocks: self.planned_blocks(),
            turns: BTreeMap::new(),
        }
    }

    fn planned_blocks(&self) -> Vec<Block> {
        let mut random = Noise::new(named_seed(self.seed, "schedule"));
        let mut blocks = Vec::new();
        for round in 0..self.blocks.max(20) {
            for level in 0..self.clients.len() {
                let mut order: Vec<usize> = (0..self.sides.len()).collect();
                for last in (1..order.len()).rev() {
                    order.swap(last, (random.uniform() * (last + 1) as f64) as usize);
                }
                order.extend(order.clone().into_iter().rev());
                let slice_s = (self.slice_s * (0.7 + 0.6 * random.uniform()) * 10.0).round() / 10.0;
                blocks.push(Block {
                    id: blocks.len() as u32,
                    level,
                    round,
                    order,
                    slice_s,
                    repeats: 1,
                });
            }
        }
        blocks
    }

    /// Writes the scenario to `dir`.
    pub fn write(&self, dir: &Path) {
        let mut writer = RecordWriter::create(
            dir,
            b"question = \"synthetic\"\n",
            &self.plan(),
            &host(),
            START_MS,
        )
        .unwrap();
        for (index, side) in self.sides.iter().enumerate() {
            let files = files(&side.name, index);
            let table = |texts: &BTreeMap<String, String>| -> String {
                let rows = texts.iter();
                rows.map(|(name, value)| tsv::line(&[name.clone(), value.clone()]))
                    .collect()
            };
            writer
                .contender_json(&side.name, "build.json", &files.build)
                .unwrap();
            writer
                .contender_json(&side.name, "size.json", &files.size)
                .unwrap();
            for (file, texts) in [
                ("variables.before.tsv", &files.variables_before),
                ("status.before.tsv", &files.status_before),
                ("status.after.tsv", &files.status_after),
            ] {
                writer
                    .contender_file(&side.name, file, table(texts).as_bytes())
                    .unwrap();
            }
            writer
                .contender_json(&side.name, "connection.json", &files.connection)
                .unwrap();
        }
        for step in self.steps() {
            match step {
                Step::Event(at_ms, event) => writer.event(at_ms, event).unwrap(),
                Step::Slice(at_ms, id, result) => writer.slice(at_ms, id, &result).unwrap(),
            }
        }
    }

    /// The record as the reader sees it, without the disk's time.
    pub fn record(&self) -> Record {
        let mut record = Record {
            manifest_digest: None,
            dir: PathBuf::new(),
            plan: self.plan(),
            host: host(),
            self_test: None,
            answers: None,
            events: Vec::new(),
            slices: Vec::new(),
            ticks: Vec::new(),
            readings: Vec::new(),
            seconds: Vec::new(),
            errors: Vec::new(),
            statements: Vec::new(),
            statement_classes: StatementClasses::default(),
            latencies: Vec::new(),
            commits: Vec::new(),
            contenders: self
                .sides
                .iter()
                .enumerate()
                .map(|(index, side)| files(&side.name, index))
                .collect(),
            complaints: Vec::new(),
        };
        for step in self.steps() {
            match step {
                Step::Event(at_ms, what) => record.events.push(Stamped { at_ms, what }),
                Step::Slice(at_ms, slice, result) => {
                    record.events.push(Stamped {
                        at_ms,
                        what: Event::SliceFinished {
                            slice,
                            lengths: BTreeMap::new(),
                        },
                    });
                    record.slices.extend(result.classes);
                    record.ticks.extend(result.ticks);
                    record.readings.extend(result.readings);
                    record.seconds.extend(result.seconds);
                    record.errors.extend(result.errors);
                    record.latencies.extend(result.latencies);
                }
            }
        }
        record
    }

    /// The record with the last line of its journal and of its slices torn.
    pub fn torn_record(&self) -> Record {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        self.write(&path);
        for (file, half) in [
            ("events.jsonl", "{\"at_ms\":17951850000,\"wh"),
            ("slices.csv", "56,2,0,doub"),
        ] {
            let mut file = OpenOptions::new()
                .append(true)
                .open(path.join(file))
                .unwrap();
            file.write_all(half.as_bytes()).unwrap();
        }
        Record::open(&path).unwrap()
    }

    /// The record with its run repeated `times` times, one after the other; without histograms, which
    /// would fill the memory of a test.
    pub fn repeated_record(&self, times: u32) -> Record {
        let mut record = self.record();
        record.plan.blocks.retain(|block| block.round < self.blocks);
        record.latencies.clear();
        let blocks = record.plan.blocks.clone();
        let (slices, ticks, readings, seconds) = (
            record.slices.clone(),
            record.ticks.clone(),
            record.readings.clone(),
            record.seconds.clone(),
        );
        let events = record.events.clone();
        let end_ms = slices
            .iter()
            .map(|row| row.start_ms + 1000 * row.measured_s as u64)
            .max()
            .unwrap();
        for repetition in 1..times {
            let (later, later_ms) = (
                repetition * blocks.len() as u32,
                u64::from(repetition) * (end_ms - START_MS),
            );
            record.plan.blocks.extend(blocks.iter().map(|block| Block {
                id: block.id + later,
                round: block.round + repetition * self.blocks,
                ..block.clone()
            }));
            record.slices.extend(slices.iter().map(|row| SliceRow {
                block: row.block + later,
                start_ms: row.start_ms + later_ms,
                ..row.clone()
            }));
            record.ticks.extend(ticks.iter().map(|row| TickRow {
                block: row.block + later,
                ..row.clone()
            }));
            record
                .readings
                .extend(readings.iter().map(|row| ReadingRow {
                    block: row.block + later,
                    ..row.clone()
                }));
            record.seconds.extend(seconds.iter().map(|row| SecondRow {
                block: row.block + later,
                ..row.clone()
            }));
            record
                .events
                .extend(events.iter().filter_map(|event| match event.what {
                    Event::SliceFinished { slice, .. } => Some(Stamped {
                        at_ms: event.at_ms + later_ms,
                        what: Event::SliceFinished {
                            slice: SliceId {
                                block: slice.block + later,
                                ..slice
                            },
                            lengths: BTreeMap::new(),
                        },
                    }),
                    _ => None,
                }));
        }
        record
    }
}
