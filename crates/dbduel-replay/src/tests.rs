use dbduel_capture::store::Capture;
use dbduel_capture::store::read::read_manifest;
use dbduel_testkit::captures::{CONNECT, Imported};

use super::mix::{Ending, ReplayTransaction};
use super::states::INITIAL;
use super::*;

/// Resolved parameters of a mix.
pub(super) fn resolved(imported: &Imported, draw: &str) -> Parameters {
    let (_, digest) = read_manifest(imported.path()).unwrap();
    let mut resolved = imported.given();
    resolved.insert(CAPTURE_DIGEST.to_owned(), digest.into());
    resolved.insert(DRAW.to_owned(), draw.into());
    resolved
}

fn mix(imported: &Imported, draw: &str) -> Mix {
    Mix::build(&resolved(imported, draw)).unwrap()
}

/// Statements of each transaction that is drawn.
fn texts(mix: &Mix) -> Vec<Vec<String>> {
    let all = 0..mix.coverage().transactions as u32;
    let of_one = |one: &ReplayTransaction| {
        let capture: &Capture = mix.capture();
        let statements = capture.ordered(one.first, one.count);
        statements
            .map(|statement| String::from_utf8_lossy(capture.text(statement).unwrap()).into_owned())
            .collect()
    };
    mix.transactions(&all).iter().map(of_one).collect()
}

fn left_out(mix: &Mix) -> Vec<(&'static str, u64)> {
    let left_out = mix.coverage().left_out.iter();
    left_out
        .map(|(reason, amount)| (*reason, amount.count))
        .collect()
}

#[test]
fn draws_are_whole_transactions_that_may_run() {
    let imported = Imported::general(&[
        (6, "Query", "UPDATE t SET a = 1"),
        (6, "Query", "COMMIT"),
        (7, "Connect", CONNECT),
        (7, "Query", "SET NAMES utf8mb4"),
        (7, "Query", "SELECT a FROM t WHERE id = 1"),
        (7, "Query", "BEGIN"),
        (7, "Query", "UPDATE t SET a = 2 WHERE id = 3"),
        (7, "Query", "COMMIT"),
        (7, "Query", "BEGIN"),
        (7, "Query", "INSERT INTO t VALUES (1)"),
        (7, "Query", "SELECT LOAD_FILE('/etc/passwd')"),
        (7, "Query", "COMMIT"),
        (7, "Query", "SHOW TABLES"),
        (7, "Query", "SET GLOBAL max_connections = 5"),
        (7, "Query", "SELECT GET_LOCK('a', 1)"),
        (7, "Query", "BEGIN"),
        (7, "Query", "DELETE FROM t"),
        (7, "Quit", ""),
        (8, "Connect", CONNECT),
        (8, "Query", "BEGIN"),
        (8, "Query", "DELETE FROM t WHERE id = 1"),
    ]);
    let mix = mix(&imported, "transactions");
    let expected: [&[&str]; 4] = [
        &["SELECT a FROM t WHERE id = 1"],
        &["BEGIN", "UPDATE t SET a = 2 WHERE id = 3", "COMMIT"],
        &["SHOW TABLES"],
        &["BEGIN", "DELETE FROM t"],
    ];
    assert_eq!(texts(&mix), expected);
    let all = mix.transactions(&(0..4));
    assert_eq!(all[1].ending(), Ending::Own);
    assert_eq!(all[3].ending(), Ending::Rollback, "its session ended");
    assert!(all.iter().all(|one| one.state != INITIAL));
    let expected = [
        ("SET GLOBAL", 1),
        ("function that is not known to be harmless", 4),
        ("lock that outlives its transaction", 1),
        ("torn transaction", 4),
    ];
    assert_eq!(left_out(&mix), expected);
    let coverage = mix.coverage();
    assert_eq!((coverage.replayed.count, coverage.settings.count), (7, 1));
    assert_eq!(coverage.all().count, mix.capture().statements() as u64);
}

