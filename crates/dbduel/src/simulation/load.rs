//! Simulated load: clients that count what a server of a certain speed would do.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Result, bail};
use dbduel_driver::session::Session;
use dbduel_lab::contest::Load;
use dbduel_lab::drive::SliceEnd;
use dbduel_load::order::{ClassAnswer, OpenOrder, SliceAnswer, SliceOrder, Tick};
use dbduel_machine::clock::{self, Clocks};
use dbduel_record::commits::CommitRange;
use dbduel_record::facts::LoadHost;
use dbduel_record::latency;
use dbduel_record::plan::Arrival;
use dbduel_record::rows::TransactionCounts;
use dbduel_record::statements::StatementExample;

use super::pass_s;
use super::world::{Clients, Shared, World};

/// Time that the last transactions of a slice take after its ordered end, seconds.
const DRAINED_S: f64 = 0.002;
/// A wait of the load process for an answer beyond what was ordered, seconds.
const GRACE_S: f64 = 15.0;
/// Latencies relative to their mean, and how many of a hundred transactions have each.
const LATENCIES: [(f64, u64); 6] = [
    (0.6, 30),
    (0.9, 40),
    (1.3, 20),
    (1.9, 7),
    (3.0, 2),
    (4.5, 1),
];

/// The load of one process.
pub struct SimulatedLoad {
    world: Shared,
    /// As the world has it, for callers that want a reference.
    failure: Option<String>,
}

/// Counts of a slice.
#[derive(Default)]
struct Counted {
    ok: u64,
    /// How long it was driven, seconds.
    length_s: f64,
    /// Mean latency of each tick times its length, summed up, seconds squared.
    latency_s2: f64,
    ticks: Vec<Tick>,
}

impl SimulatedLoad {
    pub fn start(world: &Shared) -> Self {
        world.call(|| "load: start".to_owned());
        let mut state = world.0.borrow_mut();
        state.load.running += 1;
        state.load.failure = None;
        state.load.clients.clear();
        Self {
            world: world.clone(),
            failure: None,
        }
    }

    fn call(&mut self, what: &str, contender: &str) -> Result<()> {
        self.world.call(|| format!("load: {what} {contender}"));
        self.failure.clone_from(&self.world.0.borrow().load.failure);
        match &self.failure {
            Some(failure) => bail!("{failure}"),
            None => Ok(()),
        }
    }

    fn server(&self, contender: &str) -> usize {
        let world = self.world.0.borrow();
        let position = world.servers.iter().position(|one| one.name == contender);
        position.expect("the plan has this contender")
    }

    /// Reason why a contender's clients get no answer from a server, if any.
    fn obstacle(&self, order: &SliceOrder) -> Option<String> {
        let number = self.server(&order.contender);
        let mut world = self.world.0.borrow_mut();
        let awake: Vec<String> = world
            .servers
            .iter()
            .enumerate()
            .filter(|(other, server)| *other != number && server.runs() && !server.is_frozen)
            .map(|(_, server)| server.name.clone())
            .collect();
        if !awake.is_empty() {
            world.breach(format!(
                "`{}` was driven while {} ran",
                order.contender,
                awake.join(" and ")
            ));
        }
        let World { servers, load, .. } = &mut *world;
        let server = &servers[number];
        let Some(clients) = load.clients.get_mut(&order.contender) else {
            return Some("its clients are not connected".to_owned());
        };
        clients.is_under_load = order.until_halted;
        let clients = *clients;
        if order.clients > clients.number {
            return Some(format!(
                "{} clients were asked for and {} are connected",
                order.clients, clients.number
            ));
        }
        let is_frozen = server.is_frozen;
        let answers = server.runs() || server.leaves_connections;
        if !answers || server.starts != clients.of_start {
            return Some("the server closed the connection".to_owned());
        }
        let is_dead = server.was_driven_dead;
        let is_cold = server.runs() && order.until_halted && server.loaded_s == 0.0;
        if is_frozen {
            world.breach(format!(
                "`{}` was driven while it was frozen",
                order.contender
            ));
        }
        if is_dead {
            world.breach(format!(
                "`{}` was driven again after it had ended",
                order.contender
            ));
        }
        if is_cold {
            world.breach(format!(
                "`{}` was measured before it was warmed up",
                order.contender
            ));
        }
        None
    }

