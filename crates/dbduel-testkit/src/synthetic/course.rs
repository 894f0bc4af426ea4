//! The course of a synthetic run: its journal, and when every slice ran.

use dbduel_record::Plan;
use dbduel_record::event::{EndReason, Event, SliceId};
use dbduel_record::plan::Block;
use dbduel_record::seed::named_seed;
use dbduel_record::store::SliceResult;

use crate::noise::Noise;

use super::facts::{data_files, version};
use super::measured::SyntheticSlice;
use super::{START_MS, Scenario};

/// How long the night between two sittings is, milliseconds.
const NIGHT_MS: u64 = 8 * 3_600_000;

/// One thing that happened.
pub(super) enum Step {
    Event(u64, Event),
    Slice(u64, SliceId, SliceResult),
}

/// A run under way.
struct Course<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    steps: Vec<Step>,
    now_ms: u64,
    epoch: u32,
    /// Logarithm of what the machine is faster than usual, the same for all contenders.
    drift: f64,
    noise: Noise,
}

impl Scenario {
    /// What happened, in order.
    pub(super) fn steps(&self) -> Vec<Step> {
        let plan = self.plan();
        let mut course = Course {
            scenario: self,
            plan: &plan,
            steps: Vec::new(),
            now_ms: START_MS,
            epoch: 0,
            drift: 0.0,
            noise: Noise::new(named_seed(self.seed, "noise")),
        };
        course.start();
        for block in plan.blocks.iter().filter(|block| block.round < self.blocks) {
            for position in 0..block.order.len() {
                course.slice(block, position);
            }
            if self.resumed_after == Some(block.id) {
                course.event(Event::Ended {
                    reason: EndReason::Interrupted,
                });
                course.now_ms += NIGHT_MS;
                course.epoch += 1;
                course.start();
            }
        }
        if let Some(reason) = self.ended {
            course.event(Event::Ended { reason });
        }
        course.steps
    }
}

impl Course<'_> {
    fn event(&mut self, event: Event) {
        self.steps.push(Step::Event(self.now_ms, event));
    }

    fn start(&mut self) {
        let mut events = vec![Event::Started {
            pid: 4242,
            dbduel: "0.1.0".to_owned(),
            epoch: self.epoch,
        }];
        for (index, side) in self.scenario.sides.iter().enumerate() {
            let contender = || side.name.clone();
            events.push(Event::ServerReady {
                contender: contender(),
                version: version(index),
                start_s: Some(1.2),
            });
            events.push(Event::DatasetReady {
                contender: contender(),
                restored: self.epoch > 0,
                rows: 8_000_000,
                seconds: 74.0,
                digest: side.digest.clone(),
                bytes: 2_100_000_000,
                allocated_bytes: 2_000_000_000,
                files: Some(data_files(2_100_000_000)),
                load: None,
            });
            events.push(Event::WarmedUp {
                contender: contender(),
                seconds: 140.0,
                steady: true,
                steps_per_s: (1..=28)
                    .map(|step| 6000.0 * (1.0 - (-f64::from(step) / 5.0).exp()))
                    .collect(),
                level: None,
            });
        }
        events.extend(self.scenario.noticed.iter().map(|notice| Event::Noticed {
            notice: notice.clone(),
        }));
        for event in events {
            if let Event::WarmedUp { seconds, .. } = &event {
                self.now_ms += (1e3 * seconds) as u64;
            }
            self.event(event);
            self.now_ms += 500;
        }
    }

    fn slice(&mut self, block: &Block, position: usize) {
        self.drift = 0.95 * self.drift + 0.02 * self.noise.normal();
        let id = SliceId {
            block: block.id,
            position: position as u32,
        };
        let side = &self.scenario.sides[block.order[position]];
        self.event(Event::SliceStarted {
            slice: id,
            contender: side.name.clone(),
            quantum: None,
        });
        let guard_s = if block.continues(position) {
            0.0
        } else {
            self.plan.schedule.guard_s
        };
        let start_ms = self.now_ms + (guard_s * 1e3) as u64;
        self.now_ms = start_ms + (block.slice_s * 1e3) as u64 + 300;
        if self.scenario.lost.contains(&id) {
            self.event(Event::SliceLost {
                slice: id,
                why: "the server closed the connection".to_owned(),
                seconds: 0.0,
            });
            return;
        }
        let clients = self.scenario.clients[block.level];
        let usual = 900.0 * f64::from(clients).powf(0.55) * side.speed[block.level];
        let slice = SyntheticSlice {
            scenario: self.scenario,
            id,
            side,
            clients,
            rate: usual * self.drift.exp(),
            start_ms,
            epoch: self.epoch,
            guard_s,
            measured_s: block.slice_s,
        };
        let result = slice.result(&mut self.noise);
        self.steps.push(Step::Slice(self.now_ms, id, result));
    }
}
