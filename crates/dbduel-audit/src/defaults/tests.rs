use super::*;
use crate::expression;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

/// The machine that all servers were recorded on.
const RECORDER: Machine = Machine {
    cpus: Some(2),
    memory_bytes: Some(24 << 30),
    files: Some(20_000),
};

#[test]
fn every_recorded_server_says_who_it_is() {
    let servers: Vec<_> = Defaults::servers().collect();
    assert_eq!(servers.len(), 28);
    for (name, product, version) in servers {
        let evidence = Defaults::of(name).unwrap().evidence("a").unwrap();
        assert_eq!(
            (evidence.product, evidence.version),
            (product, version),
            "{name}"
        );
    }
}

/// What the table says of a recorded server is what that server showed, also where it is computed.
#[test]
fn documented_defaults_are_those_that_recorded_servers_show() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (server, product, version) in Defaults::servers().filter(|(name, ..)| *name != ODD_BUILD) {
        let mut evidence = Defaults::of(server).unwrap().evidence("a").unwrap();
        evidence.basis.machine = RECORDER;
        for row in documented::rows().filter(|row| row.on.includes(product, version)) {
            let shown = evidence.variables.get(row.variable);
            let said = row.value_of(&evidence);
            let read = |text: &String| crate::value::Value::read(text);
            let is_same = match (shown, &said) {
                (Some(shown), Some(said)) => read(shown).is_same(&read(said)),
                (None, None) => row.value.is_none(),
                _ => false,
            };
            compared += 1;
            if !is_same {
                wrong.push(format!(
                    "{server} {}: {shown:?}, not {said:?}",
                    row.variable
                ));
            }
        }
    }
    assert!(compared > 1000, "{compared}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_two_rows_are_about_one_server_and_none_follows_from_itself() {
    let versions: Vec<(Product, Version)> = documented::rows()
        .flat_map(|row| row.on.starts())
        // A patch of 0 stands for the series.
        .map(|(product, version)| {
            (
                product,
                Version {
                    patch: version.patch.max(1),
                    ..version
                },
            )
        })
        .collect();
    for (product, version) in versions {
        let mut seen = BTreeSet::new();
        for row in documented::rows().filter(|row| row.on.includes(product, version)) {
            assert!(
                seen.insert(row.variable),
                "two rows on {} of {product} {version}",
                row.variable
            );
        }
        let evidence = expected("a", product, version, RECORDER).unwrap();
        for row in documented::rows()
            .filter(|row| row.on.includes(product, version) && row.value.is_some())
        {
            let names = expression::names(row.value.as_ref().unwrap());
            assert!(
                evidence.variables.contains_key(row.variable) || names.contains(&"unknown"),
                "{product} {version}: {} is not computed",
                row.variable
            );
        }
    }
}

#[track_caller]
fn check(product: Product, text: &str, machine: Machine, expected_values: &[(&str, &str)]) {
    let evidence = expected("a", product, version(text), machine).unwrap();
    for (name, value) in expected_values {
        let shown = evidence.variables.get(*name).map_or("-", String::as_str);
        assert_eq!(shown, *value, "{product} {text} {name}");
    }
}

fn with_cpus(cpus: u32) -> Machine {
    Machine {
        cpus: Some(cpus),
        ..Machine::default()
    }
}

