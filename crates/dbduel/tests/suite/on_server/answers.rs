//! Answers to captured statements on real servers: a planted difference, a refused setting, and data that stay as they are.

use dbduel_driver::{ConnectOptions, Connection, SessionStart};
use dbduel_record::answers::{Answer, Answers, AskedClass};
use dbduel_record::plan::Parameters;
use dbduel_replay::answers::{Access, ContenderAnswers, Questions, ask, together};
use dbduel_workloads::fill::Place;

use super::captured::{SESSIONS, fill_table, general_log, imported};
use super::database::Database;
use super::server::{ALL, Server};

/// What an application does beside [`SESSIONS`]: sets what no server knows, and writes to a table without transactions.
const FURTHER: [&[&str]; 3] = [
    &[
        "SET SESSION sql_mode = 'NO_SUCH_MODE'",
        "SELECT pad FROM sbtest1 WHERE id = 1",
        "SELECT pad FROM sbtest1 WHERE id = 2",
    ],
    &["INSERT INTO kept VALUES (1)"],
    &[
        "SELECT id FROM sbtest1 ORDER BY k DESC LIMIT 5",
        "SELECT nothing FROM sbtest1 WHERE id = 3",
        "DELETE FROM sbtest1 WHERE id > 50",
    ],
];

/// Asks a database in sessions with this setting in addition.
pub fn asked(place: &Place<'_>, questions: &Questions, setting: &str) -> ContenderAnswers {
    let options = ConnectOptions {
        dialect: place.dialect,
        database: Some(place.database.to_owned()),
        session: SessionStart::Captured,
        ..ConnectOptions::default()
    };
    let mut connect = || -> Result<Connection, String> {
        let mut connection = Connection::connect(place.address, place.credentials, &options)
            .map_err(|error| error.to_string())?;
        connection
            .execute(setting)
            .map_err(|error| error.to_string())?;
        Ok(connection)
    };
    let mut access = Access {
        connect: &mut connect,
        is_over: &mut || false,
        key: [7; 32],
    };
    ask(questions, &mut access)
}

/// What a table holds. MySQL 9.7 has no `MD5()`.
fn content(database: &Database) -> Option<String> {
    let set = database.connect().query(&format!(
        "SELECT CONCAT_WS(' ', COUNT(*), SUM(k), SHA2(GROUP_CONCAT(pad ORDER BY id), 256), (SELECT COUNT(*) FROM {0}.kept)) FROM {0}.sbtest1",
        database.name
    ));
    set.unwrap().text(0, 0)
}

fn class<'a>(answers: &'a Answers, text: &str) -> &'a AskedClass {
    let found = answers
        .classes
        .iter()
        .find(|class| class.text.contains(text));
    found.unwrap_or_else(|| panic!("{text}: {answers:#?}"))
}

/// Texts of the classes whose answers differ between the contenders.
pub fn differing(answers: &Answers) -> Vec<&str> {
    let differs = |class: &&AskedClass| {
        class
            .examples
            .iter()
            .any(|asked| asked.of(0) != asked.of(1))
    };
    let found = answers.classes.iter().filter(differs);
    found.map(|class| class.text.as_str()).collect()
}

/// Texts of the classes of which a contender answers a statement otherwise in a second session.
pub fn unstable(answers: &Answers) -> Vec<&str> {
    let differs = |class: &&AskedClass| {
        let mut examples = class.examples.iter();
        examples.any(|asked| (0..2).any(|own| asked.of(own) != asked.again(own)))
    };
    let found = answers.classes.iter().filter(differs);
    found.map(|class| class.text.as_str()).collect()
}

#[test(on = ALL)]
fn a_planted_difference_of_answers_is_found_and_data_stay_as_they_are(server: &Server) {
    let database = Database::create(server, "answers");
    fill_table(&database.place(1));
    database.run(&format!(
        "CREATE TABLE {}.kept (a INT) ENGINE = MyISAM",
        database.name
    ));
    let before = content(&database);
    let dir = tempfile::tempdir().unwrap();
    let sessions = [&SESSIONS[..], &FURTHER[..]].concat();
    let parameters: Parameters = imported(dir.path(), &general_log(&sessions), None);
    let questions = Questions::of(&parameters).unwrap();
    let place = database.place(1);
    let own = |setting| asked(&place, &questions, setting);
    // The same server twice: nothing differs, not even for the statements that it refuses.
    let control = together(&questions, vec![own("DO 1"), own("DO 1")]);
    assert_eq!(differing(&control), [""; 0]);
    assert_eq!(unstable(&control), [""; 0]);
    let refuses = |text: &str, name: &str| {
        let asked = &class(&control, text).examples[0];
        matches!(asked.of(0), Some(Answer::Refused(refusal)) if refusal.name.starts_with(name))
    };
    assert!(refuses("select nothing", "1054"), "{control:#?}");
    assert!(refuses("insert into sbtest1", "1062"), "{control:#?}");
    // One refused setting, with what depends on it.
    let [first, second] = control.refused.as_slice() else {
        panic!("{:#?}", control.refused);
    };
    assert!(first.refusal.name.starts_with("1231"), "{first:?}");
    assert_eq!((first.transactions, first.settings), (2, 1));
    assert_eq!((first.contender, second.contender), (0, 1));
    let missing = |text: &str| {
        matches!(
            class(&control, text).examples[0].of(0),
            Some(Answer::Missing(_))
        )
    };
    assert!(
        missing("select pad") && missing("insert into kept"),
        "{control:#?}"
    );
    let Some(Answer::Done(ordered)) = class(&control, "order by k").examples[0].of(0) else {
        panic!("{control:#?}");
    };
    assert!(ordered.rows == 5 && ordered.keys.is_some(), "{ordered:?}");
    let Some(Answer::Done(deleted)) = class(&control, "delete from").examples[0].of(0) else {
        panic!("{control:#?}");
    };
    assert_eq!(deleted.affected, 50);
    // Trailing blanks of a CHAR column.
    let padded = own("SET SESSION sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'");
    let planted = together(&questions, vec![own("DO 1"), padded]);
    let found = differing(&planted);
    assert!(
        found.len() == 1 && found[0].contains("select c from"),
        "{found:?}"
    );
    assert_eq!(unstable(&planted), [""; 0]);
    assert_eq!(content(&database), before);
    // No value is kept.
    let text = serde_json::to_string(&planted).unwrap();
    assert!(
        !text.contains("4711") && !text.contains("NO_SUCH_MODE"),
        "{text}"
    );
}
