//! Variants of a contender: the best is chosen in the first blocks, and meets the other contender in later ones.

use std::collections::BTreeSet;
use std::fs;

use super::lab::{Lab, assert_verified, check_refused, contender_names, published};

/// One contender that may sync each commit or not, and one that syncs.
const DUEL: &str = "budget = \"16 s\"\nhorizon = \"20 %\"\n\
    [contenders.free]\nserver = \"mariadb-10.11\"\n\
    settings = { innodb_buffer_pool_size = \"32M\", innodb_log_file_size = \"16M\" }\n\
    variants = { innodb_flush_log_at_trx_commit = [1, 0] }\n\
    [contenders.synced]\nserver = \"mariadb-10.11\"\n\
    settings = { innodb_buffer_pool_size = \"32M\", innodb_log_file_size = \"16M\", innodb_flush_log_at_trx_commit = 1 }\n\
    [workload]\nname = \"oltp-update-non-index\"\ntables = 1\ntable_size = 500\n[load]\nclients = 2\n\
    [schedule]\nslice = \"100 ms\"\nwarm_up = \"300 ms\"\n";

#[test(lab, needs = &["mariadb-10.11"])]
fn the_best_variant_is_chosen_in_the_first_blocks_and_judged_in_the_others() {
    let lab = Lab::new(DUEL);
    let output = lab.run_to_the_end();
    let record = lab.record();
    assert_eq!(contender_names(&record), ["free [1]", "free [0]", "synced"]);
    let variants = record.plan.variants.as_ref().unwrap();
    // All three run in a block of choosing, two afterwards.
    let mut chosen = BTreeSet::new();
    for block in &record.plan.blocks {
        let slices = record
            .slices
            .iter()
            .filter(|row| row.block == block.id && row.class == "all");
        let ran: BTreeSet<&str> = slices.map(|row| row.contender.as_str()).collect();
        // On a busy machine a slice may be lost, and the rest of its block with it.
        if !variants.is_choosing(block) {
            assert!(ran.len() < 3, "{block:?}");
            chosen.extend(ran);
        }
    }
    assert_eq!(chosen.len(), 2, "{chosen:?}");
    let report = published(&lab.record_dir());
    let summary = &report["summary"];
    let judged = summary["contenders"].as_array().unwrap().iter();
    let judged: Vec<&str> = judged.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(judged, ["free", "synced"]);
    let choice = summary["champions"][0]["variants"].as_array().unwrap();
    let best = choice.iter().find(|one| one["is_chosen"] == true).unwrap();
    let value = best["settings"].as_str().unwrap();
    assert!(
        value.starts_with("innodb_flush_log_at_trx_commit = "),
        "{value}"
    );
    let name = format!("free [{}]", value.split_at(value.len() - 1).1);
    assert!(chosen.contains(name.as_str()), "{name} {chosen:?}");
    // The audit sees every variant.
    let audited = summary["audit"]["contenders"].as_array().unwrap();
    assert_eq!(audited.len(), 3);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("Chosen variants"), "{shown}");
    for page in ["report.html", "report.md"] {
        let text = fs::read_to_string(lab.record_dir().join(page)).unwrap();
        assert!(text.contains("Chosen variants"), "{page}");
    }
    assert_verified(&lab.record_dir());
}

#[test]
fn variants_that_cannot_compete_are_refused_at_their_places() {
    let values = "[1, 0]";
    check_refused(
        DUEL,
        values,
        "[1]",
        "6:47",
        "is a list of two or more values",
    );
    let many = format!("{:?}", (0..17).collect::<Vec<u8>>());
    check_refused(DUEL, values, &many, "6:14", "18 variants together");
    // Counted, and not made: there would be more than a machine can hold.
    let lists: Vec<String> = (0..70).map(|n| format!("x{n} = [1, 2]")).collect();
    let variants = "innodb_flush_log_at_trx_commit = [1, 0]";
    check_refused(
        DUEL,
        variants,
        &lists.join(", "),
        "6:14",
        "countless variants together",
    );
    check_refused(
        DUEL,
        variants,
        "general_log_file = [\"own.log\", \"/tmp/else.log\"]",
        "6:45",
        "variant `general_log_file`: invalid value",
    );
    check_refused(
        DUEL,
        "[schedule]\n",
        "[schedule]\nepochs = 3\n",
        "6:14",
        "variants cannot be combined with `epochs`",
    );
    check_refused(
        DUEL,
        "innodb_flush_log_at_trx_commit = [1",
        "datadir = [1",
        "6:14",
        "`datadir` cannot be set",
    );
}
