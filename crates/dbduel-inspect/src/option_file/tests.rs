use dbduel_audit::Case;
use dbduel_record::event::Severity;

use super::*;

fn files(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

/// The value of a setting; empty for an option without one.
fn value_of(setting: &Setting) -> &str {
    setting.value.as_deref().unwrap_or_default()
}

/// Reads the file called `my.cnf` in a directory, with what it includes from there.
fn read_in(
    directory: &Path,
    product: Option<Product>,
    version: Option<Version>,
) -> Result<Settings, TextError> {
    let path = directory.join("my.cnf");
    read(&path, product, version, &Includes::beside(&path, None))
}

fn version(text: &str) -> Option<Version> {
    Version::parse(text)
}

#[track_caller]
fn check(product: Product, wanted: &str, content: &str, expected: &[(&str, &str)]) {
    let directory = files(&[("my.cnf", content)]);
    let read = read_in(directory.path(), Some(product), version(wanted)).unwrap();
    let settings = read.settings.iter();
    let settings: Vec<(&str, &str)> = settings
        .map(|setting| (setting.name.as_str(), value_of(setting)))
        .collect();
    assert_eq!(settings, expected);
}

#[test]
fn sections_of_the_server_and_its_version_count() {
    let content = "[client]\nport=1\n[mysqld]\na=1\n[mysqld-5.6]\nb=2\n[mysqld-5.7]\nc=3\n[mariadb]\nd=4\n[server]\ne=5\n\
                   [mysqldump]\nf=6\n[mariadb-10.1]\ng=7\n[server-5.6]\nh=8\n[mariadbd]\ni=9\n[client-server]\nj=10\n\
                   [galera]\nk=11\n[mysqld_safe]\nl=12\n[galera-10.1]\nm=13\n";
    check(
        Product::MySql,
        "5.6.24",
        content,
        &[("a", "1"), ("b", "2"), ("e", "5")],
    );
    check(
        Product::MariaDb,
        "10.1.8",
        content,
        &[
            ("a", "1"),
            ("d", "4"),
            ("e", "5"),
            ("g", "7"),
            ("j", "10"),
            ("k", "11"),
        ],
    );
    let expected = [
        ("a", "1"),
        ("d", "4"),
        ("e", "5"),
        ("i", "9"),
        ("j", "10"),
        ("k", "11"),
    ];
    check(Product::MariaDb, "10.11.6", content, &expected);
}

#[test]
fn values_lose_quotes_and_comments() {
    let content = "[mysqld]\n# note\n; note\ninnodb-log-file-size = 8G # large\nskip-log-bin\nsql_mode=\"A,B\" # c\nloose-x='a b'\ninit_connect=SET\\sx\nempty=\ntmpdir = /a#b\nodd=\"a'#b\n";
    let expected = [
        ("innodb-log-file-size", "8G"),
        ("skip-log-bin", ""),
        ("sql_mode", "A,B"),
        ("loose-x", "a b"),
        ("init_connect", "SET x"),
        ("empty", ""),
        ("tmpdir", "/a"),
        ("odd", "\"a'#b"),
    ];
    check(Product::MySql, "5.6", content, &expected);
}

#[test]
fn included_files_take_effect_where_they_stand() {
    let directory = files(&[
        (
            "my.cnf",
            "[mysqld]\na=1\n!include more.cnf\n!includedir conf.d\n[mysqld]\na=9\n",
        ),
        ("more.cnf", "[mysqld]\na=2\n"),
        ("conf.d/20.cnf", "[mysqld]\na=4\n"),
        ("conf.d/10.cnf", "[mysqld]\na=3\n"),
        ("conf.d/notes.txt", "nonsense"),
    ]);
    let read = read_in(directory.path(), None, None).unwrap();
    let values: Vec<&str> = read.settings.iter().map(value_of).collect();
    assert_eq!(values, ["1", "2", "3", "4", "9"]);
    assert_eq!(read.files.len(), 4);
}

#[track_caller]
fn check_error(contents: &[(&str, &str)], expected: &str) {
    let directory = files(contents);
    let error = read_in(directory.path(), None, None)
        .unwrap_err()
        .to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn broken_configurations_are_errors_with_a_line() {
    check_error(&[("my.cnf", "[mysqld]\na=\0\n")], "line 2: not a text file");
}

fn values_of(contents: &[(&str, &str)]) -> Vec<String> {
    let directory = files(contents);
    let read = read_in(directory.path(), None, None).unwrap();
    assert!(read.refused.is_empty(), "{:?}", read.refused);
    read.settings
        .iter()
        .map(|setting| value_of(setting).to_owned())
        .collect()
}

/// As MariaDB 10.11, MySQL 5.6 and 8.0 do.
#[test]
fn circles_and_deep_includes_are_left_out_and_a_broken_group_ends_an_included_file() {
    let circle = [
        ("my.cnf", "[mysqld]\na=1\n!include b.cnf\na=4\n"),
        ("b.cnf", "[mysqld]\na=2\n!include my.cnf\na=3\n"),
    ];
    assert_eq!(values_of(&circle), ["1", "2", "3", "4"]);
    let folder = [
        ("my.cnf", "[mysqld]\na=1\n!includedir d\n"),
        ("d/sub.cnf/x.cnf", "[mysqld]\na=2\n"),
        ("d/b.cnf", "[mysqld]\na=3\n"),
    ];
    assert_eq!(values_of(&folder), ["1", "3"]);
    let deep: Vec<(String, String)> = (0..12)
        .map(|at| {
            (
                format!("{at}.cnf"),
                format!("[mysqld]\na={at}\n!include {}.cnf\n", at + 1),
            )
        })
        .collect();
    let mut contents: Vec<(&str, &str)> = deep
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_str()))
        .collect();
    contents.push(("my.cnf", "[mysqld]\n!include 0.cnf\n"));
    assert_eq!(values_of(&contents).last().unwrap(), "8");
    for broken in ["[mysqld]\na=2\n[broken\na=3\n", "a=3\n"] {
        let included = [
            ("my.cnf", "[mysqld]\n!include b.cnf\na=4\n"),
            ("b.cnf", broken),
        ];
        let values = values_of(&included);
        assert!(!values.contains(&"3".to_owned()), "{values:?}");
        assert_eq!(values.last().unwrap(), "4");
    }
}

