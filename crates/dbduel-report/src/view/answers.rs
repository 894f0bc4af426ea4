//! Answers to captured statements, as text.

use dbduel_judge::Summary;
use dbduel_judge::summary::{AnswerDifference, AnswersSummary, ClassAnswers, ContenderAnswer};
use dbduel_text::shortened;
use serde::Serialize;

use super::table::{Cell, Column, NAME, NUMBER, Row, TEXT, Table};
use crate::words;

/// Characters of a class's text in the table.
const TEXT_CHARACTERS: usize = 120;

const COLUMNS: [(&str, &str); 7] = [
    (NAME, "contender"),
    (TEXT, "class of statements"),
    (TEXT, "difference"),
    (TEXT, "against the baseline"),
    (TEXT, "example"),
    (NUMBER, "statements"),
    (NUMBER, "share"),
];

/// Answers on equal data before the load.
#[derive(Debug, Clone, Serialize)]
pub struct AnswersView {
    /// Counts of each contender, as sentences.
    pub sentences: Vec<String>,
    /// Classes that differ or were not compared, and refused settings; absent where all are equal.
    pub table: Option<Table>,
}

/// The section; `None` where no answers were compared.
pub(super) fn answers(summary: &Summary) -> Option<AnswersView> {
    let answers = summary.answers.as_ref()?;
    if let Some(why) = &answers.because {
        return Some(AnswersView {
            sentences: vec![format!("Not compared: {why}.")],
            table: None,
        });
    }
    let others = summary.contenders.iter().enumerate();
    let others = others.filter(|(_, one)| one.name != summary.baseline);
    let sentences = others
        .clone()
        .map(|(_, one)| sentence(answers, &one.name, &summary.baseline));
    let mut rows = refused(summary, answers);
    for (number, contender) in others {
        let classes = answers.classes.iter();
        rows.extend(classes.filter_map(|class| row(class, number, &contender.name)));
    }
    Some(AnswersView {
        sentences: sentences.collect(),
        table: (!rows.is_empty()).then(|| Table::new(COLUMNS.map(Column::from).into(), rows)),
    })
}

fn sentence(answers: &AnswersSummary, name: &str, baseline: &str) -> String {
    let of = |is: &dyn Fn(&ContenderAnswer) -> bool| {
        let own = answers
            .classes
            .iter()
            .filter_map(|class| class_of(class, name));
        own.filter(|one| is(one)).count() as u64
    };
    let compared = of(&|one| one.compared > 0);
    let weighing = of(&|one| {
        one.difference
            .as_ref()
            .is_some_and(AnswerDifference::weighs)
    });
    let others = of(&|one| one.difference.is_some()) - weighing;
    let left = answers.classes.len() as u64 - compared + u64::from(answers.classes_beyond);
    let refused = answers
        .refused
        .iter()
        .filter(|one| one.contender == name)
        .count() as u64;
    let mut text = format!(
        "{name} against {baseline}: {} of {} classes of statements compared, {} equal, {} different, {} different in what need not be \
         equal",
        words::count(compared),
        words::count(compared + left),
        words::count(compared - weighing - others),
        words::count(weighing),
        words::count(others),
    );
    if refused > 0 {
        text.push_str(&format!("; {} refused", words::things(refused, "setting")));
    }
    text
}

fn class_of<'a>(class: &'a ClassAnswers, name: &str) -> Option<&'a ContenderAnswer> {
    class.contenders.iter().find(|one| one.contender == name)
}

/// Refused settings of sessions, which come before what follows from them.
fn refused(summary: &Summary, answers: &AnswersSummary) -> Vec<Row> {
    let rows = answers.refused.iter().map(|one| {
        let names = &mut summary.contenders.iter();
        let number = names.position(|own| own.name == one.contender);
        [
            Cell::of_contender(number.unwrap_or_default(), &one.contender),
            text(&one.text),
            Cell::from("setting refused"),
            Cell::from(format!(
                "error {}; {} need it",
                one.error,
                words::things(one.transactions, "transaction")
            )),
            place(&one.position),
            Cell::from(words::count(one.settings)),
            Cell::from(words::share(one.share)),
        ]
        .into_iter()
        .collect()
    });
    rows.collect()
}

