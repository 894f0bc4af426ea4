//! What scripts may rely on and what they may not do, without a server.

use std::time::{Duration, Instant};

use dbduel_lua::{CommandKind, Host, Limits, OptionError, OptionValue, Script, ScriptError};

use crate::support::{Printed, Size, alone, given, load_of, ready, run};

/// A host of `text`, and what it prints.
fn host(text: &str, command: &str) -> (Host, Printed) {
    let printed = Printed::default();
    let script = Script::from_text("mine.lua", text.as_bytes().to_vec());
    let host =
        Host::load(alone(script, command, &printed)).unwrap_or_else(|error| panic!("{error}"));
    (host, printed)
}

fn failure(text: &str) -> ScriptError {
    let script = Script::from_text("mine.lua", text.as_bytes().to_vec());
    match Host::load(alone(script, "run", &Printed::default())) {
        Ok(_) => panic!("`{text}` was taken"),
        Err(error) => error,
    }
}

/// Events of one client alone.
fn one(events: u64) -> Size {
    Size {
        clients: 1,
        ..load_of(events)
    }
}

#[test]
fn functions_are_called_in_the_order_of_a_life() {
    let text = r#"
        print(sysbench.tid, sysbench.cmdline.command, sysbench.cmdline.script_path, sysbench.cmdline.argv[0])
        function init() print("init", sysbench.opt.threads) end
        function thread_init(id) print("thread_init", id, sysbench.tid) end
        function event(id) print("event", id) end
        function thread_done(id) print("thread_done", id) end
        function done() print("done") end
    "#;
    let (mut host, printed) = host(text, "run");
    host.set_options(&[]).unwrap();
    let done = run(&mut host, one(2)).unwrap();
    assert_eq!(
        (done.interval_stats.counts.events, done.shares[0].events),
        (2, 2)
    );
    let expected = "0\trun\tmine.lua\tdbduel\ninit\t2\n0\trun\tmine.lua\tdbduel\nthread_init\t0\t0\nevent\t0\nevent\t0\n\
                    thread_done\t0\ndone\n";
    assert_eq!(*printed.lock().unwrap(), expected);
}

#[test]
fn an_event_that_returns_something_ends_its_client_and_does_not_count() {
    for (value, events) in [("0", 0), ("true", 0), ("{}", 0), ("nil", 3), ("false", 3)] {
        let (mut host, _) = host(&format!("function event() return {value} end"), "run");
        let done = run(&mut host, one(3)).unwrap();
        assert_eq!(done.interval_stats.counts.events, events, "{value}");
    }
}

#[test]
fn a_script_may_have_a_loop_of_its_own() {
    let text = r#"
        local ffi = require("ffi")
        ffi.cdef "void sb_event_start(int); void sb_event_stop(int); bool sb_more_events(int);"
        function event() error("nobody calls it") end
        function thread_run(id)
            while ffi.C.sb_more_events(id) do
                ffi.C.sb_event_start(id)
                ffi.C.usleep(1000)
                ffi.C.sb_event_stop(id)
            end
        end
    "#;
    let (mut host, _) = host(text, "run");
    let interval_stats = run(&mut host, one(4)).unwrap().interval_stats;
    assert_eq!(interval_stats.counts.events, 4);
    let shortest = interval_stats.latency_ns_min;
    assert!(shortest >= 990_000, "{shortest} ns");
}

#[test]
fn pauses_of_clients_on_one_thread_overlap() {
    // Each event begins and then pauses until all have begun, which none would see if its pause held up the thread.
    let text = r#"
        local ffi = require("ffi")
        ffi.cdef "int usleep(unsigned);"
        function event()
            local file = io.open(PLACE, "a")
            file:write("x")
            file:close()
            for _ = 1, 3000 do
                ffi.C.usleep(10000)
                file = io.open(PLACE)
                local begun = file:seek("end")
                file:close()
                if begun == 20 then return end
            end
            error("it paused alone")
        end
    "#;
    let folder = tempfile::tempdir().unwrap();
    let place = format!("{:?}", folder.path().join("begun"));
    let (mut host, _) = host(&text.replace("PLACE", &place), "run");
    let size = Size {
        clients: 20,
        threads: 1,
        ..load_of(20)
    };
    let load = ready(&mut host, size).unwrap();
    load.begin();
    assert_eq!(load.finish().unwrap().interval_stats.counts.events, 20);
}

