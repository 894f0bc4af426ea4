//! Verbs that are given the address of a running PostgreSQL.

use std::process::Output;

use super::cluster::{Cluster, shared};
use crate::suite::lab::program;

/// The address of the socket, with the account of the tests.
fn socket(cluster: &Cluster) -> String {
    let (folder, port) = cluster.folder_and_port();
    format!("postgresql://tester@{}:{port}", folder.display())
}

fn run(words: &[&str]) -> Output {
    let mut command = program();
    command.args(words).env("PGPASSWORD", "secret");
    for variable in ["DBDUEL_PASSWORD", "MYSQL_PWD"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

const SMALL: [&str; 11] = [
    "--workload",
    "oltp-read-write",
    "--set",
    "tables=2",
    "table_size=500",
    "--clients",
    "3",
    "--duration",
    "1 s",
    "--warm-up",
    "0 s",
];

#[test]
fn a_running_server_is_loaded_over_its_socket_and_over_tcp() {
    let Some(cluster) = shared() else { return };
    let mut connection = cluster.connect("postgres").unwrap();
    connection
        .execute("DROP DATABASE IF EXISTS \"own \"\"name\"")
        .unwrap();
    let (_, port) = cluster.folder_and_port();
    let tcp = format!("postgresql://tester@127.0.0.1:{port}");
    for (server, tls, more) in [
        (&socket(&cluster), "off", "--prepare"),
        (&tcp, "required", "--cleanup"),
    ] {
        let words = [
            "load",
            "--server",
            server,
            "--tls",
            tls,
            "--database",
            "own \"name",
            "--json",
            more,
        ];
        let output = run(&[&words[..], &SMALL].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = document.to_string();
        assert!(text.contains("PostgreSQL 1"), "{text}");
        assert_eq!(document["tls"], tls == "required", "{text}");
        let ok = document
            .pointer("/total/ok")
            .and_then(serde_json::Value::as_u64);
        assert!(ok.is_some_and(|ok| ok > 0), "{text}");
    }
    let mut left = cluster.connect("own \"name").unwrap();
    let left = left
        .query("SELECT count(*) FROM pg_stat_user_tables")
        .unwrap();
    assert_eq!(left.text(0, 0).as_deref(), Some("0"));
    connection
        .execute("DROP DATABASE \"own \"\"name\" WITH (FORCE)")
        .unwrap();
}

#[test]
fn errors_are_named_by_their_sqlstate() {
    let Some(cluster) = shared() else { return };
    cluster.create_database("named");
    let mut connection = cluster.connect("named").unwrap();
    let server = socket(&cluster);
    let words = ["load", "--server", &server, "--database", "named"];
    let filled = run(&[&words[..], &SMALL, &["--prepare"]].concat());
    assert_eq!(filled.status.code(), Some(0), "{}", said(&filled));
    // Every transaction fails in its second statement that writes.
    connection
        .execute("ALTER TABLE sbtest1 ADD CHECK (c = '') NOT VALID")
        .unwrap();
    connection
        .execute("ALTER TABLE sbtest2 ADD CHECK (c = '') NOT VALID")
        .unwrap();
    let output = run(&[&words[..], &SMALL].concat());
    let text = said(&output);
    assert!(text.contains("× 23514: "), "{text}");
    let code = u32::from_str_radix("23514", 36).unwrap().to_string();
    assert!(!text.contains(&code), "{text}");
}

#[test]
fn a_check_asks_a_running_server() {
    let Some(cluster) = shared() else { return };
    let server = socket(&cluster);
    let words = [
        "--server",
        &server,
        "--database",
        "checked",
        "--workload",
        "order-entry",
        "--set",
        "warehouses=1",
    ];
    let loaded = run(&[
        &["load"],
        &words[..],
        &["--duration", "1 s", "--warm-up", "0 s", "--prepare"],
    ]
    .concat());
    assert_eq!(loaded.status.code(), Some(0), "{}", said(&loaded));
    let checked = run(&[&["check"], &words[..]].concat());
    assert_eq!(checked.status.code(), Some(0), "{}", said(&checked));
}

#[test]
fn two_addresses_are_audited() {
    let Some(cluster) = shared() else { return };
    let server = socket(&cluster);
    let output = run(&["audit", &server, &server]);
    let text = said(&output);
    assert!(
        text.contains("PostgreSQL 1") && text.contains("fair"),
        "{text}"
    );
    let refused = run(&["audit", "postgresql://anna:s3cret@db", &server]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(!said(&refused).contains("s3cret"));
}

#[test]
fn contenders_that_are_one_running_server_are_refused() {
    let Some(cluster) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (sockets, port) = cluster.folder_and_port();
    std::os::unix::fs::symlink(sockets, folder.path().join("other")).unwrap();
    let other = format!(
        "postgresql://tester@{}:{port}",
        folder.path().join("other").display()
    );
    let experiment = format!(
        "question = \"Is it one?\"\nhorizon = \"5 %\"\nbudget = \"1 min\"\n\
         [contenders.a]\nserver = \"{}\"\n[contenders.b]\nserver = \"{other}\"\n\
         [workload]\nname = \"oltp-point-select\"\ntable_size = 100\n[load]\nclients = [1]\n",
        socket(&cluster)
    );
    let path = folder.path().join("one.toml");
    std::fs::write(&path, experiment).unwrap();
    let results = folder.path().join("results");
    let words = [
        "run",
        path.to_str().unwrap(),
        "--results",
        results.to_str().unwrap(),
    ];
    let output = run(&words);
    let text = said(&output);
    assert!(text.contains("are the same running server"), "{text}");
}
