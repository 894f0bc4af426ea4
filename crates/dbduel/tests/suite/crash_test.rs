//! Power cuts of real servers: what must be kept is kept, what may be lost is seen to be lost.

use std::fs;
use std::process::Output;

use dbduel_powercut::mount;
use serde_json::Value;

use super::harness::skip_always;
use super::lab::{Lab, check_refused, program, published, servers_left};
use super::namespace::Namespace;

/// A contender that syncs its log once a second.
const LATER: &str =
    "[contenders.later]\nlike = \"kept\"\nsettings = { innodb_flush_log_at_trx_commit = 2 }\n";

fn experiment(contenders: &str) -> String {
    format!(
        "budget = \"60 s\"\nhorizon = \"25 %\"\nseed = 7\n\
         [contenders.kept]\nserver = \"mariadb-10.11\"\n\
         settings = {{ innodb_buffer_pool_size = \"32M\", innodb_log_file_size = \"16M\", \
         innodb_flush_log_at_trx_commit = 1 }}\n{contenders}\
         [workload]\nname = \"order-entry\"\nwarehouses = 1\nscale = 0.02\n[load]\nclients = 4\n"
    )
}

fn crash_test(lab: &Lab, words: &[&str]) -> Output {
    let mut command = program();
    command.arg("crash-test").arg(lab.experiment()).args(words);
    command.arg("--results").arg(lab.results());
    command.output().unwrap()
}

#[test(lab, needs = &["mariadb-10.11"])]
fn commits_that_are_flushed_survive_power_cuts_and_others_are_seen_to_be_lost() {
    if let Err(why) = mount::check() {
        return skip_always(&why.to_string());
    }
    let lab = Lab::new(&experiment(LATER));
    let words = "--cuts 4 --load 4s --minimise 6 --json";
    let output = crash_test(&lab, &words.split(' ').collect::<Vec<_>>());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [kept, later] = document["contenders"].as_array().unwrap().as_slice() else {
        panic!("{document}")
    };
    for contender in [kept, later] {
        let cuts = contender["cuts"].as_array().unwrap();
        assert_eq!(cuts.len(), 4);
        for cut in cuts {
            assert!(cut["recovery_s"].is_number(), "{cut}");
            for found in ["violated", "complaints", "bad_pages"] {
                assert_eq!(cut[found].as_array().unwrap().len(), 0, "{cut}");
            }
            // At most one commit per client was on its way.
            assert!(cut["unacknowledged"].as_u64().unwrap() <= 4, "{cut}");
        }
    }
    let lost = |contender: &Value| -> Vec<u64> {
        let cuts = contender["cuts"].as_array().unwrap().iter();
        cuts.map(|cut| cut["lost"].as_u64().unwrap()).collect()
    };
    assert_eq!(lost(kept), [0; 4]);
    assert!(lost(later).iter().any(|&lost| lost > 0), "{later}");
    assert!(later["weaker_promise"].as_str().unwrap().ends_with("= 2"));
    // The disk of the first loss, and the writes that it needs.
    let image = &later["images"][0];
    assert_eq!(image["fate"], "commits-lost");
    let results = fs::read_dir(lab.results())
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let disk = results.join(image["folder"].as_str().unwrap());
    assert!(disk.join("ibdata1").is_file());
    let writes = fs::read_to_string(disk.with_file_name("writes.csv")).unwrap();
    assert!(
        writes
            .lines()
            .any(|line| line.contains("ib_logfile0") && line.contains(",lost,")),
        "{writes}"
    );
    for name in ["crash-test.md", "crash-test.json"] {
        assert!(results.join(name).is_file(), "{name}");
    }
    assert_eq!(servers_left(), []);
}