#[test]
fn a_byte_order_mark_is_refused_and_only_ascii_blanks_are_cut() {
    let directory = files(&[("my.cnf", "\u{feff}[mysqld]\na=1\n")]);
    let read = read_in(directory.path(), None, None).unwrap();
    assert!(read.refused[0].why.contains("byte-order mark"));
    let blank = [("my.cnf", "[mysqld]\na=1\u{a0}\n")];
    assert_eq!(values_of(&blank), ["1\u{a0}"]);
}

/// Answers of MariaDB 10.11 and MySQL 8.0.
#[test]
fn lines_with_which_no_server_starts_are_kept_with_their_places() {
    for (content, place, why) in [
        ("[mysqld]\n!include\n", "2:1", "`!include` names nothing"),
        ("a=1\n", "1:1", "`a=1` precedes the first group"),
        ("[mysqld\n", "1:1", "`[mysqld` has no `]`"),
        (
            "[mysqld]\n  a b c\n",
            "2:3",
            "`a b c` is not the name of a setting",
        ),
        ("[mysqld]\n=5\n", "2:1", "`` is not the name"),
        ("[mysqld]\n--a=5\n", "2:1", "`--a` begins with dashes"),
    ] {
        let directory = files(&[("my.cnf", content)]);
        let read = read_in(directory.path(), None, None).unwrap();
        let [refused] = read.refused.as_slice() else {
            panic!("{content}: {read:?}");
        };
        assert!(
            refused.place.ends_with(&format!("my.cnf:{place}")),
            "{refused:?}"
        );
        assert!(refused.why.starts_with(why), "{refused:?}");
    }
    let directory = files(&[
        ("my.cnf", "[mysqld]\n!source x\n! include more.cnf\n"),
        ("more.cnf", "[mysqld]\na=1\n"),
    ]);
    let read = read_in(directory.path(), None, None).unwrap();
    assert_eq!((read.refused.len(), read.settings.len()), (0, 1));
}

#[test]
fn a_configuration_becomes_a_prediction_of_its_server() {
    let directory = files(&[(
        "my.cnf",
        "[mysqld]\ninnodb_buffer_pool_size=50G\nskip-log-bin\n",
    )]);
    let settings = read_in(directory.path(), Some(Product::MySql), version("8.0.33")).unwrap();
    let server = evidence(
        "a",
        &settings,
        Some(Product::MySql),
        version("8.0.33"),
        Machine::default(),
    )
    .unwrap();
    assert!(server.is_predicted);
    assert_eq!(server.variables["log_bin"], "OFF");
    assert_eq!(server.variables["innodb_buffer_pool_size"], "53687091200");
    assert!(
        evidence("a", &settings, None, None, Machine::default())
            .unwrap_err()
            .to_string()
            .contains("--product-a")
    );
}

#[test]
fn what_no_server_takes_is_kept_with_its_place() {
    for (line, column, expected) in [
        ("innodb_buffer_pool_size=banana", 25, "a number"),
        (
            "  innodb-flush-method =  'O_DIRCT'",
            26,
            "O_DIRECT_NO_FSYNC",
        ),
        ("innodb_io_capacity", 1, "a number"),
        (
            "aria_block_size=8192",
            17,
            "an option of MariaDB 10.1 to 11.8",
        ),
        (
            "innodb_warp_factor = 9",
            22,
            "is not an option of this server",
        ),
        (
            "innodb_redo_log_capacity=1G",
            26,
            "an option of MySQL 8.0 to 9.7",
        ),
    ] {
        let directory = files(&[
            ("my.cnf", "[mysqld]\n!include more.cnf\n"),
            ("more.cnf", &format!("[mysqld]\n\n{line}\nback_log=7\n")),
        ]);
        let (product, version) = (Some(Product::MySql), version("5.6.24"));
        let settings = read_in(directory.path(), product, version).unwrap();
        let server = evidence("a", &settings, product, version, Machine::default()).unwrap();
        let [refused] = server.refused.as_slice() else {
            panic!("{line}: {:?}", server.refused);
        };
        let place = format!("more.cnf:3:{column}");
        assert!(refused.place.ends_with(&place), "{refused:?}");
        assert!(refused.why.contains(expected), "{refused:?}");
        assert_eq!(server.asked.len(), 1, "what is not taken was not asked for");
    }
}

