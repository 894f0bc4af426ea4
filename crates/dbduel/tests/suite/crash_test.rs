//! Power cuts of real servers: what must be kept is kept, what may be lost is seen to be lost.

use std::fs;
use std::process::Output;

use dbduel_powercut::mount;
use serde_json::Value;

use super::harness::skip_always;
use super::lab::{Lab, program, servers_left, with_servers};

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

#[test]
fn commits_that_are_flushed_survive_power_cuts_and_others_are_seen_to_be_lost() {
    if let Err(why) = mount::check() {
        return skip_always(&why.to_string());
    }
    let Some(_turn) = with_servers("commits_that_are_flushed_…", &["mariadb-10.11"]) else {
        return;
    };
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
