//! Names, forms and series as servers answered themselves.

use super::recorded::{parse, parse_changes};
use super::*;
use crate::Defaults;

fn fate(server: &str, written: &str) -> OptionFate {
    let (product, version) = server.split_once('-').unwrap();
    option_fate(
        Product::named(product).unwrap(),
        Version::parse(version).unwrap(),
        written,
    )
}

#[track_caller]
fn taken(server: &str, written: &str, name: &str, form: OptionForm) {
    let name = name.to_owned();
    assert_eq!(
        fate(server, written),
        OptionFate::Taken { name, form },
        "{server}: {written}"
    );
}

#[track_caller]
fn refused(server: &str, written: &str, why: &str) {
    match fate(server, written) {
        OptionFate::Refused(because) => {
            assert!(because.contains(why), "{server}: {written}: {because}");
        }
        other => panic!("{server}: {written}: {other:?}"),
    }
}

/// As the servers themselves answered `--help --verbose` and `--validate-config`.
#[test]
fn forms_of_names_are_taken_as_servers_take_them() {
    use OptionForm::{Bound, Off, On, Plain};
    for server in [
        "mysql-5.6.24",
        "mysql-8.0.33",
        "mysql-9.7.4",
        "mariadb-10.1.23",
        "mariadb-11.8.6",
    ] {
        taken(server, "innodb-io-capacity", "innodb_io_capacity", Plain);
        taken(
            server,
            "loose-innodb_io_capacity",
            "innodb_io_capacity",
            Plain,
        );
        taken(server, "skip-innodb-doublewrite", "innodb_doublewrite", Off);
        taken(server, "disable-log-bin", "log_bin", Off);
        taken(
            server,
            "enable-innodb-file-per-table",
            "innodb_file_per_table",
            On,
        );
        taken(
            server,
            "maximum-sort-buffer-size",
            "sort_buffer_size",
            Bound,
        );
        taken(server, "skip-skip-name-resolve", "skip_name_resolve", Off);
        taken(server, "skip-external-locking", "external_locking", Off);
        assert_eq!(fate(server, "loose-nonsense"), OptionFate::Ignored);
        assert_eq!(fate(server, "skip-loose-nonsense"), OptionFate::Ignored);
        refused(server, "nonsense", "not an option of this server");
        refused(server, "skip-nonsense", "not an option of this server");
        refused(server, "tx_isolation", "not an option of this server");
        refused(server, "version-comment", "not an option of this server");
        taken(
            server,
            "transaction-isolation",
            "transaction_isolation",
            Plain,
        );
    }
    for server in ["mysql-5.6.24", "mariadb-10.1.23", "mariadb-11.8.6"] {
        taken(server, "innodb-doublewrit", "innodb_doublewrite", Plain);
        taken(server, "skip-name", "skip_name_resolve", Plain);
        refused(
            server,
            "innodb_io",
            "innodb_io_capacity or innodb_io_capacity_max",
        );
    }
    for server in ["mysql-8.0.33", "mysql-8.4.8", "mysql-9.7.4"] {
        assert_ne!(
            fate(server, "innodb-doublewrit"),
            fate(server, "innodb-doublewrite")
        );
    }
    refused(
        "mysql-8.0.33",
        "innodb-doublewrit",
        "did you mean `innodb_doublewrite`?",
    );
    for server in ["mysql-5.6.24", "mysql-8.0.33", "mariadb-10.5.23"] {
        refused(server, "INNODB_IO_CAPACITY", "lower case");
    }
    taken(
        "mariadb-10.11.19",
        "INNODB_IO_CAPACITY",
        "innodb_io_capacity",
        Plain,
    );
}

#[test]
fn options_without_effect_are_looked_for_last() {
    let server = "mariadb-10.11.19";
    for name in ["skip-bdb", "skip-bd"] {
        assert_eq!(fate(server, name), OptionFate::Ignored);
    }
    refused(server, "skip-b", "may stand for");
}

