//! `dbduel sysbench --db-driver=pgsql` beside sysbench itself: tables, counts, text and exit codes.

use std::path::Path;
use std::process::Output;

use dbduel_driver::Connection;

use super::cluster::{Cluster, shared};
use crate::suite::on_server::script_server::stock_scripts;
use crate::suite::sysbench::native::NATIVES;
use crate::suite::sysbench::{figure, ours, same_shape, text, theirs};

/// A database of its own, and what both programs are told to reach it.
pub struct Reached {
    pub folder: tempfile::TempDir,
    login: Vec<String>,
    connection: Connection,
}

impl Reached {
    pub fn create(cluster: &Cluster, name: &str) -> Self {
        cluster.create_database(name);
        let (folder, port) = cluster.folder_and_port();
        Reached {
            folder: tempfile::tempdir().unwrap(),
            login: vec![
                "--db-driver=pgsql".to_owned(),
                format!("--pgsql-host={}", folder.display()),
                format!("--pgsql-port={port}"),
                "--pgsql-user=tester".to_owned(),
                "--pgsql-password=secret".to_owned(),
                format!("--pgsql-db={name}"),
            ],
            connection: cluster.connect(name).unwrap(),
        }
    }

    fn with<T>(&self, test: &str, more: &str, run: impl Fn(&Path, &[&str]) -> T) -> T {
        let login = self.login.iter().map(String::as_str);
        let words: Vec<&str> = std::iter::once(test)
            .chain(login)
            .chain(more.split(' '))
            .collect();
        run(self.folder.path(), &words)
    }

    pub fn mine(&self, test: &str, more: &str) -> Output {
        self.with(test, more, ours)
    }

    pub fn theirs(&self, test: &str, more: &str) -> Option<Output> {
        self.with(test, more, theirs)
    }

    /// By both, with the same lines and the same exit code; returns ours.
    #[track_caller]
    pub fn same(&self, test: &str, more: &str) -> Output {
        self.with(test, more, same_shape)
    }

    #[track_caller]
    fn done(&self, test: &str, more: &str) -> Output {
        let output = self.mine(test, more);
        assert_eq!(output.status.code(), Some(0), "{test} {more}: {output:?}");
        output
    }

    /// The first value of the answer.
    pub fn value(&mut self, sql: &str) -> String {
        let answer = self.connection.query(sql).unwrap();
        answer.text(0, 0).unwrap_or_default()
    }

    /// Columns, indexes and rows of all tables.
    fn contents(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for sql in [
            "SELECT format('%s.%s %s %s %s %s', table_name, column_name, data_type, character_maximum_length, is_nullable, column_default) \
             FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1",
            "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        ] {
            let answer = self.connection.query(sql).unwrap();
            lines.extend((0..answer.rows.len()).map(|row| answer.text(row, 0).unwrap()));
        }
        let sequences = "SELECT sequencename FROM pg_sequences ORDER BY 1";
        let sequences = self.connection.query(sequences).unwrap();
        for row in 0..sequences.rows.len() {
            let sequence = sequences.text(row, 0).unwrap();
            let next = format!("SELECT last_value + is_called::integer FROM {sequence}");
            lines.push(format!("{sequence} continues at {}", self.value(&next)));
        }
        let tables = "SELECT relname FROM pg_stat_user_tables ORDER BY 1";
        let tables = self.connection.query(tables).unwrap();
        for row in 0..tables.rows.len() {
            let table = tables.text(row, 0).unwrap();
            let sums = self.value(&format!(
                "SELECT format('%s rows, %s, %s, %s, %s', count(*), sum(id), sum(length(c::text) + length(pad::text)), \
                 min(k) >= 1, max(k) <= 500) FROM {table}"
            ));
            lines.push(format!("{table}: {sums}"));
        }
        lines
    }
}

/// The counts of a run: reads, writes, others, and the events with them.
#[track_caller]
fn counts(output: &Output) -> [f64; 4] {
    ["read:", "write:", "other:", "transactions:"].map(|label| figure(output, label))
}

#[test(lab)]
fn built_in_tests_do_what_sysbench_does() {
    let Some(cluster) = shared() else { return };
    let mut reached = Reached::create(&cluster, "builtin");
    let sizes = "--table-size=500 --time=0 --events=100";
    for (test, reads, writes, others) in NATIVES {
        reached.done(test, &format!("{sizes} prepare"));
        let made = reached.contents();
        for mode in ["auto", "disable"] {
            let output = reached.same(test, &format!("{sizes} --db-ps-mode={mode} run"));
            let expected = [reads, writes, others, 100].map(|count| count as f64);
            assert_eq!(counts(&output), expected, "{test} {mode}");
        }
        reached.same(test, &format!("{sizes} cleanup"));
        assert_eq!(reached.contents(), [""; 0], "{test}");
        if let Some(output) = reached.theirs(test, &format!("{sizes} prepare")) {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert_eq!(made, reached.contents(), "{test}");
            reached.done(test, &format!("{sizes} cleanup"));
        }
    }
    reached.done("oltp_delete", &format!("{sizes} prepare"));
    let output = reached.same("oltp_delete", &format!("{sizes} --threads=2 run"));
    let [reads, writes, others, _] = counts(&output);
    assert_eq!((reads, writes + others), (0.0, 100.0));
    let deleted = 500
        - reached
            .value("SELECT count(*) FROM sbtest1")
            .parse::<i32>()
            .unwrap();
    assert!(
        deleted >= writes as i32,
        "{deleted} rows gone, {writes} writes"
    );
    reached.same("oltp_delete", &format!("{sizes} cleanup"));
}

