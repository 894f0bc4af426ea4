use dbduel_record::facts::ServerHost;
use dbduel_record::plan::LoadHosts;
use dbduel_testkit::synthetic::{Scenario, Side};

use super::*;

/// Machine `number` measures this ratio at 16 clients.
fn record(number: u64, ratio: f64) -> Record {
    let scenario = Scenario {
        clients: vec![16],
        sides: vec![
            Side::new("doublewrite", &[1.0]),
            Side::new("no-doublewrite", &[ratio]),
        ],
        seed: 100 + number,
        ..Scenario::duel()
    };
    let mut record = scenario.record();
    record.plan.dataset_seed = 7;
    record.host.machine = Some(format!("machine-{number}"));
    record
}

fn pooled(records: &[Record]) -> Result<Pool, NotOneDuel> {
    let records = records.iter().enumerate();
    let records =
        records.map(|(number, record)| PoolRecord::of(format!("results/{number}"), record));
    pool(records.collect()).map(Option::unwrap)
}

/// Log of the pooled ratio of throughput, its interval and τ.
fn throughput(pool: &Pool) -> &PooledQuantity {
    let throughput = &pool.comparisons[0].quantities[0];
    assert_eq!(throughput.quantity, "throughput");
    throughput
}

#[test]
fn machines_that_differ_are_pooled_as_a_random_effect() {
    let ratios = [1.08, 1.12, 1.20, 1.04, 1.10];
    let records: Vec<Record> = (0..)
        .zip(ratios)
        .map(|(number, ratio)| record(number, ratio))
        .collect();
    let pool = pooled(&records).unwrap();
    assert_eq!((pool.machines.len(), &pool.too_few), (5, &None));
    let found = throughput(&pool);
    assert_eq!((found.answer, found.machines.len()), ("faster", 5));
    let mean = ratios.iter().map(|ratio: &f64| ratio.ln()).sum::<f64>() / 5.0;
    assert!(
        (found.ratio.value().unwrap().ln() - mean).abs() < 0.01,
        "{found:?}"
    );
    let (low, high) = found.ratio.interval().unwrap();
    // The standard deviation of the logarithms is 0.053, and Student's point with four degrees of freedom is 2.78.
    let half = 0.5 * (high / low).ln();
    assert!((0.055..0.08).contains(&half), "{half}");
    assert!(
        (0.04..0.065).contains(&found.between_sd.unwrap()),
        "{found:?}"
    );
    let [least, most] = found.next_machine.unwrap();
    assert!(least < low && most > high);
    assert!(found.disagreement.is_none());
}

#[test]
fn machines_that_contradict_each_other_are_named() {
    let records = [
        record(0, 1.1),
        record(1, 0.9),
        record(2, 1.1),
        record(3, 1.0),
    ];
    let pool = pooled(&records).unwrap();
    let found = throughput(&pool);
    assert_eq!(found.answer, "undecided");
    assert_eq!(
        found.disagreement.as_deref(),
        Some("faster on machine-0, machine-2; slower on machine-1")
    );
}

#[test]
fn few_machines_are_said_to_be_few() {
    let one = pooled(&[record(0, 1.1)]).unwrap();
    assert!(one.too_few.unwrap().starts_with("One machine"));
    assert_eq!(one.comparisons[0].quantities[0].answer, "not compared");
    let two = pooled(&[record(0, 1.1), record(1, 1.12)]).unwrap();
    let why = two.too_few.as_ref().unwrap();
    assert!(
        why.contains("2 machines are too few") && why.contains("1 degree of freedom"),
        "{why}"
    );
    assert!(throughput(&two).next_machine.is_none());
}

#[test]
fn records_of_one_machine_are_one_observation_and_copies_count_once() {
    let mut again = record(0, 1.14);
    again.plan.seed = 200;
    let records = [record(0, 1.1), again, record(1, 1.1), record(1, 1.1)];
    let pool = pooled(&records).unwrap();
    assert_eq!(pool.machines.len(), 2);
    let machines = &throughput(&pool).machines;
    assert_eq!((machines[0].records, machines[1].records), (2, 1));
    let first = machines[0].ratio.value().unwrap();
    assert!((first - 1.12).abs() < 0.01, "{first}");
    assert!(
        pool.left_out[0].contains("the same run as"),
        "{:?}",
        pool.left_out
    );
}

