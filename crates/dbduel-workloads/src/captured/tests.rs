use dbduel_driver::Dialect;
use dbduel_record::captured::TRACE;
use dbduel_replay::order_claim;
use dbduel_testkit::captures::{CONNECT, Imported};
use serde_json::Value;

use super::*;
use crate::parameters::{check_clients, check_dialect, resolve};

fn resolved(imported: &Imported) -> Parameters {
    resolve(&Captured, &imported.given()).unwrap()
}

#[test]
fn a_capture_is_for_servers_of_its_own_protocol() {
    let log = "2026-11-27 23:45:44.001 UTC [9] 6b0a.9 LOG:  statement: SELECT 1\n";
    let imported = Imported::of(log, Some("%m [%p] %c "));
    let parameters = resolved(&imported);
    assert_eq!(
        check_dialect(&Captured, Dialect::PostgreSql, &parameters),
        Ok(())
    );
    let refused = check_dialect(&Captured, Dialect::MySql, &parameters).unwrap_err();
    assert!(
        refused.to_string().contains(
            "`capture` is of PostgreSQL, whose statements MySQL and MariaDB do not understand"
        ),
        "{refused}"
    );
    assert!(!Captured.speaks(Dialect::Sqlite));
}

#[test]
fn a_plan_runs_with_its_own_capture_only() {
    let imported = Imported::general(&[(7, "Query", "SELECT 1 FROM t")]);
    let parameters = resolved(&imported);
    assert_eq!(resolve(&Captured, &parameters), Ok(parameters.clone()));
    assert_eq!(parameters[PRODUCT], "mysql");
    let other = Imported::general(&[(7, "Query", "SELECT 2 FROM t")]);
    let mut changed = parameters.clone();
    changed.extend(other.given());
    let refused = resolve(&Captured, &changed).unwrap_err().to_string();
    assert!(refused.contains("made for another capture"), "{refused}");
}

#[test]
fn what_this_version_cannot_do_is_refused() {
    let imported = Imported::general(&[(7, "Query", "SELECT 1 FROM t")]);
    let with = |name: &str, value: Value| {
        let mut given = imported.given();
        given.insert(name.to_owned(), value);
        resolve(&Captured, &given).unwrap_err().to_string()
    };
    for (name, value, part) in [
        (MODE, "replay", "one of `mix`, `trace`"),
        (MODE, "trace", "is too short for a trace"),
        (DRAW, "statements", "one of `transactions`, `sessions`"),
        (CAPTURE, "", "is missing"),
        (CAPTURE, "/dev/null/x", "cannot be used"),
        (DUMP, "/dev/null", "not a regular file"),
    ] {
        let refused = with(name, value.into());
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn a_trace_needs_no_more_clients_than_sessions_and_its_work_is_fixed() {
    let line = |session, text| (session, "Query", text);
    let imported = Imported::general(&[
        (7, "Connect", CONNECT),
        line(7, "SELECT 70 FROM t"),
        (8, "Connect", CONNECT),
        line(8, "SELECT 80 FROM t"),
        line(7, "SELECT 71 FROM t"),
        (7, "Quit", ""),
        (8, "Quit", ""),
    ]);
    let mut given = imported.given();
    given.insert(MODE.to_owned(), TRACE.into());
    given.insert(TRANSACTIONS_PER_SLICE.to_owned(), 1.into());
    let trace = resolve(&Captured, &given).unwrap();
    assert_eq!(resolve(&Captured, &trace).unwrap(), trace);
    assert_eq!(Captured.quanta(&trace), Some(3));
    assert_eq!(Captured.clients_suggested(&trace), Some(2));
    assert!(check_clients(&Captured, &trace, 2).is_ok());
    assert!(check_clients(&Captured, &trace, 3).is_err());
    assert!(Captured.has_fixed_work(&trace) && Captured.depends_on_past_work(&trace));
    let mix = resolved(&imported);
    assert!(!Captured.has_fixed_work(&mix) && !Captured.depends_on_past_work(&mix));
    assert_eq!(Captured.quanta(&mix), None);
    let draws = [&mix, &trace].map(|parameters| Captured.draws_per_pass(parameters));
    assert_eq!(draws, [Some(3), None]);
    assert!(order_claim(&mix).unwrap().contains("each transaction once"));
}
