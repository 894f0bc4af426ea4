//! The plans of a level's statements, reduced to what the server's work depends on, and which of them are equal.
//!
//! Kept are tables in their order, the access method and key of each, sorts and temporary tables. Estimates are left
//! out: they differ between servers that do the same work.

use dbduel_record::Record;
use dbduel_record::statements::ExplainedStatement;

use crate::summary::{PlanForm, StatementPlan, StatementPlans};

/// Remarks of MySQL and MariaDB about work beyond reading a table.
const REMARKS: [&str; 8] = [
    "Using index",
    "Using filesort",
    "Using temporary",
    "Using join buffer",
    "Using union",
    "Using sort_union",
    "Using intersect",
    "Using rowid filter",
];
/// Texts of MySQL and MariaDB in place of a table for statements that need none, whatever their values.
const WITHOUT_TABLE: [&str; 2] = ["Select tables optimized away", "No tables used"];

/// One entry per class of statements that a contender was asked to explain; empty where none was. Captured statements are explained once,
/// at the first level.
#[must_use]
pub fn plans(record: &Record, level: usize) -> Vec<StatementPlans> {
    let own = record.contenders.iter().zip(&record.plan.contenders);
    let explained: Vec<(&str, &[ExplainedStatement])> = own
        .filter_map(|(files, contender)| {
            let own = files.statements.as_ref()?.at(level)?;
            let is_sampled = own.because.is_none();
            is_sampled.then_some((contender.name.as_str(), own.statements.as_slice()))
        })
        .collect();
    let mut classes: Vec<&ExplainedStatement> = Vec::new();
    for statement in explained.iter().flat_map(|(_, statements)| *statements) {
        let class = &statement.example.class;
        if !classes.iter().any(|known| known.example.class == *class) {
            classes.push(statement);
        }
    }
    let of_class = |first: &ExplainedStatement| {
        let class = &first.example.class;
        let mut plans: Vec<StatementPlan> = explained
            .iter()
            .map(|(contender, statements)| {
                let mut own = statements.iter();
                let own = own.find(|statement| statement.example.class == *class);
                plan(contender, own)
            })
            .collect();
        number(&mut plans);
        StatementPlans {
            class: class.clone(),
            id: first.example.id.clone(),
            example: first.example.text.clone(),
            plans,
        }
    };
    classes.into_iter().map(of_class).collect()
}

fn plan(contender: &str, statement: Option<&ExplainedStatement>) -> StatementPlan {
    let none = "no such statement in the sample of its clients".to_owned();
    let read = match statement {
        None => Err(none),
        Some(statement) => match &statement.because {
            Some(why) => Err(why.clone()),
            None => steps(statement),
        },
    };
    let (form, steps, because) = match read {
        Ok((form, steps)) => (Some(form), steps, None),
        Err(why) => (None, Vec::new(), Some(why)),
    };
    StatementPlan {
        contender: contender.to_owned(),
        form,
        steps,
        number: None,
        because,
    }
}

/// Numbers plans from 1, equal ones alike.
fn number(plans: &mut [StatementPlan]) {
    let mut known: Vec<(PlanForm, Vec<String>)> = Vec::new();
    for plan in plans {
        let Some(form) = plan.form else { continue };
        let own = (form, plan.steps.clone());
        let at = known.iter().position(|known| *known == own);
        let at = at.unwrap_or_else(|| {
            known.push(own);
            known.len() - 1
        });
        plan.number = Some(at as u32 + 1);
    }
}

/// The steps of a plan in their order, or why it says nothing.
fn steps(statement: &ExplainedStatement) -> Result<(PlanForm, Vec<String>), String> {
    let column = |name: &str| {
        let mut columns = statement.columns.iter();
        columns.position(|column| column.eq_ignore_ascii_case(name))
    };
    let value = |row: &[Option<String>], at: usize| row.get(at).cloned().flatten();
    let rows = || statement.rows.iter().map(Vec::as_slice);
    let (form, steps) = if let Some(at) = column("QUERY PLAN") {
        let lines = rows().filter_map(|row| value(row, at));
        (PlanForm::PostgreSql, nodes(lines))
    } else if let (Some(table), Some(access), Some(key)) =
        (column("table"), column("type"), column("key"))
    {
        let extra = column("Extra");
        let steps = rows().map(|row| {
            let extra = extra.and_then(|at| value(row, at)).unwrap_or_default();
            let Some(table) = value(row, table) else {
                return match WITHOUT_TABLE.iter().any(|known| extra.starts_with(known)) {
                    true => Ok(extra),
                    false => Err(format!("the example statement reads no table: {extra}")),
                };
            };
            let access = [value(row, access), value(row, key)];
            let access: Vec<String> = access.into_iter().flatten().collect();
            let remarks = extra.split(';').map(str::trim);
            let remarks = remarks.filter(|one| REMARKS.iter().any(|known| one.starts_with(known)));
            let access = access.join(" ");
            let parts: Vec<&str> = std::iter::once(access.as_str()).chain(remarks).collect();
            Ok(format!("{table}: {}", parts.join(", ")))
        });
        (PlanForm::MySql, steps.collect::<Result<_, String>>()?)
    } else if let Some(at) = column("detail") {
        let steps = rows().filter_map(|row| value(row, at)).collect();
        (PlanForm::Sqlite, steps)
    } else {
        return Err("EXPLAIN returned unknown columns".to_owned());
    };
    if steps.is_empty() {
        return Err("EXPLAIN returned no steps".to_owned());
    }
    let number = statement.example.number.as_deref();
    let steps = steps.iter().map(|step| without_number(step, number));
    Ok((form, steps.collect()))
}

