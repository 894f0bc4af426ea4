//! Disclosure checklist: facts that a reader of a result needs, and whether a record has them.
//!
//! It checks that they are present in the record, not their content.

mod machine;

use std::collections::BTreeSet;
use std::path::Path;

use dbduel_record::{Record, manifest, store};
use serde::{Deserialize, Serialize};

/// One item of the checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// Heading that it belongs to.
    pub section: String,
    /// The fact to disclose.
    pub item: String,
    /// True when the record has it.
    pub present: bool,
    /// Where the record has it, or would have it.
    pub place: String,
}

/// Files of a contender that PostgreSQL has no content for: its only engine reports by counters alone.
const NOT_OF_POSTGRESQL: &[&str] = &[
    "engines.tsv",
    "engine-status.before.txt",
    "engine-status.txt",
];

struct List<'a> {
    record: &'a Record,
    items: Vec<Item>,
}

/// The checklist of a record, in the order of the sections.
#[must_use]
pub fn checklist(record: &Record) -> Vec<Item> {
    let mut list = List {
        record,
        items: Vec::new(),
    };
    list.question();
    list.machine();
    list.server();
    list.data();
    list.workload();
    list.procedure();
    list.results();
    list.items
}

impl List<'_> {
    fn add(&mut self, section: &'static str, item: &'static str, present: bool, place: &str) {
        self.items.push(Item {
            section: section.to_owned(),
            item: item.to_owned(),
            present,
            place: place.to_owned(),
        });
    }

    fn has_file(&self, name: &str) -> bool {
        is_filled(&self.record.dir.join(name))
    }

    /// True when every contender has the file, except contenders whose product has no such file.
    fn all_have(&self, file: &str) -> bool {
        let contenders = self.record.plan.contenders.iter();
        let mut contenders = contenders.zip(&self.record.contenders);
        contenders.all(|(contender, files)| {
            let build = files.build.as_ref();
            let is_postgresql = build.is_some_and(|build| build.product == "PostgreSQL");
            (is_postgresql && NOT_OF_POSTGRESQL.contains(&file))
                || is_filled(&store::contender_dir(&self.record.dir, &contender.name).join(file))
        })
    }

    fn add_contender_file(&mut self, section: &'static str, item: &'static str, file: &str) {
        let present = self.all_have(file);
        self.add(section, item, present, &format!("contenders/NAME/{file}"));
    }

    fn question(&mut self) {
        let section = "question";
        let asked = !self.record.plan.question.trim().is_empty();
        self.add(section, "question of the experiment", asked, store::PLAN);
        let given = self.has_file(store::EXPERIMENT);
        self.add(
            section,
            "the original experiment file",
            given,
            store::EXPERIMENT,
        );
        let rule = &self.record.plan.decision;
        self.add(
            section,
            "horizon of equivalence, set before the run",
            rule.horizon > 0.0,
            store::PLAN,
        );
        self.add(
            section,
            "who ran it, and in whose interest",
            false,
            "not kept in records; state it beside the result",
        );
    }

    /// Adds an item that follows from the variables of every contender.
    fn add_derived(&mut self, section: &'static str, item: &'static str) {
        let present = self.all_have("variables.before.tsv");
        self.add(
            section,
            item,
            present,
            "the report, from variables.before.tsv",
        );
    }

    fn server(&mut self) {
        let section = "server";
        self.add_contender_file(
            section,
            "product, version and origin of the build",
            "build.json",
        );
        let has_digest = |files: &store::ContenderFiles| {
            files
                .build
                .as_ref()
                .is_some_and(|build| build.daemon_sha256.is_some())
        };
        let digests = self.record.contenders.iter().all(has_digest);
        self.add(
            section,
            "checksum of the server program",
            digests,
            "contenders/NAME/build.json",
        );
        self.add_contender_file(
            section,
            "compiler, libraries and start",
            "server-build.json",
        );
        self.add_contender_file(section, "plugins", "plugins.tsv");
        self.add_contender_file(section, "storage engines", "engines.tsv");
        let section = "configuration";
        self.add_contender_file(section, "option file", "server.cnf");
        self.add_contender_file(section, "who set each variable", "variable-origins.tsv");
        self.add_contender_file(
            section,
            "all effective variables before the run",
            "variables.before.tsv",
        );
        self.add_contender_file(
            section,
            "all effective variables after the run",
            "variables.after.tsv",
        );
        self.add_contender_file(section, "the server's own log", "server.log");
        self.add_derived(
            section,
            "what differs between the contenders, with both values",
        );
        self.add_derived("durability", "what a committed transaction survives");
    }

    fn data(&mut self) {
        let section = "data";
        self.add_contender_file(section, "definitions of the tables", "schema.sql");
        self.add_contender_file(
            section,
            "size on disk, as files and as allocated",
            "size.json",
        );
        let digests = self.contenders_with(|event| match event {
            dbduel_record::Event::DatasetReady {
                contender, digest, ..
            } if !digest.is_empty() => Some(contender),
            _ => None,
        });
        self.add(
            section,
            "digest of the content, equal on all sides",
            digests,
            store::EVENTS,
        );
        let memory = self.record.host.memory_bytes.is_some();
        let sizes = memory && self.all_have("size.json") && self.all_have("variables.before.tsv");
        self.add(
            section,
            "data against buffer pool and memory",
            sizes,
            "size.json, variables.before.tsv, host.json",
        );
        let loaded = self.contenders_with(|event| match event {
            dbduel_record::Event::DatasetReady { contender, .. } => Some(contender),
            _ => None,
        });
        self.add(
            section,
            "whether they were loaded or restored, and how long it took",
            loaded,
            store::EVENTS,
        );
    }

    fn workload(&mut self) {
        let section = "workload";
        let named = !self.record.plan.workload.name.is_empty();
        self.add(
            section,
            "generator, version and every parameter",
            named && !self.record.plan.dbduel.is_empty(),
            store::PLAN,
        );
        self.add(
            section,
            "clients and arrival",
            !self.record.plan.levels.is_empty(),
            store::PLAN,
        );
        let slices = &self.record.slices;
        self.add(
            section,
            "retries and errors counted",
            // Without any there is nothing to break down by code.
            self.has_file(store::ERRORS)
                || (!slices.is_empty() && slices.iter().all(|row| row.failed + row.retries == 0)),
            store::ERRORS,
        );
        self.add_contender_file(
            section,
            "the clients' sessions: isolation, character set, SQL mode",
            "session.tsv",
        );
        self.add_contender_file(
            section,
            "the clients' connections: transport, TLS, prepared statements",
            "connection.json",
        );
        let is_placed = self.record.plan.load.threads > 0;
        self.add(
            section,
            "where the clients run: processors of the load and of the servers",
            is_placed,
            store::PLAN,
        );
        let seeds = self.record.plan.seed != 0 || self.record.plan.dataset_seed != 0;
        self.add(section, "random seeds", seeds, store::PLAN);
    }

    fn procedure(&mut self) {
        let section = "procedure";
        self.add(
            section,
            "order of the slices and its randomisation",
            !self.record.plan.blocks.is_empty(),
            store::PLAN,
        );
        let warm = self.contenders_with(|event| match event {
            dbduel_record::Event::WarmedUp { contender, .. } => Some(contender),
            _ => None,
        });
        self.add(
            section,
            "length of warm-up and how its end was determined",
            warm,
            store::EVENTS,
        );
        self.add(
            section,
            "measured time of every slice",
            !self.record.slices.is_empty(),
            store::SLICES,
        );
        let repeats = self.record.finished_slices().count() > self.record.plan.contenders.len();
        self.add(section, "repeats", repeats, store::SLICES);
        self.add(
            section,
            "lost slices and why",
            !self.record.events.is_empty(),
            store::EVENTS,
        );
    }

    fn results(&mut self) {
        self.add(
            "procedure",
            "digests of all files, which reveal edits",
            self.record.manifest_digest.is_some(),
            manifest::MANIFEST,
        );
        let section = "results";
        self.add(
            section,
            "throughput over time",
            !self.record.ticks.is_empty(),
            store::TICKS,
        );
        self.add(
            section,
            "latency distributions, counted from when work was due",
            !self.record.latencies.is_empty(),
            store::LATENCY,
        );
        let section = "explanation";
        self.add_contender_file(
            section,
            "counters of the server before the run (SHOW GLOBAL STATUS, pg_stat_*)",
            "status.before.tsv",
        );
        self.add_contender_file(
            section,
            "counters of the server after the run (SHOW GLOBAL STATUS, pg_stat_*)",
            "status.after.tsv",
        );
        self.add_contender_file(
            section,
            "SHOW ENGINE INNODB STATUS before the run",
            "engine-status.before.txt",
        );
        self.add_contender_file(
            section,
            "SHOW ENGINE INNODB STATUS after the run",
            "engine-status.txt",
        );
        self.add(
            section,
            "processor, device and memory readings",
            !self.record.readings.is_empty(),
            store::READINGS,
        );
    }

    /// True when every contender has an event that `contender_of` recognises.
    fn contenders_with(&self, contender_of: fn(&dbduel_record::Event) -> Option<&String>) -> bool {
        let named: BTreeSet<&String> = self
            .record
            .events
            .iter()
            .filter_map(|event| contender_of(&event.what))
            .collect();
        self.record
            .plan
            .contenders
            .iter()
            .all(|contender| named.contains(&contender.name))
    }
}

/// A file that exists and is not empty.
fn is_filled(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|facts| facts.is_file() && facts.len() > 0)
}
