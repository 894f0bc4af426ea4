//! A real application: captured, dumped, and run in a duel.

use std::path::Path;
use std::process::Command;

use super::bare_server::{BareServer, free_port};
use super::harness::skip_always;
use super::lab::{Lab, program, published};

/// Programs that the script needs.
const PROGRAMS: [&str; 6] = ["php", "mariadb", "mariadb-dump", "curl", "apt-get", "dpkg"];
/// Values that the application stores: none of them may be in a record.
const VALUES: [&str; 4] = ["grows in rows", "a@example.org", "Remark", "capture-admin"];

/// Requests, dump and general log of WordPress on a private server.
fn capture_wordpress(directory: &Path) {
    let server = BareServer::start("mariadb-10.11");
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/applications/wordpress.sh");
    let output = Command::new("bash")
        .arg(script)
        .arg(server.socket())
        .arg(directory)
        .arg("20")
        .env("PORT", free_port().to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let import = program()
        .args(["capture", "import"])
        .arg(directory.join("general.log"))
        .arg("-o")
        .arg(directory.join("shop.cap"))
        .output()
        .unwrap();
    assert!(import.status.success(), "{import:?}");
}

/// Files below a directory that contain one of the values.
fn files_with_values(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_with_values(&path, found);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for value in VALUES {
            let has = bytes
                .windows(value.len())
                .any(|part| part == value.as_bytes());
            if has {
                found.push(format!("{}: {value}", path.display()));
            }
        }
    }
}

#[test(lab, needs = &["mariadb-10.11", "mariadb-11.8"])]
fn wordpress_is_captured_and_its_transactions_run_in_a_duel() {
    let on_path = |name: &&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    if let Some(missing) = PROGRAMS.iter().find(|name| !on_path(name)) {
        return skip_always(&format!("there is no program `{missing}` on this machine"));
    }
    let work = tempfile::tempdir().unwrap();
    capture_wordpress(work.path());
    let lab = Lab::new(&format!(
        "budget = \"20 s\"\nhorizon = \"25 %\"\n\
         [contenders.old]\nserver = \"mariadb-10.11\"\nsettings = {{ innodb_buffer_pool_size = \"64M\" }}\n\
         [contenders.new]\nserver = \"mariadb-11.8\"\nsettings = {{ innodb_buffer_pool_size = \"64M\" }}\n\
         [workload]\nname = \"captured\"\ncapture = \"{0}/shop.cap\"\n[data]\ndump = \"{0}/shop.sql\"\n\
         [load]\nclients = 4\n[schedule]\nslice = \"500 ms\"\nwarm_up = \"1 s\"\n",
        work.path().display()
    ));
    lab.run_to_the_end();
    let report = published(&lab.record_dir());
    let figures = &report["summary"]["duels"][0]["contenders"];
    for contender in figures.as_array().unwrap() {
        assert!(
            contender["outcomes"]["ok"].as_u64().unwrap() > 100,
            "{contender}"
        );
    }
    let mut found = Vec::new();
    files_with_values(&lab.record_dir(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}
