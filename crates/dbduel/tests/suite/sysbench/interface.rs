//! What the command line says of options and errors, beside sysbench itself.

use super::*;

/// Runs the words by both programs in a folder with this script; says what both print, on standard output and on standard
/// error, and that they end with the same code.
#[track_caller]
fn same_words(script: &str, words: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.lua"), script).unwrap();
    let words: Vec<&str> = words.split(' ').collect();
    let said = |output: &Output| {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (text(output), errors, output.status.code())
    };
    let mine = said(&ours(folder.path(), &words));
    if let Some(other) = theirs(folder.path(), &words) {
        assert_eq!(mine, said(&other), "{words:?}");
    }
    (mine.0, mine.1)
}

#[test]
fn an_error_of_a_script_is_one_line_with_the_prefix_of_sysbench() {
    for (script, words, line) in [
        (
            "function event() error('no luck') end",
            "run",
            "`thread_run' function failed: x.lua:1: no luck",
        ),
        (
            "function init() error('no luck') end function event() end",
            "run",
            "`init' function failed: x.lua:1: no luck",
        ),
        (
            "function thread_run() error('no luck') end function event() end",
            "run",
            "`thread_run' function failed: x.lua:1: no luck",
        ),
        (
            "function prepare() error('no luck') end",
            "prepare",
            "`prepare' function failed: x.lua:1: no luck",
        ),
        (
            "sysbench.cmdline.commands = { own = { function() error('no luck') end } }",
            "own",
            "`sysbench.cmdline.call_command' function failed: x.lua:1: no luck",
        ),
        ("error('no luck')", "run", "x.lua:1: no luck"),
        ("foo", "run", "x.lua:1: '=' expected near '<eof>'"),
        ("x = 1", "run", "cannot find the event() function in x.lua"),
    ] {
        let (said, _) = same_words(script, &format!("x.lua {words} --events=1 --verbosity=0"));
        assert_eq!(said, format!("FATAL: {line}\n"));
    }
    let (said, _) = same_words(
        "function thread_init() error('no luck') end function event() end",
        "x.lua run --verbosity=0",
    );
    assert_eq!(
        said,
        "FATAL: `thread_init' function failed: x.lua:1: no luck\nFATAL: Thread initialization failed!\n"
    );
    let (said, _) = same_words("", "nosuch run --verbosity=0");
    assert_eq!(
        said,
        "FATAL: Cannot find benchmark 'nosuch': no such built-in test, file or module\n"
    );
    let (said, _) = same_words(
        "function cleanup() sysbench.sql.driver() end",
        "x.lua --db-driver=nosuch cleanup --verbosity=0",
    );
    assert_eq!(
        said,
        "FATAL: invalid database driver name: 'nosuch'\n\
         FATAL: `cleanup' function failed: x.lua:1: failed to initialize the DB driver\n"
    );
}

#[test]
fn the_calls_that_led_to_an_error_are_shown_on_request() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("x.lua"),
        "function event() error('no luck') end",
    )
    .unwrap();
    let said = text(&ours(folder.path(), &["x.lua", "--debug", "run"]));
    assert!(said.contains("x.lua:1: in function 'event'"), "{said}");
}

