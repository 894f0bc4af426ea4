//! Contenders that store the same tables differently, and workloads that bring a configuration of their own.

use dbduel_record::event::Event;

use super::lab::{Lab, check_refused, plan_of};
use super::plans::plan;

/// One server, three ways to store a small graph; over in about a quarter of a minute.
const STORAGE: &str = r#"
budget = "14 s"
horizon = "25 %"
seed = 7
[contenders.plain]
server = "mariadb-10.11"
settings = { innodb_buffer_pool_size = "32M", innodb_flush_log_at_trx_commit = 2, innodb_log_file_size = "8M" }
[contenders.pages]
like = "plain"
tables = { page_compression = "zlib" }
[contenders.rows]
like = "plain"
tables = { row_format = "compressed", key_block_size = 8 }
[workload]
name = "linkbench"
maxid1 = 2_001
nlinks_max = 2_000
loaders = 3
[load]
clients = 4
[schedule]
slice = "100 ms"
guard = "10 ms"
warm_up = "300 ms"
"#;

#[test]
fn only_how_tables_are_stored_may_differ() {
    let lab = Lab::new(STORAGE);
    let plan = plan(&lab.experiment());
    let format_of = |contender: usize| {
        let workload = plan.workload_of(&plan.contenders[contender]);
        ["page_compression", "row_format"].map(|name| workload.parameters[name].clone())
    };
    assert_eq!(format_of(0), ["none", "default"]);
    assert_eq!(format_of(1), ["zlib", "default"]);
    assert_eq!(format_of(2), ["none", "compressed"]);
    check_refused(
        STORAGE,
        "{ page_compression",
        "{ maxid1 = 9, page_compression",
        "10:12",
        "would change the load",
    );
    check_refused(STORAGE, "\"zlib\"", "\"zip\"", "10:12", "one of");
    check_refused(
        STORAGE,
        "key_block_size = 8",
        "key_block_size = 7",
        "13:39",
        "1, 2, 4, 8 or 16",
    );
}

#[test]
fn a_configuration_of_the_original_is_imported() {
    let lab = Lab::new(
        &STORAGE
            .replace("maxid1 = 2_001\n", "config = \"link.properties\"\n")
            .replace("clients = 4\n", ""),
    );
    let write = |text: &str| std::fs::write(lab.path().join("link.properties"), text).unwrap();
    write(
        "# as published\nmaxid1 = 5001\nrequesters = 6\nrequestrate = 2.5\nloaders = 9\nhost = elsewhere\n",
    );
    let planned = plan(&lab.experiment());
    assert_eq!(planned.workload.parameters["maxid1"], 5_001);
    assert_eq!(
        planned.workload.parameters["loaders"], 3,
        "the experiment stands before the file"
    );
    assert_eq!(planned.levels[0].label(), "6 clients, 15/s Poisson");
    assert!(!planned.workload.parameters.contains_key("config"));
    write("maxid1 = 5001\nreqesters = 6\n");
    let refused = plan_of(&lab.experiment());
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("duel.toml:16:1: ") && said.contains("link.properties:2: `reqesters`"),
        "{said}"
    );
}

#[test(lab, needs = &["mariadb-10.11"])]
fn contenders_store_the_same_graph_differently() {
    let lab = Lab::new(STORAGE);
    let output = lab.run_to_the_end();
    let said = String::from_utf8_lossy(&output.stderr);
    let record = lab.record();
    let loads: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            Event::DatasetReady { digest, load, .. } => Some((digest, load.as_ref().unwrap())),
            _ => None,
        })
        .collect();
    assert_eq!(loads.len(), 3);
    assert!(
        loads.iter().all(|(digest, _)| *digest == loads[0].0),
        "all hold the same data"
    );
    assert!(
        loads
            .iter()
            .all(|(_, load)| load.connections == 3 && load.rows_s > 0.0 && load.cpu_s > 0.0)
    );
    let violated = record.events.iter().any(|event| {
        matches!(&event.what, Event::Noticed { notice } if notice.rule == "data.condition-violated")
    });
    assert!(!violated, "{said}");
    // Compression shows in the data files; in a small data directory the other files hide it, which are most of it.
    let sizes: Vec<_> = record
        .contenders
        .iter()
        .map(|one| one.size.unwrap())
        .collect();
    let files = |contender: usize| sizes[contender].after_files.unwrap();
    for (contender, size) in sizes.iter().enumerate() {
        let files = files(contender);
        assert_eq!(files.total().bytes, size.after_bytes);
        assert!(
            files.redo.bytes >= 8 << 20 && files.system.bytes > 0,
            "{files:?}"
        );
        assert!(2 * files.data.bytes < size.after_bytes, "{files:?}");
    }
    for compressed in [1, 2] {
        let allocated = |contender: usize| files(contender).data.allocated_bytes as f64;
        let ratio = allocated(compressed) / allocated(0);
        assert!(ratio < 0.7, "{ratio}");
    }
    let html = std::fs::read_to_string(lab.record_dir().join("report.html")).unwrap();
    for part in [
        "loading",
        "data files",
        "other files after",
        "page_compression",
        "allocated on the device",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

/// The same graph in two engines of one server. MyRocks wants keys of text that are compared byte by byte, and
/// contenders must not differ in that.
fn engines() -> String {
    let rocks = "[contenders.rocksdb]\nlike = \"plain\"\ntables = { engine = \"rocksdb\" }\n\
                 settings = { plugin_load_add = \"ha_rocksdb\" }\n";
    let first = STORAGE.find("[contenders.pages]").unwrap();
    let rest = STORAGE.find("[workload]").unwrap();
    let text = format!("{}{rocks}{}", &STORAGE[..first], &STORAGE[rest..]);
    let collated = "loaders = 3\ncreate_table_options = \"COLLATE latin1_bin\"";
    text.replace("14 s", "8 s").replace("loaders = 3", collated)
}

/// What a contest leaves of the same data in two engines.
fn check_engines(lab: &Lab, tables: usize) {
    let record = lab.record();
    let digests: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| match &event.what {
            Event::DatasetReady { digest, .. } => Some(digest),
            _ => None,
        })
        .collect();
    assert!(
        digests.len() == 2 && digests[0] == digests[1],
        "{digests:?}"
    );
    let schema = lab.record_dir().join("contenders/rocksdb/schema.sql");
    let schema = std::fs::read_to_string(schema).unwrap();
    assert_eq!(schema.matches("ENGINE=ROCKSDB").count(), tables, "{schema}");
}

#[test(lab, needs = &["mariadb-10.11"])]
fn an_engine_of_another_kind_keeps_the_same_graph() {
    let lab = Lab::new(&engines());
    lab.run_to_the_end();
    check_engines(&lab, 3);
    for contender in ["plain", "rocksdb"] {
        let file = format!("contenders/{contender}/conditions.after.json");
        let text = std::fs::read_to_string(lab.record_dir().join(file)).unwrap();
        assert!(
            text.contains("\"link-counts\"") && text.contains("\"violations\": 0"),
            "{text}"
        );
    }
}

#[test(lab, needs = &["mariadb-10.11"])]
fn sysbench_tables_are_filled_alike_in_two_engines() {
    let graph = engines();
    let workload = graph.find("[workload]").unwrap();
    let load = graph.find("[load]").unwrap();
    let lab = Lab::new(&format!(
        "{}[workload]\nname = \"oltp-update-index\"\ntables = 2\ntable_size = 2_000\n{}",
        &graph[..workload],
        &graph[load..]
    ));
    lab.run_to_the_end();
    check_engines(&lab, 2);
}
