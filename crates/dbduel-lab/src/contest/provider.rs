//! Source of a contest's load and servers: real machines, or in tests a simulation.

use std::fmt::Debug;

use anyhow::Result;
use dbduel_driver::Dialect;
use dbduel_load::locked_memory::keep_in_memory;
use dbduel_record::event::Notice;
use dbduel_server::{Meaning, ServerName};

use super::ContestConfig;
use super::backend::{ContenderServer, Sandboxed, in_process, remote, sandboxed};
use super::load::Load;
use crate::load_processes::LoadProcesses;
use crate::server_host::ServerHosts;

/// Provides a contest's load and servers.
pub trait Provider: Debug {
    /// Starts the load that the plan asks for.
    ///
    /// # Errors
    /// When a load host refuses or fails, or this program cannot be executed again.
    fn load(&self, config: &ContestConfig<'_>) -> Result<Box<dyn Load>>;

    /// Prepares the sandbox of a contender's server, which does not run yet, and checks its settings; also returns the
    /// server's remarks on them. `number` is the contender's index in the plan.
    ///
    /// # Errors
    /// When it cannot be fetched or refuses a setting.
    fn server(
        &self,
        config: &ContestConfig<'_>,
        hosts: &ServerHosts,
        number: usize,
    ) -> Result<(ContenderServer, Vec<Notice>)>;

    /// True when there are processes for samplers to watch.
    fn has_processes(&self) -> bool;
}

/// This machine, and the hosts of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Machines;

impl Provider for Machines {
    fn load(&self, config: &ContestConfig<'_>) -> Result<Box<dyn Load>> {
        keep_in_memory();
        let load = LoadProcesses::start(&config.plan, config.host_access, &config.contest())?;
        Ok(Box::new(load))
    }

    fn server(
        &self,
        config: &ContestConfig<'_>,
        hosts: &ServerHosts,
        number: usize,
    ) -> Result<(ContenderServer, Vec<Notice>)> {
        let contender = &config.plan.contenders[number];
        let name = ServerName::parse(&contender.server)?;
        if matches!(name.meaning, Meaning::InProcess) {
            let file = Box::new(in_process::create(config, number, contender)?);
            let resident = ContenderServer::of_ours(contender, Dialect::Sqlite, file);
            return Ok((resident, Vec::new()));
        }
        if contender.host.is_some() {
            let (server, remarks) = remote::create(config, hosts, number, contender)?;
            let dialect = server.prepared_build().product()?.dialect();
            let resident = ContenderServer::of_ours(contender, dialect, Box::new(server));
            return Ok((resident, remarks));
        }
        let (sandbox, remarks) = sandboxed::create(config, number, contender, &name)?;
        let dialect = sandbox.build().product()?.dialect();
        let own = Box::new(Sandboxed::new(sandbox));
        Ok((ContenderServer::of_ours(contender, dialect, own), remarks))
    }

    fn has_processes(&self) -> bool {
        true
    }
}
