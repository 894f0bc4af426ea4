//! Plans of captured statements on real servers: an index that is missing on one side, and no value in what is kept.

use dbduel_driver::{ConnectOptions, Connection, SessionStart};
use dbduel_judge::summarise;
use dbduel_record::statements::{ContenderStatements, ExplainedStatement, LevelStatements};
use dbduel_replay::answers::{Access, ContenderPlans, Questions, explain, plans_of};
use dbduel_testkit::synthetic::captured::captured_record;

use super::captured::{fill_table, general_log, imported};
use super::database::Database;
use super::server::{ALL, Server};

/// What an application asks. The first value of the first class is in no row, so that its plan says nothing.
const SESSIONS: [&[&str]; 1] = [&[
    "SELECT c FROM sbtest1 WHERE id = 47110815",
    "SELECT c FROM sbtest1 WHERE id = 5",
    "SELECT c FROM sbtest1 WHERE k = 4711 AND pad <> 'ada@example.org'",
    "UPDATE sbtest1 SET pad = 'ada@example.org' WHERE id = 9",
    "SHOW TABLES LIKE 'sbtest%'",
]];

/// Plans of the application's statements on a database.
pub fn explained(
    questions: &Questions,
    connect: &mut dyn FnMut() -> Result<Connection, String>,
) -> ContenderPlans {
    let mut access = Access {
        connect,
        is_over: &mut || false,
        key: [7; 32],
    };
    explain(questions, &mut access)
}

/// The plan that is kept of the class whose text has this part: its steps as a report shows them.
pub fn steps(kept: &[Vec<ExplainedStatement>], part: &str) -> Vec<String> {
    let mut record = captured_record();
    for (files, statements) in record.contenders.iter_mut().zip(kept) {
        files.statements = Some(ContenderStatements {
            levels: vec![LevelStatements {
                level: 0,
                statements: statements.clone(),
                because: None,
            }],
        });
    }
    let (summary, _) = summarise(&record);
    let mut classes = summary.duels[0].statements.iter();
    let class = classes.find(|class| class.class.contains(part));
    let class = class.unwrap_or_else(|| panic!("{part}: {kept:?}"));
    let steps = class.plans.iter().map(|plan| match &plan.because {
        Some(why) => why.clone(),
        None => plan.steps.join("; "),
    });
    steps.collect()
}

#[test(on = ALL)]
fn an_index_that_is_missing_on_one_side_shows_in_the_plans(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let parameters = imported(folder.path(), &general_log(&SESSIONS), None);
    let questions = Questions::of(&parameters).unwrap();
    let databases = [
        Database::create(server, "indexed"),
        Database::create(server, "scanned"),
    ];
    for database in &databases {
        fill_table(&database.place(1));
    }
    let [_, scanned] = &databases;
    scanned.run(&format!(
        "ALTER TABLE {}.sbtest1 DROP INDEX k_1",
        scanned.name
    ));
    let plans = databases.each_ref().map(|database| {
        let options = ConnectOptions {
            database: Some(database.name.clone()),
            session: SessionStart::Captured,
            ..ConnectOptions::default()
        };
        explained(&questions, &mut || {
            Connection::connect(&database.address, &database.credentials, &options)
                .map_err(|error| error.to_string())
        })
    });
    let kept = plans_of(&questions, &plans);
    assert_eq!(steps(&kept, "where id = ?"), ["sbtest1: const PRIMARY"; 2]);
    assert_eq!(
        steps(&kept, "update sbtest1"),
        ["sbtest1: range PRIMARY"; 2]
    );
    let [with, without] = steps(&kept, "where k = ?").try_into().unwrap();
    assert_eq!(
        (with.as_str(), without.as_str()),
        ("sbtest1: ref k_1", "sbtest1: ALL")
    );
    let text = serde_json::to_string(&kept).unwrap();
    assert!(
        !text.contains("show tables"),
        "servers explain no such statement: {text}"
    );
    for value in ["4711", "ada@", "sbtest%"] {
        assert!(!text.contains(value), "{value}: {text}");
    }
}
