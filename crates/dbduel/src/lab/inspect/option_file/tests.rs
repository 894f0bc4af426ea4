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

fn version(text: &str) -> Option<Version> {
    Version::parse(text)
}

#[track_caller]
fn check(product: Product, wanted: &str, content: &str, expected: &[(&str, &str)]) {
    let directory = files(&[("my.cnf", content)]);
    let read = read(
        &directory.path().join("my.cnf"),
        Some(product),
        version(wanted),
    )
    .unwrap();
    let settings: Vec<(&str, &str)> = read
        .settings
        .iter()
        .map(|setting| (setting.name.as_str(), setting.value.as_str()))
        .collect();
    assert_eq!(settings, expected);
}

#[test]
fn sections_of_the_server_and_its_version_count() {
    let content = "[client]\nport=1\n[mysqld]\na=1\n[mysqld-5.6]\nb=2\n[mysqld-5.7]\nc=3\n[mariadb]\nd=4\n[server]\ne=5\n[mysqldump]\nf=6\n[mariadb-10.1]\ng=7\n";
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
        &[("a", "1"), ("d", "4"), ("e", "5"), ("g", "7")],
    );
}

#[test]
fn values_lose_quotes_and_comments() {
    let content = "[mysqld]\n# note\n; note\ninnodb-log-file-size = 8G # large\nskip-log-bin\nsql_mode=\"A,B\" # c\nloose-x='a b'\ninit_connect=SET\\sx\nempty=\n";
    let expected = [
        ("innodb_log_file_size", "8G"),
        ("skip_log_bin", ""),
        ("sql_mode", "A,B"),
        ("x", "a b"),
        ("init_connect", "SET x"),
        ("empty", ""),
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
    let read = read(&directory.path().join("my.cnf"), None, None).unwrap();
    let values: Vec<&str> = read
        .settings
        .iter()
        .map(|setting| setting.value.as_str())
        .collect();
    assert_eq!(values, ["1", "2", "3", "4", "9"]);
    assert_eq!(read.files.len(), 4);
}

#[track_caller]
fn check_error(contents: &[(&str, &str)], expected: &str) {
    let directory = files(contents);
    let error = read(&directory.path().join("my.cnf"), None, None)
        .unwrap_err()
        .to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn broken_configurations_are_errors_with_a_line() {
    check_error(
        &[
            ("my.cnf", "[mysqld]\n!include b.cnf\n"),
            ("b.cnf", "[mysqld]\n\n!include my.cnf\n"),
        ],
        "line 3: ",
    );
    check_error(&[("my.cnf", "[mysqld]\n!include my.cnf\n")], "in a circle");
    check_error(&[("my.cnf", "[mysqld]\n!includedir .\n")], "in a circle");
    check_error(&[("my.cnf", "[mysqld]\n!include gone.cnf\n")], "line 2: `");
    check_error(&[("my.cnf", "a=1\n")], "line 1: a setting before");
    check_error(&[("my.cnf", "[mysqld\n")], "line 1: the name of a section");
    check_error(&[("my.cnf", "[mysqld]\n!source x\n")], "line 2: `!source`");
    check_error(&[("my.cnf", "[mysqld]\na b c\n")], "line 2: `a b c` is not");
    check_error(&[("my.cnf", "[mysqld]\na=\0\n")], "line 2: this is no text");
    let deep: Vec<(String, String)> = (0..12)
        .map(|at| {
            (
                format!("{at}.cnf"),
                format!("[mysqld]\n!include {}.cnf\n", at + 1),
            )
        })
        .collect();
    let mut contents: Vec<(&str, &str)> = deep
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_str()))
        .collect();
    contents.push(("my.cnf", "[mysqld]\n!include 0.cnf\n"));
    check_error(&contents, "nested deeper");
}

#[test]
fn a_configuration_becomes_a_prediction_of_its_server() {
    let directory = files(&[(
        "my.cnf",
        "[mysqld]\ninnodb_buffer_pool_size=50G\nskip-log-bin\n",
    )]);
    let settings = read(
        &directory.path().join("my.cnf"),
        Some(Product::MySql),
        version("8.0.33"),
    )
    .unwrap();
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
fn a_value_that_no_server_takes_is_an_error_with_its_place() {
    for (line, column, expected) in [
        ("innodb_buffer_pool_size=banana", 25, "a number"),
        (
            "  innodb-flush-method =  'O_DIRCT'",
            26,
            "O_DIRECT_NO_FSYNC",
        ),
        ("innodb_io_capacity", 1, "a number"),
    ] {
        let directory = files(&[
            ("my.cnf", "[mysqld]\n!include more.cnf\n"),
            ("more.cnf", &format!("[mysqld]\n\n{line}\n")),
        ]);
        let (product, version) = (Some(Product::MySql), version("5.6.24"));
        let settings = read(&directory.path().join("my.cnf"), product, version).unwrap();
        let error = evidence("a", &settings, product, version, Machine::default()).unwrap_err();
        let said = error.to_string();
        let place = format!("more.cnf`, line 3, column {column}: ");
        assert!(said.contains(&place) && said.contains(expected), "{said}");
    }
}