#[test]
fn a_key_cache_s_name_may_stand_before_an_option() {
    use OptionForm::{Bound, Off, Plain};
    for server in ["mysql-5.6.24", "mariadb-10.11.19"] {
        taken(server, "foo.max_connections", "max_connections", Plain);
        taken(server, "foo.skip-log-bin", "log_bin", Off);
        assert_eq!(fate(server, "foo.loose-nonsense"), OptionFate::Ignored);
        refused(server, "loose-foo.nonsense", "not an option of this server");
        refused(
            server,
            "foo.bar.max_connections",
            "not an option of this server",
        );
        refused(
            server,
            "validate_password.policy",
            "not an option of this server",
        );
    }
    for server in ["mysql-5.6.24", "mariadb-10.11.19", "mysql-8.0.33"] {
        taken(server, "hot.key_buffer_size", "key_buffer_size", Bound);
        taken(server, "default.key_buffer_size", "key_buffer_size", Plain);
    }
    for name in ["validate_password.policy", "foo.max_connections"] {
        assert_eq!(fate("mysql-8.0.33", name), OptionFate::Unknown);
    }
}

#[test]
fn options_of_another_product_or_age_are_refused_with_where_they_are_from() {
    for server in [
        "mysql-5.7.44",
        "mysql-8.0.12",
        "mysql-8.0.33",
        "mysql-8.4.8",
        "mysql-9.7.4",
    ] {
        refused(
            server,
            "aria_pagecache_buffer_size",
            "an option of MariaDB 10.1 to 11.8",
        );
        refused(
            server,
            "innodb_use_mtflush",
            "an option of MariaDB 10.1 to 10.2",
        );
    }
    refused("percona-8.0.33", "aria_block_size", "of MariaDB");
    refused(
        "mysql-8.4.8",
        "query_cache_size",
        "of MySQL 5.5 to 5.6 and of MariaDB",
    );
    refused(
        "mysql-8.4.8",
        "expire_logs_days",
        "of MySQL 5.5 to 8.0 and of MariaDB",
    );
    refused("mysql-9.7.4", "innodb_log_file_size", "of MySQL 5.5 to 8.0");
    refused(
        "mariadb-10.11.19",
        "innodb_redo_log_capacity",
        "of MySQL 8.0 to 9.7",
    );
    refused("mariadb-11.4.5", "innodb_checksums", "MariaDB 10.1");
    refused("mariadb-10.1.8", "innodb_page_cleaners", "MariaDB 10.2");
}

#[test]
fn a_misspelt_option_of_a_series_that_is_not_recorded_is_refused() {
    for (server, written, meant) in [
        (
            "mysql-8.4.8",
            "innodb_bufer_pool_size",
            "innodb_buffer_pool_size",
        ),
        ("mysql-8.4.8", "innodb-doublewrit", "innodb_doublewrite"),
        ("mysql-5.7.44", "max_conections", "max_connections"),
        ("mysql-5.7.44", "innodb-doublewrit", "innodb_doublewrite"),
        ("mariadb-10.6.12", "max_connectoins", "max_connections"),
    ] {
        refused(server, written, &format!("did you mean `{meant}`?"));
    }
}

#[test]
fn a_series_that_is_not_recorded_probably_refuses_what_its_neighbours_refuse() {
    for (server, written, why) in [
        (
            "mysql-8.4.8",
            "key_buffer",
            "did you mean `key_buffer_size`?), inferred from MySQL 8.0 and MySQL 9.7",
        ),
        (
            "mysql-5.7.44",
            "key_buffer",
            "did you mean `key_buffer_size`?), inferred from MySQL 5.6 and MySQL 8.0",
        ),
        (
            "mysql-5.7.44",
            "nonsense",
            "is not an option of this server, inferred from MySQL 5.6 and MySQL 8.0",
        ),
        (
            "mysql-8.4.8",
            "log_syslog",
            "inferred from MySQL 8.0 and MySQL 9.7",
        ),
        (
            "mariadb-12.3.1",
            "innodb_redo_log_capacity",
            "is an option of MySQL 8.0 to 9.7, inferred from MariaDB 11.8",
        ),
    ] {
        match fate(server, written) {
            OptionFate::ProbablyRefused(because) => {
                assert!(because.contains(why), "{server}: {written}: {because}");
            }
            other => panic!("{server}: {written}: {other:?}"),
        }
    }
    // Where names may be shortened it stands for one option.
    for server in ["mysql-5.6.51", "mariadb-10.6.12"] {
        taken(server, "key_buffer", "key_buffer_size", OptionForm::Plain);
    }
    refused("mysql-5.7.44", "timed_mutexes", "of MySQL 5.5 to 5.6");
}