#[test]
fn faults_are_told_with_file_line_and_calls() {
    assert_eq!(
        failure("x = \n = 1").to_string(),
        "mine.lua:2: unexpected symbol near '='"
    );
    let error = failure("local function inner() error('nonsense') end\n\ninner()");
    assert_eq!(error.to_string(), "mine.lua:1: nonsense");
    assert!(
        error.trace().unwrap().contains("mine.lua:3: in main chunk"),
        "{:?}",
        error.trace()
    );
    // An assertion does not know where it stands.
    assert_eq!(
        failure("\nassert(false, 'no luck')").to_string(),
        "mine.lua:2: no luck"
    );
    let (mut host, printed) = host(
        "function event()\n local x = nil\n return x.field\nend",
        "run",
    );
    let error = run(&mut host, one(1)).unwrap_err();
    assert_eq!(
        error,
        "`thread_run' function failed: mine.lua:3: attempt to index local 'x' (a nil value)"
    );
    assert!(
        printed
            .lock()
            .unwrap()
            .contains("mine.lua:3: in function 'event'"),
        "{printed:?}"
    );
    let (mut host, _) = self::host("x = 1", "run");
    assert_eq!(
        run(&mut host, one(1)).unwrap_err(),
        "cannot find the event() function in mine.lua"
    );
    // As in sysbench's own module for its scripts.
    let (mut host, _) = self::host("function init() error('only to be included', 0) end", "run");
    let error = run(&mut host, one(1)).unwrap_err();
    assert!(error.contains("only to be included"), "{error}");
    assert!(
        failure("require('no_such_module')")
            .to_string()
            .contains("no_such_module")
    );
}