    /// Lets the clients work for `seconds`. Returns the tick and its mean latency, seconds.
    fn work(&self, order: &SliceOrder, seconds: f64, offset_s: f64) -> (Tick, f64) {
        let number = self.server(&order.contender);
        let mut world = self.world.0.borrow_mut();
        let is_dead = world.servers[number].died.is_some();
        let stalled_s = match is_dead {
            true => seconds,
            false => world.servers[number].stall_s.min(seconds),
        };
        if !is_dead {
            world.servers[number].stall_s -= stalled_s;
        }
        world.delayed_s += stalled_s;
        world.servers[number].loaded_s += seconds;
        let capacity_per_s = world.rate_per_s(number, order.clients);
        let normal = world.random.normal();
        drop(world);
        let offered_per_s = match order.arrival {
            Arrival::Closed { .. } => capacity_per_s,
            Arrival::Constant { per_second } | Arrival::Poisson { per_second } => per_second,
        };
        // A queue grows long before the server is busy all the time.
        let busy = (offered_per_s / capacity_per_s).min(0.999);
        let service_s = f64::from(order.clients) / capacity_per_s;
        let latency_s = match order.arrival {
            Arrival::Closed { .. } => service_s,
            Arrival::Constant { .. } | Arrival::Poisson { .. } => service_s / (1.0 - busy),
        };
        let mean = offered_per_s.min(capacity_per_s) * (seconds - stalled_s);
        let ok = (mean + mean.sqrt() * normal).max(0.0) as u64;
        pass_s(seconds);
        let tick = Tick {
            offset_s,
            length_s: seconds,
            ok,
            latency_us_sum: ok as f64 * latency_s * 1e6,
            latency_us_max: 4.5e6 * latency_s,
            latency_us_p50: 0.9e6 * latency_s,
            latency_us_p95: 1.9e6 * latency_s,
            latency_us_p99: 3e6 * latency_s,
            ..Tick::default()
        };
        (tick, latency_s)
    }

    fn drive(
        &mut self,
        order: &SliceOrder,
        on_begin: &mut dyn FnMut(Instant),
        on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<()>,
    ) -> Result<SliceAnswer, String> {
        let lost = |error: anyhow::Error| format!("{error:#}");
        self.call("slice", &order.contender).map_err(lost)?;
        if let Some(why) = self.obstacle(order) {
            return Err(why);
        }
        let ordered_s = order.guard_s + order.measured_s;
        if order.guard_s > 0.0 {
            self.work(order, order.guard_s, -order.guard_s);
        }
        let open_ns = Clocks::now().awake.as_nanos() as u64;
        on_begin(clock::now());
        let mut counted = Counted::default();
        while order.measured_s - counted.length_s > 1e-9 {
            let length_s = order.tick_s.min(order.measured_s - counted.length_s);
            let (tick, latency_s) = self.work(order, length_s, counted.length_s);
            counted.ok += tick.ok;
            counted.length_s += length_s;
            counted.latency_s2 += latency_s * length_s;
            counted.ticks.push(tick);
            self.call("tick of", &order.contender).map_err(lost)?;
            if let Some(why) = self.obstacle(order) {
                return Err(why);
            }
            if on_tick(&tick).is_break() {
                break;
            }
        }
        // What is left of a stall is waited for.
        let number = self.server(&order.contender);
        let rest_s = std::mem::take(&mut self.world.0.borrow_mut().servers[number].stall_s);
        let limit_s = ordered_s + 2.0 * order.drain_s + GRACE_S;
        if rest_s > limit_s {
            self.delay(limit_s);
            self.world.0.borrow_mut().load.failure =
                Some("the load process did not answer in time".to_owned());
            self.call("wait for", &order.contender).map_err(lost)?;
        }
        self.delay(rest_s.min(order.drain_s));
        let drained_s = DRAINED_S + rest_s.min(order.drain_s);
        pass_s(DRAINED_S);
        {
            let server = &mut self.world.0.borrow_mut().servers[number];
            server.was_driven_dead = server.died.is_some();
        }
        Ok(self.answer(order, counted, drained_s, open_ns))
    }

    /// Lets time pass without work, because of a fault.
    fn delay(&self, seconds: f64) {
        pass_s(seconds);
        self.world.0.borrow_mut().delayed_s += seconds;
    }

