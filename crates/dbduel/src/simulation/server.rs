//! A simulated server: its data are a file of SQLite, so that they are loaded, kept and summed up as those of others are; that it
//! starts, freezes and dies is imagined.

use anyhow::{Result, bail};
use dbduel_driver::Credentials;
use dbduel_driver::address::Address;
use dbduel_lab::contest::ContestConfig;
use dbduel_lab::contest::backend::{Backend, Health, ServerTexts};
use dbduel_lab::contest::prepare::Content;
use dbduel_record::Record;
use dbduel_record::event::LoadTime;
use dbduel_record::facts::FileSizes;
use dbduel_record::plan::{Contender, Limits, Plan};
use dbduel_server::{Build, DatabaseFile};

use super::world::{ServerState, Shared, World};

/// How long a start takes, seconds.
const START_S: f64 = 0.3;

/// The server of one contender.
pub struct SimulatedServer {
    world: Shared,
    number: usize,
    /// Present until it is removed.
    file: Option<Box<DatabaseFile>>,
}

impl SimulatedServer {
    pub fn new(world: Shared, number: usize, file: DatabaseFile) -> Self {
        Self {
            world,
            number,
            file: Some(Box::new(file)),
        }
    }

    fn call(&self, what: &str) {
        self.world
            .call(|| format!("server {}: {what}", self.number));
    }

    fn with<T>(&self, act: impl FnOnce(&mut ServerState) -> T) -> T {
        act(&mut self.world.0.borrow_mut().servers[self.number])
    }

    fn file(&mut self) -> Result<&mut DatabaseFile> {
        match &mut self.file {
            Some(file) => Ok(file),
            None => bail!("its files are removed"),
        }
    }

    fn start(&self) -> Result<f64> {
        super::pass_s(START_S);
        let breach = self.with(|server| {
            let is_double = server.runs();
            server.is_started = true;
            server.is_frozen = false;
            server.died = None;
            server.leaves_connections = false;
            server.was_driven_dead = false;
            server.starts += 1;
            server.loaded_s = 0.0;
            is_double.then(|| format!("`{}` was started twice", server.name))
        });
        if let Some(breach) = breach {
            self.world.0.borrow_mut().breach(breach);
        }
        let refuses = self.with(|server| {
            let refuses = server.refusals > 0;
            server.refusals = server.refusals.saturating_sub(1);
            server.is_started = !refuses;
            refuses
        });
        if refuses {
            self.world.0.borrow_mut().had_effect = true;
            bail!("the server ended before it answered");
        }
        Ok(START_S)
    }
}

impl Drop for SimulatedServer {
    /// Ends a running server, as dropping a real one does; a killed process ends nothing.
    fn drop(&mut self) {
        let mut world = self.world.0.borrow_mut();
        if !world.is_killed() {
            let server = &mut world.servers[self.number];
            server.was_dropped |= server.runs();
            server.is_started = false;
        }
    }
}

impl Backend for SimulatedServer {
    fn start_on_data(
        &mut self,
        config: &ContestConfig<'_>,
        past: &Record,
        contender: &Contender,
    ) -> Result<Option<Content>> {
        self.call("start on data");
        let content = self.file()?.start_on_data(config, past, contender)?;
        self.start()?;
        Ok(content)
    }

    fn snapshot_key(&self, contender: &Contender, plan: &Plan) -> Option<String> {
        self.file.as_ref()?.snapshot_key(contender, plan)
    }

    fn keep_data(
        &mut self,
        config: &ContestConfig<'_>,
        contender: &Contender,
        load: LoadTime,
    ) -> Result<()> {
        self.call("keep data");
        self.with(|server| server.is_started = false);
        self.file()?.keep_data(config, contender, load)?;
        self.start().map(drop)
    }

    fn endpoint(&mut self) -> Result<(Address, Credentials)> {
        self.call("endpoint");
        let mut world = self.world.0.borrow_mut();
        let World {
            servers, breaches, ..
        } = &mut *world;
        let server = &servers[self.number];
        if server.is_frozen {
            let asked = format!("`{}` was asked while it was frozen", server.name);
            breaches.0.push(asked);
        }
        if !server.runs() {
            bail!("`{}` refuses the connection", server.name);
        }
        drop(world);
        self.file()?.endpoint()
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn build(&self) -> Option<&Build> {
        None
    }

    fn origin(&self) -> String {
        "simulated".to_owned()
    }

    fn ready_after_s(&self) -> Option<f64> {
        Some(START_S)
    }

    fn texts(&mut self) -> Result<Option<ServerTexts>> {
        self.call("texts");
        Ok(Some(ServerTexts {
            log: b"it runs\n".to_vec(),
            ..ServerTexts::default()
        }))
    }

    fn sizes(&mut self) -> Result<Option<FileSizes>> {
        self.call("sizes");
        self.file()?.sizes()
    }

    fn log_place(&self) -> Option<String> {
        None
    }

    fn freezes(&self) -> bool {
        true
    }

    fn is_started(&self) -> bool {
        self.with(|server| server.is_started)
    }

    fn health(&mut self) -> Health {
        self.call("health");
        self.with(|server| match &server.died {
            Some(how) => Health::Dead { how: how.clone() },
            None if !server.is_started => Health::Dead {
                how: "it was stopped".to_owned(),
            },
            None => Health::Alive,
        })
    }

    fn freeze(&mut self) -> Result<Health> {
        self.call("freeze");
        self.with(|server| server.is_frozen = server.runs());
        Ok(self.health())
    }

    fn thaw(&mut self) -> Result<Health> {
        self.call("thaw");
        self.with(|server| server.is_frozen = false);
        Ok(self.health())
    }

    fn stop(&mut self, _limits: &Limits) -> Result<()> {
        self.call("stop");
        self.with(|server| {
            server.is_started = false;
            server.is_frozen = false;
        });
        Ok(())
    }

    fn restart(&mut self, _limits: &Limits) -> Result<f64> {
        self.call("restart");
        self.start()
    }

    fn remove(mut self: Box<Self>) -> Result<()> {
        self.call("remove");
        match self.file.take() {
            Some(file) => file.remove(),
            None => Ok(()),
        }
    }
}