#[test]
fn defaults_of_a_series_that_is_not_recorded_are_its_own() {
    check(
        Product::MySql,
        "8.4",
        with_cpus(64),
        &[
            ("innodb_flush_method", "O_DIRECT"),
            ("innodb_io_capacity", "10000"),
            ("innodb_io_capacity_max", "20000"),
            ("innodb_adaptive_hash_index", "OFF"),
            ("innodb_change_buffering", "none"),
            ("innodb_log_buffer_size", "67108864"),
            ("innodb_purge_threads", "4"),
            ("innodb_read_io_threads", "32"),
            ("innodb_parallel_read_threads", "8"),
            ("innodb_log_file_size", "50331648"),
            ("default_authentication_plugin", "-"),
        ],
    );
    check(
        Product::MySql,
        "5.7",
        Machine::default(),
        &[
            ("sync_binlog", "1"),
            ("binlog_format", "ROW"),
            ("log_bin", "OFF"),
            ("innodb_flush_method", ""),
            ("innodb_checksum_algorithm", "crc32"),
            ("innodb_flush_neighbors", "1"),
            ("innodb_page_cleaners", "1"),
            ("innodb_purge_threads", "4"),
            ("collation_server", "latin1_swedish_ci"),
            ("table_open_cache_instances", "16"),
            ("tx_isolation", "REPEATABLE-READ"),
        ],
    );
    check(
        Product::MySql,
        "5.7.5",
        Machine::default(),
        &[("sync_binlog", "0"), ("innodb_page_cleaners", "1")],
    );
    check(
        Product::MariaDb,
        "10.6",
        Machine::default(),
        &[
            ("innodb_flush_method", "O_DIRECT"),
            ("innodb_buffer_pool_instances", "-"),
            ("innodb_change_buffering", "none"),
            ("innodb_purge_batch_size", "127"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
        ],
    );
    check(
        Product::MariaDb,
        "10.4.34",
        Machine::default(),
        &[
            ("innodb_adaptive_hash_index", "ON"),
            ("innodb_use_mtflush", "-"),
            ("innodb_flush_method", "fsync"),
            ("innodb_log_file_size", "50331648"),
        ],
    );
    check(
        Product::MariaDb,
        "10.5.12",
        Machine::default(),
        &[("innodb_change_buffering", "all")],
    );
}

#[test]
fn a_version_without_a_patch_is_the_newest_of_its_series_that_is_recorded() {
    let release = |product, text: &str| {
        let evidence = expected("a", product, version(text), Machine::default()).unwrap();
        (evidence.version.to_string(), evidence.source)
    };
    assert_eq!(
        release(Product::MySql, "8.0"),
        (
            "8.0.33".to_owned(),
            "the defaults of mysql-8.0.33".to_owned()
        )
    );
    assert_eq!(release(Product::MariaDb, "10.11").0, "10.11.19");
    assert_eq!(
        release(Product::MySql, "5.6.21").1,
        "the defaults of mysql-5.6.24",
        "a 32-bit build stands for no other"
    );
    assert_eq!(
        release(Product::Percona, "8.4.3").1,
        "the documented defaults of Percona Server 8.4.3, with those recorded of mysql-8.0.33 and mysql-9.7.4"
    );
}

#[test]
fn what_follows_from_a_machine_is_computed_for_it_or_left_open() {
    let open = expected("a", Product::MySql, version("9.7.4"), Machine::default()).unwrap();
    for name in [
        "innodb_purge_threads",
        "innodb_read_io_threads",
        "open_files_limit",
        "version_compile_machine",
        "version_compile_zlib",
    ] {
        assert!(!open.variables.contains_key(name), "{name}");
        assert!(open.basis.undetermined.contains(name), "{name}");
    }
    assert_eq!(
        open.variables["innodb_page_cleaners"], "1",
        "the pool is small"
    );
    check(
        Product::MySql,
        "9.7.4",
        with_cpus(64),
        &[
            ("innodb_purge_threads", "4"),
            ("innodb_read_io_threads", "32"),
            ("innodb_log_writer_threads", "ON"),
        ],
    );
    check(
        Product::MariaDb,
        "10.11.19",
        with_cpus(16),
        &[("thread_pool_size", "16")],
    );
}

#[test]
fn what_no_recorded_server_bears_out_is_inferred() {
    let inferred = |product, text: &str, name: &str| {
        let evidence = expected("a", product, version(text), with_cpus(8)).unwrap();
        evidence.basis.inferred.contains(name)
    };
    let mysql = Product::MySql;
    for firm in [
        "innodb_io_capacity",
        "innodb_flush_method",
        "log_bin",
        "innodb_flush_log_at_trx_commit",
        "innodb_purge_threads",
    ] {
        assert!(!inferred(mysql, "8.4.0", firm), "{firm}");
    }
    // The manual alone says so: the servers recorded before and after show something else.
    assert!(inferred(mysql, "8.4.0", "innodb_change_buffering"));
    assert!(inferred(mysql, "9.3.0", "back_log"));
    assert!(!inferred(mysql, "8.0.40", "innodb_change_buffering"));
    assert!(
        inferred(mysql, "12.0.1", "innodb_io_capacity"),
        "newer than the last recorded server"
    );
    assert!(inferred(Product::MariaDb, "10.0.38", "innodb_io_capacity"));
}