#[test]
fn another_duel_is_refused_with_the_difference_named() {
    let mut other = record(1, 1.1);
    other.plan.contenders[1].settings[0].value = "2G".to_owned();
    other.plan.load.threads += 1;
    other.plan.created = "2026-11-21T00:00:00Z".to_owned();
    let said = pooled(&[record(0, 1.1), other]).unwrap_err().to_string();
    assert!(
        said.contains("`contenders[1].settings[0].value` is \"1G\" and \"2G\";")
            && !said.contains("threads"),
        "{said}"
    );
    let mut newer = record(1, 1.1);
    newer.contenders[0].build.as_mut().unwrap().version = "11.4.2".to_owned();
    let said = pooled(&[record(0, 1.1), newer]).unwrap_err().to_string();
    assert!(
        said.contains("`servers.doublewrite` is") && said.contains("11.4.2"),
        "{said}"
    );
}

#[test]
fn a_void_record_is_left_out_with_its_reason() {
    let records = [record(0, 1.1), record(1, 1.1), record(2, 1.1)];
    let mut records: Vec<PoolRecord> = (0..)
        .zip(&records)
        .map(|(number, record)| PoolRecord::of(format!("results/{number}"), record))
        .collect();
    let comparison = &mut records[1].judged.summary.duels[0].comparisons[0];
    comparison.verdict = Verdict::Void;
    comparison.because = Some("the disk was full".to_owned());
    let pool = pool(records).unwrap().unwrap();
    let machines: Vec<usize> = throughput(&pool)
        .machines
        .iter()
        .map(|one| one.machine)
        .collect();
    assert_eq!(machines, [0, 2]);
    assert_eq!(
        pool.left_out,
        ["results/1: no-doublewrite at 16 clients is void: the disk was full"]
    );
}

/// As [`record`], with the servers of the contenders on these hosts, each of which is the machine of its name.
fn record_on(number: u64, hosts: [&str; 2]) -> Record {
    let mut record = record(number, 1.1);
    for (contender, host) in record.plan.contenders.iter_mut().zip(hosts) {
        contender.host = Some(host.to_owned());
    }
    let mut names = hosts.to_vec();
    names.dedup();
    let facts = names.iter().map(|name| ServerHost {
        name: (*name).to_owned(),
        facts: Host {
            machine: Some(format!("machine-of-{name}")),
            cpus: Some(name.len() as u32),
            ..Host::default()
        },
        ..ServerHost::default()
    });
    record.host = Host::of_server_hosts(facts.collect());
    record
}

#[test]
fn one_duel_on_one_server_host_after_another_is_pooled() {
    let mut records = [
        record_on(0, ["db1", "db1"]),
        record_on(1, ["db3", "db3"]),
        record_on(2, ["db1", "db1"]),
    ];
    for record in &mut records {
        record.plan.hosts = Some(LoadHosts {
            servers: record.plan.contenders[0].host.clone().unwrap(),
            load: vec!["load1".to_owned()],
        });
    }
    let pool = pooled(&records).unwrap();
    let names: Vec<&str> = pool.machines.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["machine-of-db1", "machine-of-db3"]);
    assert_eq!(pool.machines[0].records.len(), 2);

    records[1].plan.contenders[0].host = None;
    records[1].plan.contenders[1].host = None;
    let said = pooled(&records).unwrap_err().to_string();
    assert!(
        said.contains("`contenders[0].host` is \"one server host\" and absent"),
        "{said}"
    );
}

#[test]
fn several_server_hosts_are_one_machine_and_their_names_are_of_the_duel() {
    let mut moved = record_on(1, ["small", "large"]);
    moved.host.server_hosts[1].facts.machine = Some("another".to_owned());
    let pool = pooled(&[record_on(0, ["small", "large"]), moved]).unwrap();
    let names: Vec<&str> = pool.machines.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "machine-of-small + machine-of-large",
            "machine-of-small + another"
        ]
    );
    let hosts = [["small", "large"], ["large", "small"], ["small", "small"]];
    for swapped in &hosts[1..] {
        let records = [record_on(0, hosts[0]), record_on(1, *swapped)];
        let said = pooled(&records).unwrap_err().to_string();
        assert!(said.contains("`contenders[0].host` is \"small\""), "{said}");
    }
}
