//! A script as the workload of a contest, on a server that answers at once: its parameters, its classes, its end.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dbduel_load::blocking::{Credentials, TlsMode};
use dbduel_load::fill::{FillError, FillWatch, Place, fill};
use dbduel_load::order::{Answer, Order};
use dbduel_load::stand_in::Role;
use dbduel_load::workloads::{self, parameters};
use dbduel_record::plan::Parameters;
use support::{Load, open_order, slice_order, stand_in};

/// Events that call a function before their first statement, after it, or not at all.
const MIXED: &str = r#"
sysbench.cmdline.options = { share = {"Of writes", 0.5} }
function thread_init() con = sysbench.sql.driver():connect(); n = 0 end
function reading() con:query("SELECT 1") end
function writing() con:query("SELECT 2"); con:query("SELECT 3") end
function event()
    n = n + 1
    if n % 4 == 0 then
        con:query("SELECT 4")
    elseif n % 2 == 0 then
        _G["writing"]()
    else
        reading()
    end
end
function prepare() sysbench.sql.driver():connect():query("SELECT SLEEP(60)") end
"#;

fn given(folder: &tempfile::TempDir, more: &[(&str, &str)]) -> Parameters {
    let path = folder.path().join("mixed.lua");
    std::fs::write(&path, MIXED).unwrap();
    let mut given = Parameters::from([("script".to_owned(), path.to_str().unwrap().into())]);
    for (name, value) in more {
        given.insert((*name).to_owned(), (*value).into());
    }
    given
}

#[test]
fn functions_that_are_named_are_classes_of_their_own() {
    let workload = workloads::find("script").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let given = given(&folder, &[("classes", "reading, writing")]);
    let (_directory, server) = stand_in(Role::Null);
    let mut order = open_order(&server.address(), "oltp-read-only", 2);
    workload.name().clone_into(&mut order.workload.name);
    order.workload.parameters = parameters::resolve(workload, &given).unwrap();
    let mut load = Load::start(1);
    load.order(&Order::Open(order));
    let answer = load.answer();
    assert!(matches!(answer, Answer::Opened { .. }), "{answer:?}");
    let slice = load.slice(&slice_order(2, 0.5));
    load.end();
    let classes: BTreeMap<&str, (u64, u64)> = slice
        .classes
        .iter()
        .map(|class| (class.class.as_str(), (class.ok, class.statements)))
        .collect();
    let (reads, read_statements) = classes["reading"];
    let (writes, write_statements) = classes["writing"];
    let (others, _) = classes["other"];
    assert_eq!(classes.len(), 3, "{classes:?}");
    assert!(reads > 0 && writes > 0 && others > 0, "{classes:?}");
    // Two events of four read and one writes; each client may be within such a round at either end.
    assert!(reads.abs_diff(2 * writes) <= 8, "{classes:?}");
    assert!(writes.abs_diff(others) <= 8, "{classes:?}");
    assert!(read_statements.abs_diff(reads) <= 4, "{classes:?}");
    assert!(write_statements.abs_diff(2 * writes) <= 8, "{classes:?}");
}

#[test]
fn parameters_that_would_be_left_out_are_refused() {
    let workload = workloads::find("script").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let refusal = |name: &str, value: &str| {
        let given = given(&folder, &[(name, value)]);
        parameters::resolve(workload, &given)
            .unwrap_err()
            .to_string()
    };
    let why = refusal("ignore_errors", "1213,deadlock");
    assert!(
        why.contains("ignore_errors") && why.contains("`deadlock`"),
        "{why}"
    );
    let why = refusal("classes", "reading,deleting");
    assert!(
        why.contains("classes") && why.contains("`deleting`"),
        "{why}"
    );
}

#[test]
fn a_cancelled_prepare_sends_nothing_any_more() {
    let workload = workloads::find("script").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let parameters = parameters::resolve(workload, &given(&folder, &[])).unwrap();
    // Answers the login and then nothing for longer than the test may take.
    let late = support::act(60_000, dbduel_wire::server::Answer::Proper);
    let (_directory, server) = support::scripted(vec![late]);
    let (address, credentials) = (server.address(), Credentials::default());
    let place = Place {
        address: &address,
        credentials: &credentials,
        tls: &TlsMode::Off,
        database: "dbduel",
        connections: 1,
        deadline: Duration::from_secs(300),
    };
    let watch = FillWatch::default();
    let began = Instant::now();
    let outcome = std::thread::scope(|scope| {
        let filling = scope.spawn(|| fill(workload, &parameters, &place, 1, &watch));
        while server.heard().is_empty() && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        watch
            .cancelled
            .store(true, std::sync::atomic::Ordering::Relaxed);
        filling.join().unwrap()
    });
    assert!(matches!(outcome, Err(FillError::Cancelled)), "{outcome:?}");
    assert!(
        began.elapsed() < Duration::from_secs(40),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(server.heard().len(), 1, "{:?}", server.heard());
}
