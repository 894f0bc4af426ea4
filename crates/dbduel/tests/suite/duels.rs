//! Short real duels, from the experiment file to the report.

use std::sync::Arc;

use dbduel_record::event::Event;
use dbduel_record::rows::ALL_CLASSES;
use serde_json::Value;

use super::finished;
use super::lab::{
    Lab, count, follows_the_plan, program, servers_left, short_experiment, with_budget,
};
use super::observe::TWO_PRODUCTS;

/// The contest of the experiment, with all that must hold of any finished one checked.
fn duel(experiment: &str) -> Arc<Lab> {
    let lab = finished::contest(experiment);
    let record = lab.record();
    assert_eq!(record.complaints, []);
    assert!(follows_the_plan(&record, &record.plan));
    assert!(
        record.finished_slices().count() >= 4,
        "a block of four slices"
    );
    for row in &record.slices {
        assert_eq!(
            row.due,
            row.ok + row.failed + row.skipped + row.unfinished,
            "{row:?}"
        );
        assert!(row.ok > 0 && row.failed == 0, "{row:?}");
    }
    let digests: Vec<&String> = record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            Event::DatasetReady {
                digest,
                rows: 4_000,
                ..
            } => Some(digest),
            _ => None,
        })
        .collect();
    assert_eq!(digests.len(), 2);
    assert_eq!(digests[0], digests[1], "both hold the same data");
    for contender in &record.contenders {
        assert!(contender.variables_before.len() > 200 && contender.status_after.len() > 200);
        assert!(
            contender
                .build
                .as_ref()
                .is_some_and(|build| build.managed && !build.version.is_empty())
        );
        let size = contender.size.unwrap();
        let files = size.after_files.unwrap();
        assert_eq!(files.total().bytes, size.after_bytes);
        // 4,000 rows take about a megabyte.
        assert!((1 << 19..1 << 24).contains(&files.data.bytes), "{files:?}");
        assert!(
            files.redo.bytes > files.data.bytes && files.system.bytes > 0,
            "{files:?}"
        );
    }
    lab
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_server_duels_with_itself() {
    let lab = duel(&short_experiment(["mariadb-10.11", "mariadb-10.11"], ""));

    // The report again, twice, on the record alone: the same bytes.
    let render = |format: &str| {
        program()
            .arg("report")
            .arg(lab.record_dir())
            .args(["--format", format])
            .output()
            .unwrap()
            .stdout
    };
    for format in ["terminal", "html", "markdown", "json"] {
        let first = render(format);
        assert!(!first.is_empty() && first == render(format), "{format}");
    }
    let json: Value = serde_json::from_slice(&render("json")).unwrap();
    assert!(json["schema_version"].is_number(), "{json}");
    let html = std::fs::read_to_string(lab.record_dir().join("report.html")).unwrap();
    assert!(html.contains("<svg"));
    for foreign in ["src=\"http", "href=\"http", "url(http", "@import", "<link"] {
        assert!(
            !html.contains(foreign),
            "the page is self-contained, but has `{foreign}`"
        );
    }
}

/// A script whose transactions are of three classes, one of them too rare to be compared.
const CLASSES: &str = r#"
local con, n = nil, 0
function thread_init() con = sysbench.sql.driver():connect() end
function prepare()
   con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE classes (id INT PRIMARY KEY, k INT NOT NULL)")
   con:bulk_insert_init("INSERT INTO classes VALUES")
   for i = 1, 200 do con:bulk_insert_next("(" .. i .. ", 0)") end
   con:bulk_insert_done()
end
function cleanup() sysbench.sql.driver():connect():query("DROP TABLE IF EXISTS classes") end
function lookup() con:query("SELECT k FROM classes WHERE id = 1") end
function change() con:query("UPDATE classes SET k = k + 1 WHERE id = " .. 1 + n % 200) end
function seldom() con:query("SELECT COUNT(*) FROM classes") end
function event()
   n = n + 1
   if n % 97 == 0 then seldom() elseif n % 3 == 0 then change() else lookup() end
end
"#;

#[test(lab, needs = &["mariadb-10.11"])]
fn a_script_with_classes_has_their_figures_in_every_report() {
    let experiment = short_experiment(["mariadb-10.11", "mariadb-10.11"], "").replace(
        "name = \"oltp-point-select\"\ntables = 2\ntable_size = 2_000\n",
        "script = \"classes.lua\"\nclasses = \"lookup, change, seldom\"\n",
    );
    let lab = Lab::new(&experiment);
    std::fs::write(lab.path().join("classes.lua"), CLASSES).unwrap();
    lab.run_to_the_end();
    let dir = lab.record_dir();
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).unwrap();
    let json: Value = serde_json::from_str(&read("report.json")).unwrap();
    let cells = json["summary"]["classes"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "{cells:?}");
    for (cell, name) in cells.iter().zip(["first", "second"]) {
        assert_eq!(cell["contender"], name);
        let classes = cell["classes"].as_array().unwrap();
        let share = |class: &str| {
            let mut of = classes.iter().filter(|one| one["class"] == class);
            of.next().unwrap()["share_percent"].as_f64().unwrap()
        };
        assert_eq!(classes.len(), 3, "{classes:?}");
        assert!((32.0..35.0).contains(&share("change")), "{classes:?}");
        assert!((65.0..67.0).contains(&share("lookup")), "{classes:?}");
        assert!((0.5..1.5).contains(&share("seldom")), "{classes:?}");
        let ok: u64 = classes.iter().map(|one| one["ok"].as_u64().unwrap()).sum();
        let measured = lab.record().slices;
        let counted = measured
            .iter()
            .filter(|row| row.contender == name && row.class == ALL_CLASSES);
        assert_eq!(ok, counted.map(|row| row.ok).sum::<u64>());
        let compared = classes[0]["against_baseline"].as_array().unwrap().len();
        assert_eq!(compared, if name == "first" { 0 } else { 2 });
    }
    for file in ["report.html", "report.md"] {
        let text = read(file);
        for part in [
            "Transaction classes",
            "lookup",
            "change",
            "seldom",
            "p99 ratio",
        ] {
            assert!(text.contains(part), "{file}: no `{part}`");
        }
    }
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_script_that_fails_again_at_one_line_ends_the_contest_with_that_line() {
    let experiment = short_experiment(["mariadb-10.11", "mariadb-10.11"], "").replace(
        "name = \"oltp-point-select\"\ntables = 2\ntable_size = 2_000\n",
        "script = \"classes.lua\"\n",
    );
    let lab = Lab::new(&experiment);
    let script = CLASSES.replace("   n = n + 1\n", "   n = n + 1\n   n.field = 1\n");
    let line = 1 + script
        .lines()
        .position(|line| line.contains("n.field"))
        .unwrap();
    std::fs::write(lab.path().join("classes.lua"), script).unwrap();
    let output = lab.run();
    let said = lab.said() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let place = format!("classes.lua:{line}: attempt to index");
    assert!(said.contains(&place), "{said}");
    let report = std::fs::read_to_string(lab.record_dir().join("report.md")).unwrap();
    assert!(report.contains(&format!("classes.lua:{line}")), "{report}");
}

