//! PostgreSQL, from 9.6 on.

mod configuration;
mod facts;
mod initialise;

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use dbduel_driver::Dialect;
use nix::sys::signal::Signal;

pub use facts::SETTINGS;

use super::{Build, FactQuery, Layout, Places, ReadBack, ServerProduct, Setting, Version, layout};

pub struct PostgreSql;

/// Settings that only `initdb` accepts. `wal_segment_size` is one of them from 11 on; before, it was a compile-time
/// constant.
const INIT_TIME: &[&str] = &["data_checksums", "wal_segment_size"];

impl ServerProduct for PostgreSql {
    fn name(&self) -> &'static str {
        "postgresql"
    }

    fn title(&self) -> &'static str {
        "PostgreSQL"
    }

    fn recognises(&self, version_text: &str) -> bool {
        self.version(version_text).is_some()
    }

    fn layout(&self) -> &'static Layout {
        &layout::POSTGRESQL
    }

    fn version(&self, said: &str) -> Option<Version> {
        // `postgres (PostgreSQL) 16.15`, and what `version()` says: `PostgreSQL 16.15 on x86_64-pc-linux-gnu, …`.
        let (_, rest) = said.split_once("PostgreSQL")?;
        let rest = rest.trim_start_matches(')').trim_start();
        // From 10 on a version has two numbers.
        Version::parse(rest)
    }

    fn initialise(
        &self,
        build: &Build,
        settings: &[Setting],
        data: &Path,
        staging: &Path,
    ) -> Result<()> {
        initialise::initialise(build, settings, data, staging)
    }

    fn init_time_settings(&self, version: Version) -> &'static [&'static str] {
        if version.at_least(11, 0) {
            INIT_TIME
        } else {
            &INIT_TIME[..1]
        }
    }

    fn configuration_name(&self) -> &'static str {
        "dbduel.conf"
    }

    fn configuration(&self, build: &Build, places: &Places<'_>, settings: &[Setting]) -> String {
        let at_init = self.init_time_settings(build.version);
        configuration::render(places, settings, at_init)
    }

    fn configuration_argument(&self, configuration: &Path) -> OsString {
        let mut argument = OsString::from("--config-file=");
        argument.push(configuration);
        argument
    }

    fn more_arguments(&self, data: &Path) -> Vec<OsString> {
        vec!["-D".into(), data.into()]
    }

    fn check_arguments(&self, _version: Version) -> &'static [&'static str] {
        // Reads the whole configuration to print one value of it.
        &["-C", "shared_buffers"]
    }

    fn socket_name(&self) -> &'static str {
        ".s.PGSQL.5432"
    }

    fn socket_name_at(&self, port: u16) -> String {
        format!(".s.PGSQL.{port}")
    }

    fn admit_clients(&self, version: Version, data: &Path) -> Result<()> {
        configuration::admit_clients(version, data)
    }

    fn stop_signals(&self) -> &'static [Signal] {
        // SIGTERM would wait until every client has gone.
        &[Signal::SIGINT, Signal::SIGQUIT]
    }

    fn refuses_root(&self) -> bool {
        true
    }

    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
    }

    fn read_back(&self, places: &Places<'_>) -> ReadBack {
        configuration::read_back(places)
    }

    fn needed_settings(&self, connections: u32) -> Vec<(&'static str, u32)> {
        vec![("max_connections", connections)]
    }

    fn paced_settings(&self, contenders: u32) -> Vec<(&'static str, u32)> {
        configuration::paced(contenders)
    }

    fn reserved(&self, name: &str, value: &str) -> Option<String> {
        configuration::reserved(name, value)
    }

    fn identity_files(&self) -> &'static [&'static str] {
        &["postmaster.opts", "postmaster.pid"]
    }

    fn lock_files(&self) -> &'static [&'static str] {
        &["postmaster.pid"]
    }

    fn fact_queries(&self, version: Version) -> Vec<FactQuery> {
        facts::queries(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_two_numbers_from_10_on() {
        for (said, version) in [
            ("postgres (PostgreSQL) 16.15\n", (16, 15, 0)),
            ("postgres (PostgreSQL) 9.6.24\n", (9, 6, 24)),
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n",
                (15, 18, 0),
            ),
            (
                "PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc",
                (18, 6, 0),
            ),
        ] {
            let expected = Version::new(version.0, version.1, version.2);
            assert_eq!(PostgreSql.version(said), Some(expected), "{said}");
        }
        assert_eq!(PostgreSql.version("postgres (PostgreSQL) 19beta1"), None);
        assert!(!PostgreSql.recognises("mysqld  Ver 8.0.33 for Linux"));
    }
}
