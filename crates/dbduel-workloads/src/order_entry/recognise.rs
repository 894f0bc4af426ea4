//! Checks that the tables are this workload's, complete, and fit the parameters.
//!
//! Other tools use the same table names; their data are recognised and refused, with the reason.

use std::collections::BTreeSet;

use dbduel_driver::{Connection, QueryError};

use super::schema::{COMPLETE, FACTS, specified};
use super::settings::{Settings, allowed_constants};
use super::values::constants_fit;
use crate::fill::{RESUME, table_names};
use crate::sql::indexes;
use crate::verification::VerifyError;

/// Why the tables cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableData {
    /// None of the tables exists.
    #[error("there are no order-entry tables in this database; load them with `--prepare`")]
    Absent,
    /// A fill was interrupted.
    #[error("a fill of the tables was interrupted; with `--prepare`, {RESUME}")]
    HalfFilled,
    /// Another program made the tables.
    #[error("the tables were made by {tool}: {why}; use another database")]
    Foreign {
        /// The program.
        tool: &'static str,
        /// What is wrong with them.
        why: &'static str,
    },
    /// There are fewer warehouses than asked for.
    #[error(
        "the data were loaded with `warehouses = {filled}`, but {asked} are requested; load them again, or set \
         `warehouses = {filled}`"
    )]
    Warehouses {
        /// Warehouses in the data.
        filled: u64,
        /// Warehouses of the parameters.
        asked: u64,
    },
    /// The data were loaded with another scale.
    #[error("the data were loaded with a different `scale`; load them again")]
    Scale,
    /// The run's constant for last names does not fit the data's.
    #[error("`nurand_last` cannot be {run} for data filled with {load}; {}", allowed_constants(*load))]
    LastNames {
        /// Constant of the data.
        load: u64,
        /// Constant of the run.
        run: u64,
    },
}

/// Facts stored with the data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub warehouses: u64,
    items: u64,
    pub customers: u64,
    last_name_load: u64,
    complete: bool,
}

impl Facts {
    /// Takes a row of the table of facts; false when no fact has that name.
    pub(super) fn note(&mut self, name: &str, value: u64) -> bool {
        match name {
            "warehouses" => self.warehouses = value,
            "items" => self.items = value,
            "customers" => self.customers = value,
            "nurand_last_load" => self.last_name_load = value,
            COMPLETE => self.complete = value == 1,
            _ => return false,
        }
        true
    }

    /// Refuses data that do not fit the settings.
    pub(super) fn check(&self, settings: &Settings) -> Result<(), UnusableData> {
        let Facts {
            warehouses: filled,
            items,
            customers,
            last_name_load: load,
            complete,
        } = *self;
        let (asked, run) = (settings.warehouses, settings.last_name_run);
        if !complete {
            Err(UnusableData::HalfFilled)
        } else if filled < asked {
            Err(UnusableData::Warehouses { filled, asked })
        } else if (items, customers) != (settings.population.items, settings.population.customers) {
            Err(UnusableData::Scale)
        } else if !constants_fit(load, run) {
            Err(UnusableData::LastNames { load, run })
        } else {
            Ok(())
        }
    }
}

/// A schema of another tool: a table that only it has, if possible with an index that only it has.
struct Signature {
    tool: &'static str,
    table: &'static str,
    index: Option<&'static str>,
    why: &'static str,
}

const SIGNATURES: &[Signature] = &[
    Signature {
        tool: "tpcc-mysql",
        table: "new_orders",
        index: None,
        why: "half of its customers have bad credit instead of a tenth, and the constant of its last names is unknown",
    },
    Signature {
        tool: "go-tpc",
        table: "orders",
        index: Some("idx_order"),
        why: "the constant of its last names is not stored, so no valid one can be chosen for a run",
    },
    Signature {
        tool: "sysbench-tpcc",
        table: "new_orders1",
        index: None,
        why: "its strings repeat one letter, so pages compress as no real data do",
    },
    Signature {
        tool: "BenchBase",
        table: "oorder",
        index: None,
        why: "it keeps money as floating-point numbers, so sums do not agree",
    },
];

/// Reads the facts of the default database and compares them with the settings.
pub(super) fn recognise(
    connection: &mut Connection,
    settings: &Settings,
) -> Result<Facts, VerifyError> {
    let tables = table_names(connection)?;
    if !tables.contains(FACTS) {
        return Err(VerifyError::unusable(whose(connection, &tables)?));
    }
    let answer = connection.query(&format!("SELECT name, value FROM {FACTS}"))?;
    let mut facts = Facts::default();
    for row in 0..answer.rows.len() {
        let value = answer.text(row, 1).and_then(|text| text.parse().ok());
        if let (Some(name), Some(value)) = (answer.text(row, 0), value) {
            facts.note(&name, value);
        }
    }
    facts.check(settings).map_err(VerifyError::unusable)?;
    Ok(facts)
}

/// Identifies the program that made tables without facts.
fn whose(
    connection: &mut Connection,
    tables: &BTreeSet<String>,
) -> Result<UnusableData, QueryError> {
    for Signature {
        tool,
        table,
        index,
        why,
    } in SIGNATURES
    {
        if !tables.iter().any(|name| name.eq_ignore_ascii_case(table)) {
            continue;
        }
        if let Some(index) = index
            && !indexes(connection, table)?.iter().any(|name| name == index)
        {
            continue;
        }
        return Ok(UnusableData::Foreign { tool, why });
    }
    if specified().any(|wanted| tables.iter().any(|name| name.eq_ignore_ascii_case(wanted))) {
        return Ok(UnusableData::Foreign {
            tool: "an unknown program",
            why: "their content is unknown",
        });
    }
    Ok(UnusableData::Absent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, parameters::resolve};
    use dbduel_record::plan::Parameters;

    #[track_caller]
    fn check(facts: &[(&str, u64)], expected: &Result<(), UnusableData>) {
        let given = Parameters::from([("warehouses".to_owned(), 2.into())]);
        let settings = Settings::new(&resolve(find("order-entry").unwrap(), &given).unwrap());
        let mut noted = Facts::default();
        for (name, value) in [
            ("warehouses", 2),
            ("items", 100_000),
            ("customers", 3_000),
            ("nurand_last_load", 208),
            ("complete", 1),
        ]
        .iter()
        .chain(facts)
        {
            noted.note(name, *value);
        }
        assert_eq!(&noted.check(&settings), expected);
    }

    #[test]
    fn only_data_that_fit_are_used() {
        check(&[], &Ok(()));
        check(&[("warehouses", 3)], &Ok(()));
        check(&[("complete", 0)], &Err(UnusableData::HalfFilled));
        check(
            &[("warehouses", 1)],
            &Err(UnusableData::Warehouses {
                filled: 1,
                asked: 2,
            }),
        );
        check(&[("items", 1_000)], &Err(UnusableData::Scale));
        check(
            &[("nurand_last_load", 122)],
            &Err(UnusableData::LastNames {
                load: 122,
                run: 123,
            }),
        );
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let error = UnusableData::LastNames {
            load: 122,
            run: 123,
        }
        .to_string();
        let expected = "`nurand_last` cannot be 123 for data filled with 122; \
                        the difference must be 65 to 119, but not 96 or 112; use 37, for example";
        assert_eq!(error, expected);
    }
}
