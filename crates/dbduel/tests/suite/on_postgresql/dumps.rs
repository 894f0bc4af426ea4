//! What pg_dump writes, loaded into PostgreSQL.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dbduel_driver::address::Address;
use dbduel_driver::{Dialect, TlsMode};
use dbduel_workloads::fill::{FillWatch, Place, clear, digest};
use dbduel_workloads::find;

use super::cluster::{Cluster, shared};
use crate::suite::harness::skip;
use crate::suite::on_server::dumps::{as_owner, filled, rows, with_dump};

/// What an application makes: a role, a schema of its own, types, rows with every kind of separator, a routine, a view.
const APPLICATION: &[&str] = &[
    "CREATE SCHEMA stock",
    "CREATE EXTENSION hstore",
    "CREATE TYPE mood AS ENUM ('good', 'bad;')",
    "CREATE TABLE item (id serial PRIMARY KEY, name text, mood mood, picture bytea, made timestamptz, tags hstore)",
    r"INSERT INTO item (name, mood, picture, made, tags) VALUES (E'tab\there\nline \\ ; \\.', 'good', '\x00ff27', '2026-11-28 12:00:00+00', 'a=>1')",
    "INSERT INTO item (name) VALUES (NULL), (''), (E'\\\\.'), ('ä')",
    "CREATE TABLE stock.amount (item int REFERENCES item (id), amount numeric(8,2))",
    "INSERT INTO stock.amount VALUES (1, 1.50)",
    "CREATE INDEX item_name ON item (lower(name)) WHERE name IS NOT NULL",
    "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.name := 'it''s; $$'; RETURN NEW; END; $f$",
    "CREATE TRIGGER item_touch BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION touch()",
    "CREATE VIEW named AS SELECT id FROM item WHERE name IS NOT NULL",
    "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS rows FROM item",
    "COMMENT ON TABLE item IS 'things; here'",
    "GRANT SELECT ON item TO PUBLIC",
    "ALTER TABLE item ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY all_rows ON item USING (true)",
];

/// A dump of a database by the installed pg_dump.
pub fn dumped(cluster: &Cluster, database: &str, options: &[&str], path: &Path) -> bool {
    let Address::Unix { path: socket } = cluster.address() else {
        panic!("the cluster has a socket")
    };
    let name = socket.display().to_string();
    let port = name.rsplit('.').next().unwrap();
    let made = Command::new("pg_dump")
        .args(options)
        .arg("-h")
        .arg(socket.parent().unwrap())
        .args(["-p", port, "-U", "tester", "-f"])
        .arg(path)
        .arg(database)
        .env("PGPASSWORD", "secret")
        .output();
    let Ok(made) = made else {
        skip("no pg_dump here; `apt install postgresql-client` brings one");
        return false;
    };
    assert!(made.status.success(), "{made:?}");
    true
}

pub fn place<'a>(
    address: &'a Address,
    credentials: &'a dbduel_driver::Credentials,
    database: &'a str,
) -> Place<'a> {
    Place {
        dialect: Dialect::PostgreSql,
        address,
        credentials,
        tls: &TlsMode::Off,
        database,
        connections: 1,
        deadline: Duration::from_secs(120),
    }
}

#[test]
fn what_pg_dump_writes_is_loaded() {
    let Some(cluster) = shared() else { return };
    cluster.create_database("dump_source");
    let mut source = cluster.connect("dump_source").unwrap();
    for sql in APPLICATION {
        source.execute(sql).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let (address, credentials) = (cluster.address(), cluster.credentials());
    let questions = [
        "SELECT id, name, mood, picture, made, tags FROM public.item ORDER BY id",
        "SELECT * FROM stock.amount",
        "SELECT * FROM public.named ORDER BY id",
        "SELECT * FROM public.counted",
        "SELECT last_value FROM public.item_id_seq",
        "SELECT indexname FROM pg_indexes WHERE schemaname IN ('public', 'stock') ORDER BY 1",
    ];
    let workload = find("captured").unwrap();
    for (options, name) in [
        (&["-Fp"][..], "plain.sql"),
        (&["-Fp", "-Z", "6"], "plain.sql.gz"),
        (&["-Fp", "--inserts", "-C"], "inserts.sql"),
        (&["-Fc"], "custom.dump"),
        (&["-Ft"], "archive.tar"),
    ] {
        let path: PathBuf = folder.path().join(name);
        if !dumped(&cluster, "dump_source", options, &path) {
            return;
        }
        cluster.create_database("dump_target");
        let place = place(&address, &credentials, "dump_target");
        let report = filled(&path, &place).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(report.rows, 6, "{name}");
        let has = |rule: &str| report.remarks.iter().any(|remark| remark.contains(rule));
        assert!(
            has("[owner]") && has("[accounts]") && has("[row-security]"),
            "{name}"
        );
        assert_eq!(has("[database]"), name == "inserts.sql");
        let mut target = as_owner(&place);
        for sql in questions {
            assert_eq!(
                rows(&mut target, sql),
                rows(&mut source, sql),
                "{name}: {sql}"
            );
        }
        target
            .execute("UPDATE public.item SET id = 90 WHERE id = 3")
            .unwrap();
        let touched = rows(&mut target, "SELECT name FROM public.item WHERE id = 90");
        assert_eq!(touched, ["it's; $$"]);
        for sql in [
            "SELECT pg_read_file('/etc/passwd')",
            "COPY public.item TO PROGRAM 'true'",
            "COPY public.item FROM '/etc/passwd'",
            "CREATE ROLE x",
            "CREATE DATABASE x",
            "ALTER SYSTEM SET work_mem = '5MB'",
        ] {
            let error = target.execute(sql).unwrap_err();
            assert!(error.code().is_some(), "{sql}: {error}");
        }
        let parameters = with_dump(&path);
        digest(workload, &parameters, &place, &FillWatch::default()).unwrap();
        drop(target);
        clear(workload, &parameters, &place, &FillWatch::default()).unwrap();
        let mut empty = cluster.connect("dump_target").unwrap();
        assert_eq!(
            rows(
                &mut empty,
                "SELECT tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information_)'"
            ),
            [""; 0]
        );
    }
}

#[test]
fn a_dump_that_is_cut_off_says_where() {
    let Some(cluster) = shared() else { return };
    cluster.create_database("dump_cut");
    let (address, credentials) = (cluster.address(), cluster.credentials());
    let place = place(&address, &credentials, "dump_cut");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.sql");
    let dump =
        "-- PostgreSQL database dump\nCREATE TABLE t (a int);\nCOPY t (a) FROM stdin;\n1\n2\n";
    std::fs::write(&path, dump).unwrap();
    let error = filled(&path, &place).unwrap_err();
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert!(
        source.is_some_and(|text| text.contains("cut off")),
        "{error:?}"
    );
    std::fs::write(&path, dump.replace("1\n2\n", "1\nx\n\\.\n")).unwrap();
    clear(
        find("captured").unwrap(),
        &with_dump(&path),
        &place,
        &FillWatch::default(),
    )
    .unwrap();
    let text = filled(&path, &place).unwrap_err().to_string();
    assert!(
        text.contains("cut.sql`:3:1:") && text.contains("22P02"),
        "{text}"
    );
}