    fn answer(
        &self,
        order: &SliceOrder,
        counted: Counted,
        drained_s: f64,
        open_ns: u64,
    ) -> SliceAnswer {
        let latency_s = counted.latency_s2 / counted.length_s.max(f64::EPSILON);
        let mut histogram = latency::new_histogram();
        let mut left = counted.ok;
        for (factor, of_hundred) in LATENCIES {
            let count = (counted.ok * of_hundred).div_ceil(100).min(left);
            left -= count;
            histogram.saturating_record_n((factor * latency_s * 1e9) as u64, count);
        }
        let (stalled_s, is_garbled) = {
            let world = &mut *self.world.0.borrow_mut();
            let stalled_s = std::mem::take(&mut world.load.stall_s);
            let is_garbled = std::mem::take(&mut world.load.is_garbled);
            world.had_effect |= is_garbled;
            (stalled_s, is_garbled)
        };
        self.delay(stalled_s);
        let encoded = match is_garbled {
            true => "garbage".to_owned(),
            false => latency::encode(&histogram),
        };
        let is_open = !matches!(order.arrival, Arrival::Closed { .. });
        SliceAnswer {
            open_ns,
            measured_s: counted.length_s + drained_s + stalled_s,
            is_finished: false,
            classes: vec![ClassAnswer {
                class: "transaction".to_owned(),
                counts: TransactionCounts {
                    due: counted.ok,
                    ok: counted.ok,
                    statements: counted.ok,
                    ..TransactionCounts::default()
                },
                latency_us_sum: counted.ok as f64 * latency_s * 1e6,
                histogram: encoded.clone(),
            }],
            statements: Vec::new(),
            ticks: counted.ticks,
            errors: Vec::new(),
            cpu_user_s: 0.1 * counted.length_s,
            cpu_system_s: 0.05 * counted.length_s,
            cpu_wait_s: 0.0,
            polled_s: 0.0,
            lag_us_p99: 50.0,
            service_times: is_open.then_some(encoded),
            stalled_s,
            // At the end of what was counted.
            gaps_s: match stalled_s > 0.0 {
                true => vec![[
                    counted.length_s + drained_s,
                    counted.length_s + drained_s + stalled_s,
                ]],
                false => Vec::new(),
            },
            drained_s,
            client_drained_s: f64::from(order.clients) * drained_s / 2.0,
            reported: None,
            rolled_back: 0,
            commits: Vec::new(),
            orchestration: None,
        }
    }
}

impl Drop for SimulatedLoad {
    fn drop(&mut self) {
        let mut world = self.world.0.borrow_mut();
        world.load.running = world.load.running.saturating_sub(1);
    }
}

impl Load for SimulatedLoad {
    fn open(&mut self, order: OpenOrder) -> Result<Session> {
        self.call("open", &order.contender)?;
        let number = self.server(&order.contender);
        let mut world = self.world.0.borrow_mut();
        let World {
            servers,
            load,
            had_effect,
            ..
        } = &mut *world;
        let server = &servers[number];
        if load.refusals > 0 {
            load.refusals -= 1;
            *had_effect = true;
            bail!(
                "could not connect the clients of `{}`: too many",
                server.name
            );
        }
        if !server.runs() || server.is_frozen {
            bail!(
                "could not connect the clients of `{}`: no answer",
                server.name
            );
        }
        let clients = Clients {
            of_start: server.starts,
            number: order.clients,
            is_under_load: false,
        };
        load.clients.insert(order.contender, clients);
        Ok(Session::default())
    }

    fn close(&mut self, contender: &str) -> Result<()> {
        self.call("close", contender)?;
        self.world.0.borrow_mut().load.clients.remove(contender);
        Ok(())
    }

    fn slice(
        &mut self,
        order: SliceOrder,
        on_begin: &mut dyn FnMut(Instant),
        on_tick: &mut dyn FnMut(&Tick) -> ControlFlow<()>,
    ) -> SliceEnd {
        match self.drive(&order, on_begin, on_tick) {
            Ok(answer) => SliceEnd::Finished(Box::new(answer)),
            Err(why) => SliceEnd::lost(why),
        }
    }

    fn halt(&mut self, contender: &str) {
        // That it takes no orders is found by the next one.
        let _ = self.call("halt", contender);
        let number = self.server(contender);
        let mut world = self.world.0.borrow_mut();
        let World { servers, load, .. } = &mut *world;
        let server = &servers[number];
        let is_awake = server.runs() && !server.is_frozen;
        if let Some(clients) = load.clients.get_mut(contender)
            && std::mem::take(&mut clients.is_under_load)
            && is_awake
            && clients.of_start == server.starts
        {
            let breach = format!("the clients of `{contender}` were halted before it was frozen");
            world.breach(breach);
        }
    }

    fn take_commits(&mut self) -> Vec<CommitRange> {
        Vec::new()
    }

    fn sample_statements(
        &mut self,
        order: OpenOrder,
        slice: SliceOrder,
    ) -> Result<Vec<StatementExample>> {
        let contender = order.contender.clone();
        self.close(&contender)?;
        self.open(order)?;
        let end = self.slice(slice, &mut |_| {}, &mut |_| ControlFlow::Continue(()));
        self.close(&contender)?;
        if let SliceEnd::Lost { why, .. } = end {
            bail!("the sample was lost: {why}");
        }
        Ok(vec![StatementExample {
            class: "SELECT ?".to_owned(),
            id: None,
            number: None,
            text: Some("SELECT 1".to_owned()),
        }])
    }

    fn is_broken(&self) -> bool {
        self.failure.is_some()
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn hosts(&self) -> &[LoadHost] {
        &[]
    }

    fn round_trip_s(&self) -> f64 {
        self.world.0.borrow().round_trip_s
    }

    fn pid(&self, _contender: &str) -> Option<u32> {
        None
    }
}