#[test]
fn what_the_nearest_recorded_series_reject_is_a_doubt_that_says_inferred() {
    for (line, is_refused) in [
        ("key_buffer=16M", true),
        ("key_buffer_size=16M", false),
        ("rocksdb_block_cache_size=1G", false),
    ] {
        let directory = files(&[("my.cnf", &format!("[mysqld]\n{line}\n"))]);
        let (product, version) = (Some(Product::MySql), version("8.4.8"));
        let settings = read_in(directory.path(), product, version).unwrap();
        let server = evidence("a", &settings, product, version, Machine::default()).unwrap();
        let refused: Vec<bool> = server.refused.iter().map(|one| one.is_inferred).collect();
        assert_eq!(refused, vec![true; usize::from(is_refused)], "{line}");
        let case = Case::of(vec![
            server.clone(),
            ServerEvidence {
                name: "b".to_owned(),
                ..server
            },
        ]);
        let audit = dbduel_audit::audit(&case);
        let mut found = audit.findings.iter();
        let found = found.find(|one| one.rule == "R46");
        assert_eq!(found.is_some(), is_refused, "{line}");
        if let Some(found) = found {
            assert_eq!(found.severity, Severity::Doubt);
            assert!(found.claim.contains("probably rejects"), "{}", found.claim);
            assert!(found.claim.contains("inferred from"), "{}", found.claim);
            assert!(audit.findings.iter().all(|one| one.rule != "R17"));
        }
    }
}

#[test]
fn forms_of_names_are_understood() {
    for (line, variable, value) in [
        ("loose-innodb_io_capacity=900", "innodb_io_capacity", "900"),
        ("innodb-doublewrit=0", "innodb_doublewrite", "OFF"),
        ("skip-innodb-doublewrite", "innodb_doublewrite", "OFF"),
        ("skip-innodb-doublewrite=0", "innodb_doublewrite", "ON"),
        (
            "disable-innodb_file_per_table",
            "innodb_file_per_table",
            "OFF",
        ),
        ("enable-general-log", "general_log", "ON"),
        ("loose-skip-innodb-doublewrite", "innodb_doublewrite", "OFF"),
        ("maximum-sort-buffer-size=1M", "sort_buffer_size", "262144"),
        ("loose-nonsense=1", "innodb_doublewrite", "ON"),
    ] {
        let directory = files(&[("my.cnf", &format!("[mysqld]\n{line}\n"))]);
        let (product, version) = (Some(Product::MySql), version("5.6.24"));
        let settings = read_in(directory.path(), product, version).unwrap();
        let server = evidence("a", &settings, product, version, Machine::default()).unwrap();
        assert_eq!(server.variables[variable], value, "{line}");
        assert!(server.refused.is_empty(), "{line}: {:?}", server.refused);
    }
}

#[test]
fn what_is_included_and_not_there_is_named() {
    let directory = files(&[(
        "my.cnf",
        "[mysqld]\nport=1\n!include gone.cnf\n!includedir /etc/no-such-place.d/\n",
    )]);
    let (product, version) = (Some(Product::MySql), version("5.6.24"));
    let settings = read_in(directory.path(), product, version).unwrap();
    let server = evidence("a", &settings, product, version, Machine::default()).unwrap();
    let missing: Vec<(bool, &str)> = server
        .missing_includes
        .iter()
        .map(|missing| (missing.place.contains("my.cnf:"), missing.target.as_str()))
        .collect();
    assert_eq!(
        missing,
        [(true, "gone.cnf"), (true, "/etc/no-such-place.d/")]
    );
    assert!(server.missing_includes[1].place.ends_with("my.cnf:4"));
}

/// The paths in a published file are those of the machine that it was copied from.
#[test]
fn published_files_include_from_their_archive_and_not_from_this_machine() {
    let outside = files(&[("secret.cnf", "[mysqld]\nport=9\n")]);
    let secret = outside.path().join("secret.cnf");
    let content = format!(
        "[mysqld]\n!includedir /etc/mysql/conf.d/\n!include {}\n!include ../../../secret.cnf\n",
        secret.display()
    );
    let archive = files(&[
        ("run/my.cnf", &content),
        ("run/conf.d/a.cnf", "[mysqld]\nport=2\n"),
    ]);
    let path = archive.path().join("run/my.cnf");
    let settings = read(&path, None, None, &Includes::from([archive.path()])).unwrap();
    let values: Vec<&str> = settings.settings.iter().map(value_of).collect();
    assert_eq!(values, ["2"]);
    let targets: Vec<&str> = settings
        .missing
        .iter()
        .map(|one| one.target.as_str())
        .collect();
    assert_eq!(targets, [secret.to_str().unwrap(), "../../../secret.cnf"]);
}