#[test]
fn settings_go_before_what_is_drawn_from_their_session() {
    let imported = Imported::general(&[
        (7, "Connect", CONNECT),
        (7, "Query", "SELECT 1 FROM t"),
        (7, "Query", "SET NAMES latin1"),
        (7, "Query", "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"),
        (7, "Query", "SELECT 2 FROM t"),
        (7, "Query", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
        (7, "Query", "BEGIN"),
        (7, "Query", "SET @a = 1"),
        (7, "Query", "COMMIT"),
        (7, "Quit", ""),
        (8, "Connect", CONNECT),
        (8, "Query", "SET NAMES latin1"),
        (8, "Query", "SET SESSION sql_mode = ''"),
        (8, "Query", "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"),
        (8, "Query", "SELECT 3 FROM t"),
        (8, "Quit", ""),
    ]);
    let mix = mix(&imported, "transactions");
    let all = mix.transactions(&(0..4));
    assert_eq!(all[0].state, INITIAL);
    assert_ne!(all[1].state, INITIAL);
    assert_eq!(all[1].state, all[3].state, "the same in both sessions");
    assert_eq!(
        texts(&mix)[2],
        [
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "BEGIN",
            "SET @a = 1",
            "COMMIT"
        ]
    );
    let changes: Vec<bool> = all.iter().map(ReplayTransaction::changes_state).collect();
    assert_eq!(changes, [false, false, true, false]);
    assert!(left_out(&mix).is_empty());
}

#[test]
fn another_database_and_what_follows_a_temporary_table_are_left_out() {
    let imported = Imported::general(&[
        (7, "Connect", CONNECT),
        (7, "Query", "SELECT 1 FROM t"),
        (7, "Query", "SELECT 2 FROM t"),
        (7, "Init DB", "other"),
        (7, "Query", "SELECT 3 FROM t"),
        (7, "Init DB", "shop"),
        (7, "Query", "SELECT 4 FROM t"),
        (7, "Query", "CREATE TEMPORARY TABLE x (a INT)"),
        (7, "Query", "SELECT 5 FROM x"),
        (7, "Quit", ""),
    ]);
    let mix = mix(&imported, "transactions");
    assert_eq!(
        texts(&mix),
        [
            ["SELECT 1 FROM t"],
            ["SELECT 2 FROM t"],
            ["SELECT 4 FROM t"]
        ]
    );
    let expected = [
        ("after a temporary table of its session", 1),
        ("of another default database", 1),
        ("temporary table", 1),
    ];
    assert_eq!(left_out(&mix), expected);
}

#[test]
fn statements_that_name_their_database_are_left_out() {
    let imported = Imported::general(&[
        (6, "Connect", "app@localhost on  using Socket"),
        (6, "Query", "SELECT @@version_comment"),
        (6, "Query", "SELECT 0 FROM shop . t"),
        (6, "Init DB", "other"),
        (6, "Query", "SELECT 3 FROM t"),
        (7, "Connect", CONNECT),
        (7, "Query", "SELECT 1 FROM shop.t"),
        (7, "Query", "INSERT INTO `shop`.`t` VALUES (1)"),
        (7, "Query", "SELECT shop.id FROM shop.shop"),
        (7, "Query", "SELECT shop.id FROM shop WHERE note = 'shop.t'"),
        (7, "Query", "SELECT a.id FROM t a"),
    ]);
    let mix = mix(&imported, "transactions");
    assert_eq!(
        texts(&mix),
        [
            ["SELECT @@version_comment"],
            ["SELECT shop.id FROM shop WHERE note = 'shop.t'"],
            ["SELECT a.id FROM t a"]
        ]
    );
    let expected = [("names a database", 4), ("of another default database", 1)];
    assert_eq!(left_out(&mix), expected);
}

#[test]
fn transactions_are_drawn_in_the_order_of_the_log() {
    let imported = Imported::general(&[
        (8, "Connect", CONNECT),
        (7, "Connect", CONNECT),
        (7, "Query", "SELECT 0 FROM t"),
        (8, "Query", "SELECT 1 FROM t"),
        (8, "Query", "BEGIN"),
        (7, "Query", "SELECT 3 FROM t"),
        (8, "Query", "SELECT 2 FROM t"),
        (7, "Query", "SELECT LOAD_FILE('/etc/passwd')"),
        (8, "Query", "COMMIT"),
        (7, "Query", "SELECT 4 FROM t"),
        (8, "Query", "SELECT 5 FROM t"),
    ]);
    let parameters = resolved(&imported, "transactions");
    let mix = Mix::build(&parameters).unwrap();
    assert_eq!(draws_per_pass(&parameters), Some(6));
    let all = texts(&mix);
    let drawn: Vec<&str> = (0..6)
        .map(|number| {
            let drawn = mix.drawn(number);
            assert_eq!(drawn.len(), 1);
            let statements = all[drawn.start as usize].iter();
            statements
                .map(String::as_str)
                .find(|text| text.starts_with("SELECT"))
                .unwrap()
        })
        .collect();
    let expected: Vec<String> = (0..6)
        .map(|number| format!("SELECT {number} FROM t"))
        .collect();
    assert_eq!(drawn, expected);
    assert_eq!(mix.drawn(6), 0..0);
    assert_eq!(
        order_claim(&parameters).unwrap(),
        "Clients draw each transaction once before they draw any again, in about the order of the log."
    );
}

#[test]
fn classes_are_those_of_the_costliest_statements_and_have_no_values() {
    let mut lines = vec![(7, "Connect", CONNECT)];
    for _ in 0..150 {
        lines.push((
            7,
            "Query",
            "SELECT name FROM t WHERE mail = 'bob@example.org'",
        ));
    }
    lines.extend([
        (7, "Query", "BEGIN"),
        (7, "Query", "UPDATE t SET a = 77001 WHERE id = 3"),
        (7, "Query", "COMMIT"),
        (7, "Query", "BEGIN"),
        (7, "Query", "UPDATE t SET a = 77002 WHERE id = 4"),
        (7, "Query", "COMMIT"),
        (7, "Query", "DELETE FROM t WHERE id = 88001"),
    ]);
    let imported = Imported::general(&lines);
    let parameters = resolved(&imported, "transactions");
    let names = transaction_classes(&parameters);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(
        names[0].ends_with("select name from t where mail = ?"),
        "{names:?}"
    );
    assert!(names[1].contains("update t set"), "{names:?}");
    assert_eq!(names[2], classes::OTHER);
    let plan = serde_json::to_string(&parameters).unwrap();
    let claim = coverage(&parameters).unwrap().claim();
    for text in [names.concat(), plan, claim] {
        for value in ["bob", "77001", "88001"] {
            assert!(!text.contains(value), "{text}");
        }
    }
    let mix = mix(&imported, "transactions");
    assert_eq!(mix.class(&(150..151)).0, 1);
    assert_eq!(mix.class(&(152..153)).0, 2);
}

#[test]
fn whole_sessions_are_drawn_as_one() {
    let imported = Imported::general(&[
        (6, "Query", "SELECT 0 FROM t"),
        (7, "Connect", CONNECT),
        (7, "Query", "SELECT 1 FROM t"),
        (7, "Query", "SELECT 2 FROM t"),
        (7, "Quit", ""),
        (8, "Connect", CONNECT),
        (8, "Query", "SELECT 3 FROM t"),
        (8, "Quit", ""),
    ]);
    let mix = mix(&imported, "sessions");
    assert_eq!(mix.names(), ["session"]);
    assert_eq!(
        [mix.drawn(0), mix.drawn(1), mix.drawn(2)],
        [0..2, 2..3, 0..0]
    );
    assert_eq!(mix.draws().count, 2);
    assert_eq!(mix.coverage().sessions, Some(2));
    assert_eq!(
        left_out(&mix),
        [("of a session whose begin is not in the log", 1)]
    );
}

#[test]
fn values_of_prepared_statements_are_needed() {
    let line = |number: u32, message: &str| {
        format!("2026-11-27 23:45:44.{number:03} UTC [9] 6b0a.9 {message}\n")
    };
    let log = [
        line(1, "LOG:  connection authorized: user=app database=shop"),
        line(
            2,
            "LOG:  execute <unnamed>: SELECT a FROM t WHERE id = $1 AND b = $2",
        ),
        line(2, "DETAIL:  parameters: $1 = '2', $2 = NULL"),
        line(3, "LOG:  execute <unnamed>: SELECT a FROM t WHERE id = $1"),
        line(4, "LOG:  statement: SELECT 1"),
        line(5, "LOG:  statement: SELECT a FROM t WHERE id = 7"),
    ];
    let imported = Imported::of(&log.concat(), Some("%m [%p] %c "));
    let mix = mix(&imported, "transactions");
    assert_eq!(
        texts(&mix),
        [
            ["SELECT a FROM t WHERE id = $1 AND b = $2"],
            ["SELECT 1"],
            ["SELECT a FROM t WHERE id = 7"]
        ]
    );
    assert_eq!(
        left_out(&mix),
        [("prepared statement without its values in the log", 1)]
    );
}

#[test]
fn a_capture_that_was_replaced_since_the_plan_is_refused() {
    let imported = Imported::general(&[(7, "Query", "SELECT 1 FROM t")]);
    let other = Imported::general(&[(7, "Query", "SELECT 2 FROM t")]);
    let mut changed = resolved(&imported, "transactions");
    changed.extend(other.given());
    let refused = Mix::build(&changed).unwrap_err();
    assert!(
        refused.contains("now has the BLAKE3") && refused.contains("the plan was made for"),
        "{refused}"
    );
}

#[test]
fn captures_without_anything_to_draw_are_refused() {
    let imported = Imported::general(&[(7, "Query", "SELECT 1 FROM t")]);
    let nothing = Imported::general(&[(7, "Query", "SET GLOBAL max_connections = 5")]);
    let why = coverage(&resolved(&nothing, "transactions")).unwrap_err();
    assert!(why.contains("nothing that a replay can run"), "{why}");
    let sessions = coverage(&resolved(&imported, "sessions")).unwrap_err();
    assert!(sessions.contains("draw transactions"), "{sessions}");
}

#[test]
fn single_statements_have_classes_with_what_the_log_says_about_them() {
    let entry = |affected: u64, text: &str| {
        format!(
            "# User@Host: app[app] @ localhost []\n# Thread_id: 7  Schema: shop  QC_hit: No\n\
             # Query_time: 0.002000  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 1\n\
             # Rows_affected: {affected}  Bytes_sent: 50\nSET timestamp=1795992077;\n{text};\n"
        )
    };
    let log = [
        entry(1, "UPDATE t SET a = 71117 WHERE id = 3"),
        entry(0, "UPDATE t SET a = 71118 WHERE id = 3"),
        entry(0, "UPDATE t SET a = 71118 WHERE id = 4"),
        entry(0, "SELECT a FROM t WHERE id = 5"),
        entry(0, "SET GLOBAL max_connections = 5"),
        entry(0, "SET NAMES latin1"),
        entry(0, "SELECT a FROM t WHERE id = 6"),
    ];
    let imported = Imported::of(&log.concat(), None);
    let parameters = resolved(&imported, "transactions");
    let names = statement_class_names(&parameters);
    let classes = statement_classes(&parameters).unwrap();
    assert_eq!(
        classes.len(),
        3,
        "what is left out is not measured: {classes:?}"
    );
    let ids: Vec<&String> = classes.iter().map(|class| &class.id).collect();
    assert_eq!(ids, names.iter().collect::<Vec<_>>());
    let [update, select, names] = classes.as_slice() else {
        unreachable!()
    };
    assert_eq!(update.text, "update t set a = ? where id = ?");
    assert_eq!((update.writes, select.writes), (true, false));
    let counts = [update, select, names].map(|class| class.captured);
    assert_eq!(counts, [3, 2, 1]);
    assert_eq!(
        (update.captured_with_rows, update.captured_unchanged),
        (3, 2)
    );
    assert_eq!(
        (select.captured_with_rows, select.captured_unchanged),
        (0, 0)
    );
    assert!((update.captured_s - 0.006).abs() < 1e-9, "{update:?}");
}