#[test(lab)]
fn rows_in_bulk_and_tables_without_a_key_or_numbers_of_the_server_work() {
    let Some(cluster) = shared() else { return };
    let mut reached = Reached::create(&cluster, "bulk");
    reached.same("bulk_insert", "--threads=2 prepare");
    reached.done("bulk_insert", "--threads=2 cleanup");
    reached.done("bulk_insert", "--threads=2 prepare");
    let output = reached.done("bulk_insert", "--threads=2 --events=50000 --time=0 run");
    assert_eq!(figure(&output, "transactions:"), 50_000.0);
    let rows = "SELECT (SELECT count(*) FROM sbtest1) + (SELECT count(*) FROM sbtest2)";
    assert_eq!(reached.value(rows), "50000");
    reached.done("bulk_insert", "--threads=2 cleanup");
    let run = "--table-size=300 --time=0 --events=50";
    for more in ["--auto-inc=off", "--secondary=on"] {
        for test in ["oltp_insert", "oltp_read_write"] {
            reached.done(test, &format!("{run} {more} prepare"));
            let output = reached.done(test, &format!("{run} {more} run"));
            assert_eq!(figure(&output, "transactions:"), 50.0, "{more}");
            reached.done(test, &format!("{run} cleanup"));
        }
    }
    let refused = reached.mine("oltp_read_only", "prewarm");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("prewarm is currently MySQL only"));
    if let Some(other) = reached.theirs("oltp_read_only", "prewarm") {
        assert_eq!(other.status.code(), Some(1));
        assert!(text(&other).contains("prewarm is currently MySQL only"));
    }
}

/// The installed scripts, each prepared, run and cleaned up by both programs as they are.
#[test(lab)]
fn stock_scripts_as_lua_do_what_they_do_in_sysbench() {
    let Some(cluster) = shared() else { return };
    let mut reached = Reached::create(&cluster, "stocklua");
    for name in stock_scripts() {
        let script = format!("/usr/share/sysbench/{name}.lua");
        let tables = if name.starts_with("select_random") {
            1
        } else {
            3
        };
        let options = match name.as_str() {
            "bulk_insert" => "--threads=4 --time=0 --events=100".to_owned(),
            _ => format!("--threads=4 --time=0 --events=100 --table-size=500 --tables={tables}"),
        };
        reached.done(&script, &format!("{options} prepare"));
        let made = (name != "bulk_insert").then(|| reached.contents());
        if name == "bulk_insert" {
            let output = reached.done(&script, &format!("{options} run"));
            assert_eq!(figure(&output, "transactions:"), 100.0);
            assert_eq!(figure(&output, "read:"), 0.0);
            reached.same(&script, &format!("{options} cleanup"));
            continue;
        }
        for mode in ["auto", "disable"] {
            let words = format!("{options} --db-ps-mode={mode} run");
            let mine = reached.done(&script, &words);
            let Some(other) = reached.theirs(&script, &words) else {
                return;
            };
            let total = |output: &Output| figure(output, "total:");
            let errors = |output: &Output| figure(output, "ignored errors:");
            if errors(&mine) + errors(&other) > 0.0 {
                // Events that met a conflict ran more statements.
                continue;
            }
            let ([reads, writes, ..], [their_reads, their_writes, ..]) =
                (counts(&mine), counts(&other));
            assert_eq!(total(&mine), total(&other), "{name} {mode}");
            assert_eq!(reads, their_reads, "{name} {mode}");
            // Which deletes find their row is up to chance, and so is whether an update meets a row that another thread deletes.
            let by_chance = match name.as_str() {
                "oltp_delete" => 40.0,
                "oltp_read_write" | "oltp_write_only" => 8.0,
                _ => 0.0,
            };
            let apart = (writes - their_writes).abs();
            assert!(
                apart <= by_chance,
                "{name} {mode}: {writes} and {their_writes}"
            );
        }
        reached.done(&script, &format!("{options} cleanup"));
        assert_eq!(reached.contents(), [""; 0], "{name}");
        if let Some(output) = reached.theirs(&script, &format!("{options} prepare")) {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert_eq!(made, Some(reached.contents()), "{name}");
            reached.done(&script, &format!("{options} cleanup"));
        }
    }
}
