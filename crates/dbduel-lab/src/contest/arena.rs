//! The arena: every contender's server, of which at most one is awake.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use dbduel_driver::address::Address;
use dbduel_driver::session::Session;
use dbduel_driver::{Connection, TlsMode};
use dbduel_load::order::{OpenOrder, SliceOrder};
use dbduel_record::Plan;
use dbduel_record::statements::StatementExample;

use super::ContestConfig;
use super::backend::{ContenderServer, Health};
use super::load::Load;
use crate::server_host::ServerHostMissing;

/// All contenders, in the plan's order.
pub struct Arena {
    residents: Vec<ContenderServer>,
    awake: Option<usize>,
    /// Per contender: index of the plan's level whose clients are connected. Levels of one workload share their
    /// clients.
    connected_at: Vec<usize>,
}

impl Arena {
    /// An arena without contenders.
    pub fn empty() -> Self {
        Self {
            residents: Vec::new(),
            awake: None,
            connected_at: Vec::new(),
        }
    }

    /// Adds a contender whose server runs, and freezes it.
    ///
    /// # Errors
    /// When the server cannot be frozen.
    pub fn add(&mut self, mut resident: ContenderServer) -> Result<()> {
        resident.backend.freeze()?;
        self.residents.push(resident);
        self.connected_at.push(0);
        Ok(())
    }

    /// Wakes one contender and freezes the one that was awake. Returns whether its server was alive.
    ///
    /// # Errors
    /// When a server cannot be frozen or thawed.
    pub fn activate(&mut self, contender: usize) -> Result<Health> {
        if self.awake == Some(contender) {
            return Ok(Health::Alive);
        }
        self.freeze_active()?;
        let health = self.residents[contender].backend.thaw()?;
        self.awake = Some(contender);
        Ok(health)
    }

    /// Freezes the active contender, so that none gains from a pause between slices. Returns whether its server was
    /// alive.
    ///
    /// # Errors
    /// When the server cannot be frozen.
    pub fn freeze_active(&mut self) -> Result<Health> {
        match self.awake.take() {
            Some(awake) => self.residents[awake].backend.freeze(),
            None => Ok(Health::Alive),
        }
    }

    /// Whether the contender's server still runs.
    pub fn health(&mut self, contender: usize) -> Health {
        self.residents[contender].backend.health()
    }

    /// Shuts a server down, starts it again and freezes it.
    ///
    /// # Errors
    /// When it cannot be stopped, does not start, or is not ours.
    pub fn start_anew(&mut self, contender: usize, plan: &Plan) -> Result<()> {
        self.stop(contender, plan)?;
        let resident = &mut self.residents[contender];
        resident.restart(&plan.limits)?;
        resident.backend.freeze().map(drop)
    }

    /// Stops a server cleanly, restores its data from their snapshot, starts it and freezes it.
    ///
    /// # Errors
    /// When it cannot be stopped, has no snapshot, or does not start.
    pub fn start_on_snapshot(
        &mut self,
        contender: usize,
        config: &ContestConfig<'_>,
    ) -> Result<()> {
        let plan = &config.plan;
        self.stop(contender, plan)?;
        let resident = &mut self.residents[contender];
        resident
            .backend
            .restore(config, &plan.contenders[contender])?;
        resident.backend.freeze().map(drop)
    }

    /// Stops a server cleanly.
    fn stop(&mut self, contender: usize, plan: &Plan) -> Result<()> {
        if self.awake == Some(contender) {
            self.awake = None;
        }
        let resident = &mut self.residents[contender];
        resident.backend.thaw()?;
        match resident.backend.stop(&plan.limits) {
            // It is waited for when the server is started.
            Err(error) if error.is::<ServerHostMissing>() => Ok(()),
            stopped => stopped,
        }
    }