/// The row of a class that differs or was not compared.
fn row(class: &ClassAnswers, number: usize, name: &str) -> Option<Row> {
    let own = class_of(class, name)?;
    let (difference, detail, example, statements) = match &own.difference {
        Some(one) => {
            let mut detail = one.detail.clone();
            if let Some(why) = &one.excuse {
                detail.push_str(&format!("; {why}"));
            }
            let statements = format!("{} of {}", one.statements, own.compared);
            (one.kind.name(), detail, place(&one.position), statements)
        }
        None if own.compared == 0 => {
            let why = own.not_compared.clone().unwrap_or_default();
            ("not compared", why, Cell::default(), String::new())
        }
        None => return None,
    };
    let cells = [
        Cell::of_contender(number, name),
        text(&class.text),
        Cell::from(difference),
        Cell::from(detail),
        example,
        Cell::from(statements),
        Cell::from(words::share(class.share)),
    ];
    Some(cells.into_iter().collect())
}

/// The file's name and the line; its folder is shown on hover.
fn place(position: &str) -> Cell {
    let name = position.rsplit('/').next().unwrap_or(position);
    let hover = match name == position {
        true => String::new(),
        false => position.to_owned(),
    };
    Cell {
        hover,
        ..Cell::code(name)
    }
}

fn text(class: &str) -> Cell {
    Cell::code(shortened(class, TEXT_CHARACTERS))
}

#[cfg(test)]
mod tests {
    use dbduel_judge::summarise;
    use dbduel_record::answers::{
        Answer, Answers, AskedClass, AskedStatement, Refusal, RefusedSetting, Rows,
    };
    use dbduel_testkit::synthetic::Scenario;

    use super::*;
    use crate::{FORMATS, Options};

    /// Three classes: equal, different, and not asked; and a refused setting.
    fn record() -> dbduel_record::Record {
        let done = |rows| {
            Answer::Done(Box::new(Rows {
                rows,
                ..Rows::default()
            }))
        };
        let missing = || Answer::Missing("the time for all statements was over".to_owned());
        let class = |id: &str, baseline, own| AskedClass {
            id: id.to_owned(),
            text: format!("select {id} from t where a = ?"),
            statements: 10,
            unsettled: None,
            is_ordered: false,
            is_limited: false,
            examples: vec![AskedStatement {
                position: format!("logs/{id}.log:7"),
                bytes: 20,
                answers: vec![baseline, own],
                first: vec![0, 1],
                second: vec![None, None],
            }],
        };
        let mut record = Scenario::duel().record();
        record.answers = Some(Answers {
            statements: 40,
            transactions: 40,
            classes: vec![
                class("same", done(1), done(1)),
                class("other", done(1), done(2)),
                class("late", done(1), missing()),
            ],
            refused: vec![RefusedSetting {
                contender: 1,
                id: "00c0ffee".to_owned(),
                text: "set sql_mode = ?".to_owned(),
                position: "set.log:3".to_owned(),
                refusal: Refusal {
                    name: "1231 (42000)".to_owned(),
                },
                settings: 1,
                transactions: 10,
            }],
            ..Answers::default()
        });
        record
    }

    #[test]
    fn the_section_has_counts_and_what_is_not_equal() {
        let (summary, findings) = summarise(&record());
        let view = answers(&summary).unwrap();
        let [sentence] = view.sentences.as_slice() else {
            panic!("{view:?}");
        };
        let counts = "2 of 3 classes of statements compared, 1 equal, 1 different, 0 different in what need not be equal; 1 setting refused";
        assert!(sentence.ends_with(counts), "{sentence}");
        let table = view.table.unwrap();
        let rows: Vec<Vec<&str>> = table
            .rows()
            .map(|row| row.cells.iter().map(|cell| cell.value.as_str()).collect())
            .collect();
        assert_eq!(rows.len(), 3, "{rows:?}");
        let refused = "error 1231 (42000); 10 transactions need it";
        let late = "the time for all statements was over";
        assert_eq!(
            rows[0][2..],
            ["setting refused", refused, "set.log:3", "1", "25 %"]
        );
        assert_eq!(
            rows[1][2..],
            [
                "rows",
                "2 rows instead of 1",
                "other.log:7",
                "1 of 1",
                "25 %"
            ]
        );
        assert_eq!(rows[2][2..], ["not compared", late, "", "", "25 %"]);
        let options = Options {
            width: 400,
            colour: false,
        };
        for format in FORMATS {
            let text = format.render(&summary, &findings, &options).text;
            let has = text.contains("compared, 1 equal") || text.contains("\"answers\"");
            assert!(has, "{}: {text}", format.name);
        }
    }
}