#[test(lab, needs = &["mysql-5.6.24", "mariadb-10.11"])]
fn mysql_duels_with_mariadb() {
    let lab = duel(TWO_PRODUCTS);
    let record = lab.record();
    let products: Vec<&str> = record
        .contenders
        .iter()
        .filter_map(|contender| contender.build.as_ref())
        .map(|build| build.product.as_str())
        .collect();
    assert_eq!(products, ["MySQL", "MariaDB"]);
}

#[test(lab, needs = &["mysql-9.7", "mysql-5.6.24"])]
fn mysql_9_duels_with_mysql_5_6() {
    // By their defaults they are not comparable: the newer one writes a binary log.
    let text = short_experiment(["mysql-9.7", "mysql-5.6.24"], "");
    let refused = Lab::new(&text).run();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(
        said.contains("not comparable") && said.contains("D4: Binary log"),
        "{said}"
    );
    assert_eq!(servers_left(), []);

    let waivers = "[waivers]\nD4 = \"this is about protocols, not about logs\"\nS2 = \"numbers have no collation\"\n";
    let lab = duel(&(text + waivers));
    let record = lab.record();
    let versions: Vec<&str> = record
        .contenders
        .iter()
        .filter_map(|contender| contender.build.as_ref())
        .map(|build| build.version.as_str())
        .collect();
    assert!(
        versions[0].starts_with("9.") && versions[1].starts_with("5.6."),
        "{versions:?}"
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn three_contenders_and_two_load_levels_write() {
    let text = short_experiment(
        ["mariadb-10.11", "mariadb-10.11"],
        "[contenders.third]\nlike = \"second\"\n",
    )
    .replace("clients = 4", "clients = [1, 4]")
    .replace("oltp-point-select", "oltp-read-write");
    let lab = Lab::new(&with_budget(&text, "26 s"));
    let mut run = lab.spawn();
    lab.wait_until(
        &mut run,
        "two slices of each contender at each level",
        || {
            lab.begun().is_some_and(|record| {
                let has_two = |clients: u32, contender: &str| {
                    let slices = record
                        .slices
                        .iter()
                        .filter(|row| row.clients == clients && row.contender == contender);
                    slices.count() >= 2
                };
                [1, 4].into_iter().all(|clients| {
                    ["first", "second", "third"]
                        .into_iter()
                        .all(|contender| has_two(clients, contender))
                })
            })
        },
    );
    lab.interrupt(&mut run);
    let record = lab.record();
    assert!(follows_the_plan(&record, &record.plan));
    assert!(
        record
            .slices
            .iter()
            .all(|row| row.ok > 0 && row.failed == 0)
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn a_snapshot_is_restored_for_the_next_duel() {
    // A size of its own, so that no other test has left a snapshot of it.
    let text = short_experiment(["mariadb-10.11", "mariadb-10.11"], "").replace("2_000", "2_100");
    let key = || {
        let list = program()
            .args(["datasets", "list", "--json"])
            .output()
            .unwrap();
        let list: Vec<Value> = serde_json::from_slice(&list.stdout).unwrap();
        let own = list
            .into_iter()
            .find(|entry| entry["snapshot"]["parameters"]["table_size"] == 2_100);
        own.map(|entry| entry["id"].as_str().unwrap().to_owned())
    };
    if let Some(old) = key() {
        assert!(
            program()
                .args(["datasets", "remove", &old])
                .status()
                .unwrap()
                .success()
        );
    }
    let restored = |lab: &Lab| {
        count(&lab.record(), |event| {
            matches!(event, Event::DatasetReady { restored: true, .. })
        })
    };
    let begun = || {
        let lab = Lab::new(&text);
        let mut run = lab.spawn();
        lab.wait_for_slices(&mut run, 1);
        lab.interrupt(&mut run);
        lab
    };
    let first = begun();
    // The second contender has the same server and settings and is served by the first one's snapshot.
    assert_eq!(restored(&first), 1);
    let second = begun();
    assert_eq!(restored(&second), 2);
    assert!(
        program()
            .args(["datasets", "remove", &key().unwrap()])
            .status()
            .unwrap()
            .success()
    );
}