/// The lines of a plan of PostgreSQL that begin a node, with its depth as dots.
fn nodes(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut nodes = Vec::new();
    for (at, line) in lines.enumerate() {
        let node = line.trim_start();
        match node.strip_prefix("->") {
            Some(below) => {
                let depth = (line.len() - node.len()) / 6 + 1;
                nodes.push(format!("{} {}", "·".repeat(depth), below.trim()));
            }
            None if at == 0 => nodes.push(node.trim_end().to_owned()),
            None => {}
        }
    }
    nodes
}

/// The number of the table in names is written as in the statement's class.
fn without_number(step: &str, number: Option<&str>) -> String {
    let Some(number) = number else {
        return step.to_owned();
    };
    let mut written = String::new();
    let mut rest = step;
    while let Some(start) = rest.find(|one: char| one.is_ascii_digit()) {
        let digits = &rest[start..];
        let end = digits.find(|one: char| !one.is_ascii_digit());
        let digits = &digits[..end.unwrap_or(digits.len())];
        let is_of_name = rest[..start].ends_with(|one: char| one.is_alphabetic() || one == '_');
        written.push_str(&rest[..start]);
        written.push_str(if is_of_name && digits == number {
            "N"
        } else {
            digits
        });
        rest = &rest[start + digits.len()..];
    }
    written + rest
}

#[cfg(test)]
mod tests {
    use dbduel_record::statements::{ContenderStatements, LevelStatements, StatementExample};

    use super::*;
    use crate::summarise;
    use dbduel_audit::Finding;
    use dbduel_testkit::synthetic::suite::suite_record;

    fn explained(class: &str, columns: &[&str], rows: &[&[&str]]) -> ExplainedStatement {
        let value = |value: &&str| (*value != "NULL").then(|| (*value).to_owned());
        ExplainedStatement {
            example: StatementExample {
                class: class.to_owned(),
                id: None,
                number: Some("3".to_owned()),
                text: Some(class.replace('N', "3").replace('?', "7")),
            },
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows: rows
                .iter()
                .map(|row| row.iter().map(value).collect())
                .collect(),
            because: None,
        }
    }

    const MYSQL: [&str; 6] = ["id", "table", "type", "key", "rows", "Extra"];

    /// A suite whose four contenders run the statements of its first workload each in its way.
    pub fn explained_record() -> Record {
        let mut record = suite_record();
        let range = "SELECT c FROM sbtestN WHERE k = ? ORDER BY c";
        let sorted = |rows: &str, key: &str| {
            let extra = "Using index condition; Using where; Using filesort";
            explained(range, &MYSQL, &[&["1", "sbtest3", "ref", key, rows, extra]])
        };
        let point = |table: &str, extra: &str| {
            let class = "DELETE FROM sbtestN WHERE id = ?";
            explained(
                class,
                &MYSQL,
                &[&["1", table, "range", "PRIMARY", "1", extra]],
            )
        };
        let refused = ExplainedStatement {
            because: Some("error 1064: not that".to_owned()),
            columns: Vec::new(),
            rows: Vec::new(),
            ..point("sbtest3", "")
        };
        let all = [
            vec![sorted("100", "k_3"), point("sbtest3", "Using where")],
            vec![sorted("98", "k_3"), point("NULL", "no matching row")],
            vec![sorted("98", "NULL"), refused],
            vec![sorted("1", "k_3")],
        ];
        for (files, statements) in record.contenders.iter_mut().zip(all) {
            files.statements = Some(ContenderStatements {
                levels: vec![LevelStatements {
                    level: 0,
                    statements,
                    because: None,
                }],
            });
        }
        let last = record.contenders[3].statements.as_mut().unwrap();
        last.levels.push(LevelStatements {
            level: 1,
            statements: Vec::new(),
            because: Some("the clients were refused".to_owned()),
        });
        record
    }