#[test]
fn an_experiment_that_cannot_be_cut_is_refused_before_anything_starts() {
    let lab = Lab::new(&experiment(LATER).replace(
        "order-entry\"\nwarehouses = 1\nscale = 0.02",
        "oltp-insert\"",
    ));
    let output = crash_test(&lab, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("keeps no log of acknowledged commits; use one of order-entry"),
        "{said}"
    );
    let lab = Lab::new(
        &experiment("[contenders.other]\nserver = \"mariadb-10.11\"\n")
            .replacen("mariadb-10.11", "unix:/run/none.sock", 1)
            .replace("settings", "# settings"),
    );
    let output = crash_test(&lab, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("is a running server"), "{said}");
    let lab = Lab::new(&experiment(LATER));
    let output = crash_test(&lab, &["--cut-model", "torn-7"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("choose one of lose, reorder, torn-512, torn-4096"),
        "{said}"
    );
    assert!(!lab.has_results());
}

/// A contest of both contenders in which claims are put to the test.
fn proving() -> String {
    experiment(LATER).replace("budget = \"60 s\"", "budget = \"24 s\"\nabout = [\"D1\"]")
        + "[schedule]\nwarm_up = \"1 s\"\n[limits]\nprove = true\n"
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_contest_proves_the_claim_that_commits_survive_a_power_cut() {
    if let Err(why) = mount::check() {
        return skip_always(&why.to_string());
    }
    let lab = Lab::new(&proving());
    let output = lab.run_to_the_end();
    let record = lab.record();
    let proof = |contender: usize| record.contenders[contender].proof.clone().unwrap();
    assert_eq!((proof(0).cuts, proof(0).lost), (10, 0), "{:?}", proof(0));
    assert!(proof(0).is_proved() && proof(0).acknowledged > 0);
    assert_eq!(proof(1).cuts, 0, "{:?}", proof(1));
    assert!(proof(1).weaker_promise.unwrap().ends_with("= 2"));
    // The data that were loaded for the cuts are those of the contest, of both contenders, and loading them was timed.
    let report = published(&lab.record_dir());
    let kept = &report["summary"]["contenders"][0];
    assert!(kept["load"]["rows_s"].is_number(), "{kept}");
    let audited = &report["summary"]["audit"]["contenders"];
    assert_eq!(audited[0]["proof"]["cuts"], 10);
    let promise = audited[0]["promise"].as_str().unwrap();
    assert!(promise.contains("a power cut (proven: "), "{promise}");
    assert!(promise.contains("over 10 power cuts, 0 lost)"), "{promise}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("Durability: kept: "), "{shown}");
    for page in ["report.html", "report.md"] {
        let text = fs::read_to_string(lab.record_dir().join(page)).unwrap();
        assert!(text.contains("(proven: "), "{page}");
    }
    let verify = || {
        let output = program().arg("verify").arg(lab.record_dir()).output();
        output.unwrap().status.code()
    };
    assert_eq!(verify(), Some(0));
    let file = lab.record_dir().join("contenders/kept/proof.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"cuts\": 10", "\"cuts\": 90")).unwrap();
    assert_eq!(verify(), Some(4));
}

#[test]
fn a_proof_that_cannot_be_made_is_refused_at_its_place() {
    let line = proving().lines().count();
    let workload = "order-entry\"\nwarehouses = 1\nscale = 0.02";
    check_refused(
        &proving(),
        workload,
        "oltp-insert\"",
        &format!("{}:9", line - 2),
        "`prove` is not possible: the workload `oltp-insert` keeps no log",
    );
    check_refused(
        &proving(),
        "prove = true",
        "prove = \"yes\"",
        &format!("{line}:9"),
        "expected true or false",
    );
}

#[test]
fn a_machine_without_fuse_refuses_a_proof_before_anything_starts() {
    let lab = Lab::new(&proving());
    let script = "mount --bind \"$0\" /dev/fuse && mount -o remount,bind,ro /dev/fuse";
    let namespace = match Namespace::prepare('m', script, &lab.experiment()) {
        Ok(namespace) => namespace,
        Err(why) => return skip_always(&format!("/dev/fuse cannot be hidden here: {why}")),
    };
    let mut command = namespace.command(env!("CARGO_BIN_EXE_dbduel"));
    command.arg("run").arg(lab.experiment()).arg("--plan");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("/dev/fuse cannot be opened here"), "{said}");
}