    /// Starts a dead server again; returns the seconds until it answered, crash recovery included.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&mut self, contender: usize, plan: &Plan) -> Result<f64> {
        self.residents[contender].restart(&plan.limits)
    }

    /// Connects every contender's clients, each while its server is awake. Returns the session facts that the servers
    /// report, in plan order.
    ///
    /// # Errors
    /// When a server refuses the clients' connections.
    pub fn connect_clients(
        &mut self,
        plan: &Plan,
        load: &mut dyn Load,
    ) -> Result<Vec<(Address, Session)>> {
        let mut sessions = Vec::new();
        for contender in 0..self.residents.len() {
            self.activate(contender)?;
            sessions.push(self.open(plan, load, contender)?);
        }
        self.freeze_active()?;
        Ok(sessions)
    }

    /// A connection to an awake contender for the lab's own queries.
    ///
    /// # Errors
    /// When the server refuses the connection.
    pub fn connect(&mut self, contender: usize, statement: Duration) -> Result<Connection> {
        self.residents[contender].connect(statement)
    }

    /// Connects the clients of a level to an awake contender that has those of another level, which happens in suites.
    /// Each contender's first turn of a block follows.
    ///
    /// # Errors
    /// When its server refuses the clients' connections.
    pub fn connect_at(
        &mut self,
        plan: &Plan,
        load: &mut dyn Load,
        contender: usize,
        level: usize,
    ) -> Result<()> {
        if plan.suite.is_none() || self.connected_at[contender] == level {
            return Ok(());
        }
        self.connected_at[contender] = level;
        self.reconnect_clients(plan, load, contender)
    }

    /// Reconnects the clients of an awake contender.
    ///
    /// # Errors
    /// When its server refuses the clients' connections.
    pub fn reconnect_clients(
        &mut self,
        plan: &Plan,
        load: &mut dyn Load,
        contender: usize,
    ) -> Result<()> {
        load.close(&self.residents[contender].name)?;
        self.open(plan, load, contender).map(|_| ())
    }

    /// Returns one statement of each class that the clients of a level send to an awake contender within a slice.
    /// Closes its clients; they must be connected again at this level.
    ///
    /// # Errors
    /// When its server refuses the clients' connections, or the slice is lost.
    pub fn sample_statements(
        &mut self,
        plan: &Plan,
        load: &mut dyn Load,
        contender: usize,
        level: usize,
        slice: SliceOrder,
    ) -> Result<Vec<StatementExample>> {
        self.connected_at[contender] = level;
        let order = OpenOrder {
            clients: slice.clients,
            ..self.open_order(plan, contender)?
        };
        load.sample_statements(order, slice)
    }

    fn open(
        &mut self,
        plan: &Plan,
        load: &mut dyn Load,
        contender: usize,
    ) -> Result<(Address, Session)> {
        let order = self.open_order(plan, contender)?;
        let address = order.address.clone();
        let session = load.open(order)?;
        // New connections have no packets that were lost.
        self.residents[contender].backend.forget_silence();
        Ok((address, session))
    }

    fn open_order(&mut self, plan: &Plan, contender: usize) -> Result<OpenOrder> {
        let level = self.connected_at[contender];
        let resident = &mut self.residents[contender];
        let (_, credentials) = resident.backend.endpoint()?;
        let address = resident.backend.client_address()?;
        let planned = plan.workload_at(level, &plan.contenders[contender]);
        let own_data = dbduel_workloads::find(&planned.name)?.own_data();
        let credentials =
            own_data.map_or_else(|| credentials.clone(), |own| own.account(&credentials));
        Ok(OpenOrder {
            dialect: resident.dialect,
            contender: resident.name.clone(),
            address,
            user: credentials.user,
            password: credentials.password,
            tls: TlsMode::Off,
            database: resident.database.clone(),
            workload: planned,
            clients: plan.connections_at(level),
            retries: plan.limits.transaction_retries,
            connect_s: plan.limits.server_start_s,
        })
    }

    /// The server of a contender.
    pub fn resident(&mut self, contender: usize) -> &mut ContenderServer {
        &mut self.residents[contender]
    }

    /// Process ID of the contender's server, when it is ours.
    pub fn pid(&self, contender: usize) -> Option<u32> {
        self.residents[contender].backend.pid()
    }

    /// The end of a message about the contender: where its server writes its log; empty without a log.
    pub fn log_hint(&self, contender: usize) -> String {
        let place = self.residents[contender].backend.log_place();
        place.map_or_else(String::new, |place| format!("; its log is {place}"))
    }

    /// Freezes the active contender and returns all servers.
    ///
    /// # Errors
    /// When the server cannot be frozen.
    pub fn into_residents(mut self) -> Result<Vec<ContenderServer>> {
        self.freeze_active()?;
        Ok(self.residents)
    }
}

/// The folder name that all sandboxes of one record share.
pub fn run_name(config: &ContestConfig<'_>) -> String {
    let path = std::path::absolute(config.record).unwrap_or_else(|_| PathBuf::from(config.record));
    let digest = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    format!("run-{}", &digest[..12])
}