    #[test]
    fn plans_are_equal_but_for_estimates_and_numbers_of_tables() {
        let classes = plans(&explained_record(), 0);
        assert_eq!(classes.len(), 2);
        let numbers = |class: usize| {
            let plans = classes[class].plans.iter();
            plans.map(|plan| plan.number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(0), [Some(1), Some(1), Some(2), Some(1)]);
        let steps = |plan: usize| classes[0].plans[plan].steps.concat();
        let condition = "Using index condition, Using filesort";
        assert_eq!(steps(0), format!("sbtestN: ref k_N, {condition}"));
        assert_eq!(steps(2), format!("sbtestN: ref, {condition}"));
        assert_eq!(numbers(1), [Some(1), None, None, None]);
        let why = |plan: usize| classes[1].plans[plan].because.clone().unwrap();
        assert!(why(1).contains("no matching row") && why(2).contains("1064"));
        assert!(why(3).contains("no such statement"));
        assert!(plans(&explained_record(), 2).is_empty());
    }

    #[test]
    fn an_answer_without_a_table_is_a_plan_unless_it_depends_on_values() {
        let row = |extra| {
            let row = ["1", "NULL", "NULL", "NULL", "NULL", extra];
            steps(&explained("SELECT MAX(id) FROM sbtestN", &MYSQL, &[&row]))
        };
        for extra in ["Select tables optimized away", "No tables used"] {
            let plan = (PlanForm::MySql, vec![extra.to_owned()]);
            assert_eq!(row(extra), Ok(plan));
        }
        // The row of that key is not there; of another key it may be.
        let why = row("Impossible WHERE noticed after reading const tables");
        assert!(why.unwrap_err().contains("Impossible WHERE"));
    }

    #[test]
    fn a_changed_plan_and_one_that_is_not_known_are_findings() {
        let (_, findings) = summarise(&explained_record());
        let of = |rule: &str| -> Vec<&Finding> {
            findings.iter().filter(|one| one.rule == rule).collect()
        };
        let changed = of("plan.changed");
        assert_eq!(changed.len(), 1);
        assert_eq!((changed[0].about.len(), changed[0].level), (1, Some(0)));
        for part in ["1 of 2", "ORDER BY c", "ref k_N", "`sbtestN: ref, Using"] {
            assert!(changed[0].claim.contains(part), "{}", changed[0].claim);
        }
        let unknown = of("plan.not-explained");
        let claims: Vec<&str> = unknown.iter().map(|one| one.claim.as_str()).collect();
        assert!(
            claims.iter().any(|claim| claim.contains("1064")),
            "{claims:?}"
        );
        assert!(
            claims.iter().any(|claim| claim.contains("refused")),
            "{claims:?}"
        );
        let (_, none) = summarise(&suite_record());
        assert!(!none.iter().any(|one| one.rule.starts_with("plan.")));
    }

    #[test]
    fn plans_of_postgresql_are_their_nodes_and_those_of_sqlite_their_lines() {
        let lines = [
            ["Unique"],
            ["  ->  Sort"],
            ["        Sort Key: c"],
            ["        ->  Index Scan using sbtest3_pkey on sbtest3"],
            ["              Index Cond: ((id >= 33) AND (id <= 132))"],
        ];
        let lines: Vec<&[&str]> = lines.iter().map(<[&str; 1]>::as_slice).collect();
        let statement = explained("SELECT", &["QUERY PLAN"], &lines);
        let nodes = [
            "Unique",
            "· Sort",
            "·· Index Scan using sbtestN_pkey on sbtestN",
        ];
        let (form, read) = steps(&statement).unwrap();
        assert_eq!(
            (form, read),
            (PlanForm::PostgreSql, nodes.map(str::to_owned).into())
        );
        let detail = "SEARCH sbtest3 USING INTEGER PRIMARY KEY (rowid=?)";
        let row = ["2", "0", "0", detail];
        let columns = ["id", "parent", "notused", "detail"];
        let (form, read) = steps(&explained("SELECT", &columns, &[&row])).unwrap();
        let expected = detail.replace('3', "N");
        assert_eq!((form, read), (PlanForm::Sqlite, vec![expected]));
        assert!(steps(&explained("SELECT", &["else"], &[&["x"]])).is_err());
    }
}