#[test]
fn an_endless_script_is_ended() {
    let with_limits = |text: &str, limits: Limits| {
        let script = Script::from_text("mine.lua", text.as_bytes().to_vec());
        let mut settings = alone(script, "run", &Printed::default());
        settings.limits = limits;
        Host::load(settings)
    };
    let in_time = |text: &str| {
        let computing = Duration::from_millis(300);
        with_limits(
            text,
            Limits {
                computing,
                ..Limits::default()
            },
        )
    };
    let in_memory = |text: &str| {
        let memory_bytes = 16 << 20;
        with_limits(
            text,
            Limits {
                memory_bytes,
                ..Limits::default()
            },
        )
    };
    let began = Instant::now();
    let error = in_time("while true do end").err().unwrap().to_string();
    assert!(
        error.contains("mine.lua:1") && error.contains("has computed for more than 0.3 s"),
        "{error}"
    );
    let mut host =
        in_time("function event() local n = 0 repeat n = n + 1 until false end").unwrap();
    let error = run(&mut host, one(1)).unwrap_err();
    assert!(error.contains("has computed for more"), "{error}");
    let error = in_memory("local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end")
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("not enough memory"), "{error}");
    let text = "function prepare() end\nfunction event() local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end end";
    let error = run(&mut in_memory(text).unwrap(), one(1)).unwrap_err();
    assert!(
        error.contains("not enough memory") && error.contains("mine.lua:2"),
        "{error}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(120),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn options_have_types_defaults_and_validators() {
    let text = r#"
        sysbench.cmdline.options = {
            ["with-dash"] = {"A number", 5},
            flag = {"A switch", false},
            size = {"A size", "1K", sysbench.cmdline.ARG_SIZE},
            names = {"A list", {"a", "b"}},
            even = {"Even", "2", sysbench.cmdline.ARG_INT, function(name, text) return tonumber(text) % 2 == 0 end},
            bare = {"Without default"},
            bare_flag = {"Without default", nil, sysbench.cmdline.ARG_BOOL},
        }
        assert(next(sysbench.opt) == nil, "options are not known while the script is loaded")
        function help() sysbench.cmdline.print_test_options() end
        function show()
            local o = sysbench.opt
            print(o.with_dash, o.flag, o.size, o.names[1], #o.names, o.even, "<" .. o.bare .. ">", o.bare_flag, o.percentile)
        end
        sysbench.cmdline.commands = { show = {show}, fails = {function() return false end},
                                      all = {function() print("here") end, sysbench.cmdline.PARALLEL_COMMAND} }
    "#;
    let shown = |options: &[(&str, &str)]| {
        let (mut host, printed) = host(text, "show");
        host.set_options(&given(options)).map(|()| {
            assert!(host.run_command("show", 1).unwrap());
            printed.lock().unwrap().clone()
        })
    };
    assert_eq!(
        shown(&[]).unwrap(),
        "5\tfalse\t1024\ta\t2\t2\t<>\ttrue\t95\n"
    );
    let options = [
        ("with_dash", "7"),
        ("flag", "on"),
        ("size", "2M"),
        ("names", "x,y,z"),
        ("even", "4"),
    ];
    assert_eq!(
        shown(&options).unwrap(),
        "7\ttrue\t2097152\tx\t3\t4\t<>\ttrue\t95\n"
    );
    assert!(matches!(
        shown(&[("even", "3")]),
        Err(OptionError::Invalid { .. })
    ));
    assert!(matches!(
        shown(&[("size", "2X")]),
        Err(OptionError::Invalid { .. })
    ));
    let error = shown(&[("with-dahs", "3")]).unwrap_err().to_string();
    assert_eq!(
        error,
        "invalid option: --with-dahs; did you mean --with-dash?"
    );

    let (mut host, printed) = host(text, "help");
    host.set_options(&[]).unwrap();
    assert_eq!(host.command("show"), Some(CommandKind::Plain));
    assert_eq!(host.command("all"), Some(CommandKind::Parallel));
    assert_eq!(host.command("prepare"), None);
    assert!(!host.run_command("fails", 1).unwrap());
    assert!(host.run_command("all", 3).unwrap() && host.run_command("help", 1).unwrap());
    let printed = printed.lock().unwrap().clone();
    assert_eq!(printed.matches("here").count(), 3);
    assert!(
        printed.contains("  --with-dash=N        A number [5]\n"),
        "{printed}"
    );
}

#[test]
fn a_script_of_old_gets_its_options_as_globals() {
    let (mut host, printed) = host(
        "function prepare() print(oltp_table_size, num_threads, db_driver, test) end",
        "prepare",
    );
    assert!(host.declared_options().is_none());
    host.set_options(&given(&[("oltp-table-size", "77")]))
        .unwrap();
    host.run_command("prepare", 1).unwrap();
    assert_eq!(*printed.lock().unwrap(), "77\t2\tmysql\tmine.lua\n");
}

#[test]
fn bounds_of_random_numbers_may_be_numeric_texts() {
    let text = r#"
        function event()
           for _, name in ipairs { "default", "uniform", "gaussian", "special", "pareto", "zipfian" } do
              local number = sysbench.rand[name]("5", "9")
              assert(number >= 5 and number <= 9, name)
           end
           assert(sb_rand(7, "7") == 7 and sb_rand_uniform("7", 7) == 7)
           assert(not pcall(sb_rand, 1, "many") and not pcall(sb_rand, 1))
           print("drawn")
        end
    "#;
    let (mut host, printed) = host(text, "run");
    run(&mut host, one(1)).unwrap();
    assert_eq!(*printed.lock().unwrap(), "drawn\n");
}

#[test]
fn a_command_that_cannot_be_started_is_a_matter_of_the_script() {
    // Longer than the system lets an argument be; the status is that of a shell that could not be executed.
    let text = "function event() print(os.execute(('x'):rep(300000))) end";
    let (mut host, printed) = host(text, "run");
    run(&mut host, one(1)).unwrap();
    assert_eq!(*printed.lock().unwrap(), "32512\n");
}

#[test]
fn reports_and_histograms_print_as_in_sysbench() {
    let text = r#"
        sysbench.hooks.report_intermediate = sysbench.report_csv
        sysbench.hooks.report_cumulative = sysbench.report_json
        function prepare()
            local h = sysbench.histogram.new(1000, 1, 10)
            h:update(0.5); h:update(5); h:update(5); h:update(100)
            h:print()
        end
    "#;
    let (mut host, printed) = host(text, "prepare");
    host.set_options(&[]).unwrap();
    let stat = [
        ("time_interval", 2.0),
        ("time_total", 4.0),
        ("threads_running", 3.0),
        ("events", 10.0),
        ("reads", 20.0),
        ("writes", 4.0),
        ("other", 2.0),
        ("errors", 1.0),
        ("reconnects", 0.0),
        ("latency_pct", 0.0015),
    ];
    assert!(host.has_hook("report_intermediate") && !host.has_hook("before_restart_event"));
    let mut reporter = host.reporter().unwrap();
    reporter
        .call_report_hook("report_intermediate", &stat)
        .unwrap();
    reporter
        .call_report_hook("report_cumulative", &stat)
        .unwrap();
    drop(reporter);
    let text = std::mem::take(&mut *printed.lock().unwrap());
    let (csv, json) = text.split_once('\n').unwrap();
    assert_eq!(csv, "4,3,5.00,13.00,10.00,2.00,1.00,1.50,0.50,0.00");
    let json: serde_json::Value =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(json[0]["qps"]["total"], 13.0);
    host.run_command("prepare", 1).unwrap();
    let half = "*".repeat(20);
    assert_eq!(
        *printed.lock().unwrap(),
        format!(
            "       value  ------------- distribution ------------- count\n       1.000 |{half:<40} 1\n       \
             4.997 |{:<40} 2\n      10.000 |{half:<40} 1\n",
            "*".repeat(40)
        )
    );
}

#[test]
fn values_of_options_reach_scripts_in_their_types() {
    let printed = Printed::default();
    let script = Script::from_text(
        "mine.lua",
        b"function prepare() print(type(sysbench.opt.list), sysbench.opt.on) end".to_vec(),
    );
    let mut settings = alone(script, "prepare", &printed);
    settings
        .options
        .insert("list".to_owned(), OptionValue::List(vec!["a".to_owned()]));
    settings
        .options
        .insert("on".to_owned(), OptionValue::Bool(true));
    let mut host = Host::load(settings).unwrap();
    host.set_options(&[]).unwrap();
    host.run_command("prepare", 1).unwrap();
    assert_eq!(*printed.lock().unwrap(), "table\ttrue\n");
}
