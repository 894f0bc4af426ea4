//! Designed contests on real servers: from two contenders to what each setting contributes.

use super::lab::{
    Lab, assert_verified, contender_names, program, published, short_experiment, with_budget,
};

/// Two contenders that differ in two settings, to be divided.
fn two_settings() -> String {
    let experiment = short_experiment(["mariadb-10.11", "mariadb-10.11"], "[attribute]\n");
    let (first, second) = experiment.split_once("[contenders.second]").unwrap();
    let second = second.replacen(
        "innodb_flush_log_at_trx_commit = 2",
        "innodb_flush_log_at_trx_commit = 1, innodb_lru_scan_depth = 512",
        1,
    );
    with_budget(&format!("{first}[contenders.second]{second}"), "13 s")
}

#[test(lab, needs = &["mariadb-10.11"])]
fn two_settings_are_divided_across_a_kill() {
    let lab = Lab::new(&two_settings());
    lab.run_killed_after_slices(6);
    lab.resume_to_the_end();

    let record = lab.record();
    let design = record.plan.design.as_ref().unwrap();
    assert_eq!(contender_names(&record), ["first", "second", "a", "b"]);
    assert_eq!(design.factors[0].name, "innodb_flush_log_at_trx_commit");
    let asked = |contender: usize| {
        let settings = record.plan.contenders[contender].settings.iter();
        settings
            .map(|one| format!("{}={}", one.name, one.value))
            .collect::<Vec<String>>()
            .join(" ")
    };
    assert!(
        asked(2).contains("trx_commit=1") && !asked(2).contains("scan_depth"),
        "{}",
        asked(2)
    );
    assert!(
        asked(3).contains("trx_commit=2") && asked(3).contains("scan_depth=512"),
        "{}",
        asked(3)
    );

    let report = published(&lab.record_dir());
    let duel = &report["summary"]["duels"][0];
    let attribution = &duel["attribution"];
    assert_eq!(duel["comparisons"].as_array().unwrap().len(), 1);
    assert_eq!(
        attribution["effects"].as_array().unwrap().len(),
        2,
        "{attribution}"
    );
    assert_eq!(attribution["has_all_combinations"], true);
    assert!(attribution["because"].is_null(), "{attribution}");
    assert_verified(&lab.record_dir());
}

#[test]
fn the_verb_divides_what_has_no_section_and_refuses_what_it_cannot() {
    let without = two_settings().replace("[attribute]\n", "");
    let plan = |experiment: &str| {
        let lab = Lab::new(experiment);
        let mut command = program();
        command
            .args(["attribute", "--plan", "--json"])
            .arg(lab.experiment());
        command.output().unwrap()
    };
    let output = plan(&without);
    let plan_text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && plan_text.contains("\"design\""),
        "{plan_text}"
    );
    let one_setting = without.replace(", innodb_lru_scan_depth = 512", "");
    let swept = format!("{without}[sweep]\ntable_size = [500, 1_000]\n")
        .replace("table_size = 2_000\n", "");
    for (experiment, part) in [(one_setting, "one factor only"), (swept, "has a [sweep]")] {
        let output = plan(&experiment);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(part), "{said}");
    }
}