#[test]
fn a_wrong_option_is_repeated_as_it_was_written() {
    let script = "sysbench.cmdline.options = { flag = { 'A flag', false } } function prepare() end";
    let (_, said) = same_words(script, "x.lua --no_such-option=3 prepare --verbosity=0");
    assert_eq!(said, "invalid option: --no_such-option=3\n");
    let (_, said) = same_words(script, "cpu --no-such-option run --verbosity=0");
    assert_eq!(said, "invalid option: --no-such-option\n");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.lua"), script).unwrap();
    let output = ours(folder.path(), &["x.lua", "--flag=5", "prepare"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "invalid option: --flag=5\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn wrong_values_and_files_are_reported_in_the_words_of_sysbench() {
    for (words, line) in [
        (
            "memory --memory-block-size=-1",
            "Invalid value for memory-block-size: -1",
        ),
        (
            "memory --memory-block-size=abc",
            "Invalid value for memory-block-size: abc",
        ),
        (
            "memory --memory-block-size=9",
            "Invalid value for memory-block-size: 9",
        ),
        (
            "fileio --file-test-mode=foo",
            "Invalid IO operations mode: foo.",
        ),
        (
            "fileio --file-test-mode=rndrd",
            "Cannot open file 'test_file.0' errno = 2 (No such file or directory)",
        ),
    ] {
        let (said, _) = same_words("", &format!("{words} run --verbosity=2"));
        assert_eq!(
            said.lines().next(),
            Some(format!("FATAL: {line}").as_str()),
            "{words}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        text(&ours(folder.path(), &words))
    };
    run("fileio --file-num=1 --file-total-size=256K prepare");
    assert_eq!(
        run("fileio --file-num=1 --file-total-size=8M --file-test-mode=rndrd --verbosity=0 run"),
        "FATAL: Size of file 'test_file.0' is 256KiB, but at least 8MiB is expected.\n\
         WARNING: Did you run 'prepare' with different --file-total-size or --file-num values?\n"
    );
    let script = "sysbench.cmdline.options = { {} } function help() end";
    std::fs::write(folder.path().join("x.lua"), script).unwrap();
    assert_eq!(
        run("x.lua --verbosity=0 help"),
        "FATAL: `sysbench.cmdline.read_cmdline_options' function failed: [string \"sysbench.cmdline.lua\"]: \
         '1' is not {description, default, type}: wrong table structure in sysbench.cmdline.options\n"
    );
}

#[test]
fn a_message_that_comes_again_is_counted() {
    let script = "function event()
           for _, name in ipairs { 'a', 'a', 'a', 'b', 'b' } do print(pcall(sysbench.sql.driver, name)) end
           print(pcall(sysbench.sql.driver, 'a'))
        end";
    let (said, _) = same_words(script, "x.lua run --events=1 --verbosity=0");
    assert_eq!(
        said.matches("(last message repeated 2 times)\n").count(),
        1,
        "{said}"
    );
    assert_eq!(
        said.matches("(last message repeated 1 times)\n").count(),
        1,
        "{said}"
    );
    assert_eq!(said.matches("FATAL").count(), 3, "{said}");
}

#[test]
fn a_script_from_standard_input_is_only_loaded() {
    for words in ["-", "- prepare", "- run"] {
        let (said, errors) = same_words("", &format!("{words} --verbosity=0"));
        assert_eq!((said.as_str(), errors.as_str()), ("", ""), "{words}");
    }
}

#[test]
fn a_host_without_address_has_the_error_number_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "function event() print(pcall(function() sysbench.sql.driver():connect() end)) end";
    std::fs::write(folder.path().join("x.lua"), script).unwrap();
    let words = "x.lua --mysql-host=nowhere.invalid --events=1 --verbosity=0 run";
    let said = text(&ours(folder.path(), &words.split(' ').collect::<Vec<_>>()));
    assert_eq!(
        said,
        "FATAL: unable to connect to MySQL server on host 'nowhere.invalid', port 3306, aborting...\n\
         FATAL: error 2005: Unknown MySQL server host 'nowhere.invalid' (0)\n\
         false\tx.lua:1: connection creation failed\n"
    );
}

#[test]
fn old_options_are_warned_of_where_sysbench_does() {
    let words = "--test=x.lua --num-threads=2 --max-requests=1 --max-time=5 --tx-rate=1000 --verbosity=0 run";
    let (said, errors) = same_words("function event() end", words);
    assert_eq!(said.lines().count(), 4, "{said}");
    assert!(
        errors.starts_with("WARNING: the --test option is deprecated."),
        "{errors}"
    );
}

#[test]
fn a_configuration_file_may_be_that_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[client]\nuser=anna\nthreads=2\n[sysbench]\ntime=1 # s\nevents=1\n";
    std::fs::write(folder.path().join("options.cnf"), file).unwrap();
    std::fs::write(
        folder.path().join("x.lua"),
        "sysbench.cmdline.options = {} function event() end",
    )
    .unwrap();
    for test in ["cpu", "x.lua"] {
        let output = ours(folder.path(), &["--config-file=options.cnf", test, "run"]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("\nNumber of threads: 2\n"), "{said}");
        assert!(
            said.contains("WARNING: unknown option --user=anna (options.cnf:2) is ignored\n"),
            "{said}"
        );
    }
}

#[test]
fn scripts_see_the_options_of_all_databases() {
    let script = "function prepare()
        for _, name in ipairs { 'mysql_password', 'mysql_user', 'pgsql_host', 'pgsql_port', 'pgsql_user', 'pgsql_password', 'pgsql_db' } do
           print(name, type(sysbench.opt[name]), sysbench.opt[name])
        end
        print(unpack(sysbench.cmdline.argv, 0))
     end";
    let (said, _) = same_words(
        script,
        "x.lua --mysql-password=secret --pgsql-port=7 --verbosity=0 prepare",
    );
    assert!(said.contains("mysql_password\tstring\tsecret\n"), "{said}");
    assert!(said.contains("pgsql_port\tnumber\t7\n"), "{said}");
}

#[test]
fn what_a_script_prints_comes_where_it_comes_in_sysbench() {
    let folder = tempfile::tempdir().unwrap();
    let script = "print('body') function init() print('init') end
        function thread_init() print('thread_init') end function event() print('event') end
        function done() print('done') end
        sysbench.cmdline.commands = { own = { function() print('own', sysbench.tid) end, sysbench.cmdline.PARALLEL_COMMAND } }";
    std::fs::write(folder.path().join("x.lua"), script).unwrap();
    let output = same_shape(folder.path(), &["x.lua", "--events=1", "run"]);
    let said = text(&output);
    assert!(
        said.find("\ninit\n") < said.find("Running the test"),
        "{said}"
    );
    let output = same_shape(folder.path(), &["x.lua", "own"]);
    assert!(!text(&output).contains("worker threads"), "{output:?}");
    // Both clients print at the same time.
    let output = ours(
        folder.path(),
        &["x.lua", "--threads=2", "--verbosity=0", "own"],
    );
    let said = text(&output);
    assert_eq!(
        (said.matches("body").count(), said.matches("own").count()),
        (3, 2),
        "{said}"
    );
}