#[test]
fn the_later_of_two_names_of_one_option_counts() {
    let spellings: Vec<String> = other_spellings("skip_log_bin").collect();
    assert_eq!(spellings, ["log_bin", "disable_log_bin", "enable_log_bin"]);
    let spellings: Vec<String> = other_spellings("table_open_cache").collect();
    assert!(spellings.contains(&"table_cache".to_owned()));
    assert!(!spellings.contains(&"table_open_cache".to_owned()));
}

#[test]
fn what_is_not_certain_is_not_refused() {
    for (server, option) in [
        ("mysql-8.0.33", "validate_password.policy"),
        ("mysql-8.0.33", "rpl_semi_sync_source_enabled"),
        ("mysql-5.7.44", "audit_log_policy"),
        ("mysql-5.1.73", "innodb_page_cleaners"),
        ("mysql-9.8.0", "nonsense"),
        ("percona-8.0.33", "innodb_show_locks_held"),
        ("mariadb-12.3.1", "innodb_page_cleaner"),
        ("mariadb-10.11.19", "rocksdb_block_cache_size"),
    ] {
        assert_eq!(
            fate(server, option),
            OptionFate::Unknown,
            "{server}: {option}"
        );
    }
    for (server, option) in [
        ("mysql-5.7.44", "innodb_page_cleaners"),
        ("mysql-5.7.44", "query_cache_size"),
        ("mysql-5.7.44", "show_compatibility_56"),
        ("mysql-8.0.12", "metadata_locks_hash_instances"),
        ("mysql-8.4.8", "mysql_native_password"),
        ("mariadb-10.4.34", "innodb_buffer_pool_instances"),
        ("mariadb-10.6.12", "innodb_checksum_algorithm"),
    ] {
        assert!(
            matches!(fate(server, option), OptionFate::Taken { .. }),
            "{server}: {option}"
        );
    }
    for server in ["mariadb-10.11.19", "mariadb-11.8.6"] {
        for option in [
            "innodb_page_cleaners",
            "innodb_buffer_pool_instances",
            "default_authentication_plugin",
        ] {
            assert_eq!(
                fate(server, option),
                OptionFate::Ignored,
                "{server}: {option}"
            );
        }
    }
}

#[test]
fn an_option_of_one_product_tells_which() {
    assert_eq!(only_product("aria-block-size"), Some(Product::MariaDb));
    assert_eq!(
        only_product("innodb_redo_log_capacity"),
        Some(Product::MySql)
    );
    assert_eq!(only_product("innodb_io_capacity"), None);
}

/// Every variable of a recorded server that can be set at start is an option of it.
#[test]
fn no_server_refuses_what_its_own_settings_are_called() {
    for (server, _, _) in Defaults::servers().filter(|(_, product, _)| product.has_innodb()) {
        for variable in [
            "innodb_buffer_pool_size",
            "max_connections",
            "innodb_flush_method",
            "log_bin",
            "sql_mode",
            "datadir",
        ] {
            assert!(
                matches!(fate(server, variable), OptionFate::Taken { .. }),
                "{server}: {variable}"
            );
        }
    }
}

#[test]
fn broken_tables_are_refused() {
    assert!(parse("option\tmysql-5.6.24\na\tyes\n").is_ok());
    for text in [
        "option\toracle-1\n",
        "option\tmysql-5.6.24\na\tperhaps\n",
        "option\tmysql-5.6.24\na\n",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    for line in [
        "a\tmysql\tyes\n",
        "a\tmysql\tyes\t\n",
        "a\toracle\tyes\tmanual\n",
        "a\tmysql\tmaybe\tmanual\n",
    ] {
        assert!(
            parse_changes(Box::leak(format!("head\n{line}").into_boxed_str())).is_err(),
            "{line}"
        );
    }
}
