//! Cost of the load process alone: the same workload against a server that answers at once.

use anyhow::{Context as _, Result, anyhow, bail};
use dbduel_driver::TlsMode;
use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_lab::drive::{LoadProcess, SliceEnd};
use dbduel_load::order::{OpenOrder, SliceOrder};
use dbduel_machine::interrupt;
use dbduel_record::facts::NullCost;
use dbduel_record::plan::{Arrival, LoadProcess as LoadPlan, Parameters, Workload};
use dbduel_record::rows::ALL_CLASSES;
use dbduel_stats::mean::series_mean;
use dbduel_workloads::parameters;

use super::duel::Match;

/// Name of the null server in orders to the load process.
const NAME: &str = "null";
/// Slices that are measured, and the length of each, seconds.
const SLICES: usize = 6;
const SLICE_S: f64 = 1.0;
/// Probability that the interval is wrong.
const ALPHA: f64 = 0.05;

/// Measures.
///
/// # Errors
/// When the mock server or the load process cannot be started, or a slice is lost.
pub fn measure(set: &Match) -> Result<NullCost> {
    let folder = std::env::temp_dir().join(format!("dbduel-null-{}", std::process::id()));
    std::fs::create_dir(&folder)
        .with_context(|| format!("could not create `{}`", folder.display()))?;
    let measured = against(set, &folder.join("socket"));
    // The socket went with the mock server.
    let _ = std::fs::remove_dir(&folder);
    measured
}

fn against(set: &Match, socket: &std::path::Path) -> Result<NullCost> {
    let mock = MockServer::start(socket, Role::Null)
        .with_context(|| format!("could not listen on `{}`", socket.display()))?;
    let workload = dbduel_workloads::find(&set.workload)?;
    let complete = parameters::resolve(workload, &Parameters::new())?;
    let mut load = LoadProcess::start(&LoadPlan {
        threads: 1,
        busy_poll_us: 0,
        cores: Vec::new(),
        server_cores: Vec::new(),
        server_io: None,
    })?;
    load.open(OpenOrder {
        dialect: dbduel_driver::Dialect::MySql,
        contender: NAME.to_owned(),
        address: mock.address(),
        user: "null".to_owned(),
        password: String::new(),
        tls: TlsMode::Off,
        database: "null".to_owned(),
        workload: Workload {
            name: workload.name().to_owned(),
            parameters: complete,
        },
        clients: set.clients,
        retries: 0,
        connect_s: 30.0,
    })?;
    let (mut cpu_us, mut rate) = (Vec::new(), 0.0);
    for number in 0..SLICES {
        interrupt::check()?;
        let order = SliceOrder {
            contender: NAME.to_owned(),
            clients: set.clients,
            arrival: Arrival::Closed { think_ms: 0.0 },
            guard_s: 0.2,
            measured_s: SLICE_S,
            tick_s: SLICE_S,
            drain_s: 5.0,
            until_halted: false,
            quantum: None,
            seed: number as u64,
        };
        let answer = match load.slice(order, |_| {}, |_| std::ops::ControlFlow::Continue(())) {
            SliceEnd::Finished(answer) => answer,
            SliceEnd::Lost { why, .. } => bail!("the null server lost a slice: {why}"),
        };
        let (total, _) = answer.total(ALL_CLASSES).map_err(|why| anyhow!(why))?;
        if total.counts.ok == 0 {
            bail!(
                "`{}` commits nothing on the null server; choose another --workload",
                set.workload
            );
        }
        cpu_us.push(1e6 * (answer.cpu_user_s + answer.cpu_system_s) / total.counts.ok as f64);
        rate += total.counts.ok as f64 / answer.measured_s / SLICES as f64;
    }
    let cost = series_mean(&cpu_us, ALPHA)?;
    Ok(NullCost {
        transactions_per_s: rate,
        client_cpu_us_per_transaction: cost.value,
        low_us: cost.low.max(0.0),
        high_us: cost.high,
        slices: SLICES as u32,
    })
}
