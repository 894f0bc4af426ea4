//! The table shared by all workloads of sysbench: its definition, its content and the distribution of ids.

use std::fmt::Write as _;

use dbduel_client::distributions::{Distribution, Shape};
use dbduel_client::random::Random;
use dbduel_driver::{Dialect, Protocol};
use dbduel_record::plan::Parameters;

use super::parameters::{Default, Kind, ParameterError, ParameterSpec, Resolved};
use super::specs::{ENGINE, integer, number, switch, text};
use super::sql::continue_numbers;
use super::{RowContent, Table};

/// Digits of a group in the columns `c` and `pad`; the groups are joined by `-`.
const GROUP: usize = 11;
/// Ten groups.
pub(super) const C_LENGTH: usize = 10 * (GROUP + 1) - 1;
/// Five groups.
pub(super) const PAD_LENGTH: usize = 5 * (GROUP + 1) - 1;

/// Overwrites the buffer with random groups of digits and returns it as text.
#[inline]
pub(super) fn fill_groups<'a>(random: &mut Random, text: &'a mut [u8]) -> &'a str {
    random.fill_digits(text);
    text.iter_mut()
        .skip(GROUP)
        .step_by(GROUP + 1)
        .for_each(|byte| *byte = b'-');
    // ASCII, so never the default.
    std::str::from_utf8(text).unwrap_or_default()
}

const fn choice(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
    about: &'static str,
) -> ParameterSpec {
    ParameterSpec {
        name,
        kind: Kind::Choice(words),
        default: Default::Text(default),
        about,
    }
}

/// The largest table: ids are a signed INTEGER.
const TABLE_SIZE_MAX: i64 = i32::MAX as i64;

/// Parameters that set how the tables are stored, not their content.
pub(super) const TABLE_PARAMETERS: &[&str] = &["engine", "create_table_options"];

/// Parameters of the tables, the distribution of ids, and the protocol.
pub(super) const COMMON: &[ParameterSpec] = &[
    integer("table_size", 1, TABLE_SIZE_MAX, 10_000, "Rows per table."),
    switch(
        "auto_inc",
        true,
        "Whether the server assigns the ids; if not, the client does.",
    ),
    switch(
        "secondary",
        false,
        "Whether `id` has an ordinary index instead of the primary key.",
    ),
    switch(
        "create_secondary",
        true,
        "Whether column `k` has an index, built after the rows are in.",
    ),
    ENGINE,
    text(
        "create_table_options",
        "",
        "Appended to CREATE TABLE, after the engine.",
    ),
    choice(
        "protocol",
        &["prepared", "text"],
        "prepared",
        "Whether statements are prepared or sent as text.",
    ),
    choice(
        "rand_type",
        &["uniform", "gaussian", "special", "pareto", "zipfian"],
        "special",
        "Distribution of ids; the default is `special` in sysbench 1.0, `uniform` in its unreleased head.",
    ),
    integer(
        "rand_spec_iter",
        1,
        1_000,
        12,
        "Uniform numbers summed by `gaussian` and by the bell of `special`.",
    ),
    integer(
        "rand_spec_pct",
        0,
        100,
        1,
        "Width of the hot band of `special`, percent of the table.",
    ),
    integer(
        "rand_spec_res",
        0,
        100,
        75,
        "Draws of `special` that fall into its hot band, percent.",
    ),
    number(
        "rand_pareto_h",
        1e-6,
        0.999_999,
        0.2,
        "Share h of `pareto`: h of the rows get 1 - h of the draws.",
    ),
    number(
        "rand_zipfian_exp",
        0.0,
        100.0,
        0.8,
        "Exponent of `zipfian`.",
    ),
    choice(
        "compatibility",
        &["1.0.20", "head"],
        "1.0.20",
        "sysbench version to follow where they differ: `head` draws uniform ids by default and has no `special`.",
    ),
];

pub(super) const TABLES: ParameterSpec =
    integer("tables", 1, 10_000, 1, "Tables, each of `table_size` rows.");
pub(super) const RANGE_SIZE: ParameterSpec = integer(
    "range_size",
    1,
    TABLE_SIZE_MAX,
    100,
    "Number of ids in the range of a range query.",
);

/// Parameters of the scripts that use several tables in transactions.
pub(super) const OLTP: &[ParameterSpec] = &[
    TABLES,
    RANGE_SIZE,
    integer(
        "id_max",
        0,
        TABLE_SIZE_MAX,
        0,
        "Largest id that clients draw; 0 stands for `table_size`.",
    ),
    integer(
        "point_selects",
        0,
        100_000,
        10,
        "Point queries per transaction.",
    ),
    integer(
        "simple_ranges",
        0,
        100_000,
        1,
        "Range queries per transaction.",
    ),
    integer(
        "sum_ranges",
        0,
        100_000,
        1,
        "Range queries with SUM per transaction.",
    ),
    integer(
        "order_ranges",
        0,
        100_000,
        1,
        "Range queries with ORDER BY per transaction.",
    ),
    integer(
        "distinct_ranges",
        0,
        100_000,
        1,
        "Range queries with DISTINCT per transaction.",
    ),
    integer(
        "index_updates",
        0,
        100_000,
        1,
        "Updates of the indexed column per transaction.",
    ),
    integer(
        "non_index_updates",
        0,
        100_000,
        1,
        "Updates of a column without index per transaction.",
    ),
    integer(
        "delete_inserts",
        0,
        100_000,
        1,
        "Pairs of DELETE and INSERT of the same id per transaction.",
    ),
    switch(
        "range_selects",
        true,
        "Whether there are range queries of any kind.",
    ),
    switch("skip_trx", false, "Whether BEGIN and COMMIT are omitted."),
];

pub(super) const RANDOM_POINTS: ParameterSpec = integer(
    "random_points",
    1,
    10_000,
    10,
    "Values in the IN list of a statement.",
);
/// Refuses features that `head` lacks.
pub(super) fn check(parameters: &Parameters) -> Result<(), ParameterError> {
    let parameters = Resolved(parameters);
    if parameters.text("compatibility") == "head" && parameters.text("rand_type") == "special" {
        return Err(ParameterError {
            parameter: "rand_type".to_owned(),
            why: "cannot be `special` with compatibility `head`, which removed it; set `rand_type = \"uniform\"`"
                .to_owned(),
            nearest: None,
        });
    }
    Ok(())
}

/// The parameters shared by clients and fill, in their types.
#[derive(Debug, Clone)]
pub(super) struct Sbtest {
    pub table_size: i64,
    pub auto_inc: bool,
    pub protocol: Protocol,
    pub shape: Shape,
}

impl Sbtest {
    pub(super) fn new(parameters: &Parameters) -> Self {
        let parameters = Resolved(parameters);
        let iterations = parameters.count("rand_spec_iter") as u32;
        let shape = match parameters.text("rand_type") {
            "gaussian" => Shape::Gaussian { iterations },
            "special" => Shape::Special {
                iterations,
                band_percent: parameters.number("rand_spec_pct"),
                band_share_percent: parameters.number("rand_spec_res"),
            },
            "pareto" => Shape::Pareto {
                h: parameters.number("rand_pareto_h"),
            },
            "zipfian" => Shape::Zipfian {
                exponent: parameters.number("rand_zipfian_exp"),
            },
            _ => Shape::Uniform,
        };
        Sbtest {
            table_size: parameters.integer("table_size"),
            auto_inc: parameters.switch("auto_inc"),
            protocol: if parameters.text("protocol") == "text" {
                Protocol::Text
            } else {
                Protocol::Prepared
            },
            shape,
        }
    }

    /// The distribution of ids, and of `k`.
    pub(super) fn ids(&self) -> Distribution {
        Distribution::new(self.shape, 1, self.table_size)
    }

    /// Table `number`, counted from 1, with `rows` rows.
    pub(super) fn table(
        &self,
        dialect: Dialect,
        parameters: &Parameters,
        number: u64,
        rows: u64,
    ) -> Table {
        let parameters = Resolved(parameters);
        let name = format!("sbtest{number}");
        let (create, mut finish) = match dialect {
            Dialect::MySql => (self.create_mysql(parameters, &name), Vec::new()),
            Dialect::PostgreSql => self.create_postgresql(parameters, number, &name),
            Dialect::Sqlite => create_sqlite(parameters, number, &name),
        };
        if parameters.switch("create_secondary") {
            finish.push(format!("CREATE INDEX k_{number} ON {name} (k)"));
        }
        Table {
            create,
            // Ids are written even where the server would number the rows: filled over several
            // connections, its numbers would not be the same every time.
            columns: "id, k, c, pad",
            rows,
            content: Box::new(Rows { ids: self.ids() }),
            finish,
            digest_columns: "id, k, c, pad",
            scaled: Vec::new(),
            name,
        }
    }

    fn create_mysql(&self, parameters: Resolved<'_>, name: &str) -> String {
        let auto_increment = if self.auto_inc { " AUTO_INCREMENT" } else { "" };
        let key = if parameters.switch("secondary") {
            "KEY xid (id)"
        } else {
            "PRIMARY KEY (id)"
        };
        let (engine, options) = (
            parameters.text("engine"),
            parameters.text("create_table_options"),
        );
        format!(
            "CREATE TABLE {name} (id INTEGER NOT NULL{auto_increment}, k INTEGER DEFAULT '0' NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, {key}) ENGINE = {engine} {options}"
        )
    }

    /// The statement that creates the table, and those for its ids. PostgreSQL has no engines, and creates a
    /// non-unique index in a separate statement.
    fn create_postgresql(
        &self,
        parameters: Resolved<'_>,
        number: u64,
        name: &str,
    ) -> (String, Vec<String>) {
        let id = if self.auto_inc {
            "SERIAL"
        } else {
            "INTEGER NOT NULL"
        };
        let options = parameters.text("create_table_options");
        let mut finish = Vec::new();
        let key = if parameters.switch("secondary") {
            finish.push(format!("CREATE INDEX xid_{number} ON {name} (id)"));
            ""
        } else {
            ", PRIMARY KEY (id)"
        };
        if self.auto_inc {
            finish.push(continue_numbers(name, "id"));
        }
        let create = format!(
            "CREATE TABLE {name} (id {id}, k INTEGER DEFAULT '0' NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL{key}) {options}"
        );
        (create, finish)
    }
}

/// The statement that creates the table, and that for its ids when they are not its key. SQLite assigns ids only in a
/// table whose key is one INTEGER.
fn create_sqlite(parameters: Resolved<'_>, number: u64, name: &str) -> (String, Vec<String>) {
    let options = parameters.text("create_table_options");
    let (id, finish) = match parameters.switch("secondary") {
        true => (
            "INTEGER NOT NULL",
            vec![format!("CREATE INDEX xid_{number} ON {name} (id)")],
        ),
        false => ("INTEGER PRIMARY KEY NOT NULL", Vec::new()),
    };
    let create = format!(
        "CREATE TABLE {name} (id {id}, k INTEGER DEFAULT '0' NOT NULL, \
         c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL) {options}"
    );
    (create, finish)
}

/// The content of a table.
struct Rows {
    ids: Distribution,
}

impl RowContent for Rows {
    fn write(&self, row: u64, random: &mut Random, sql: &mut String) {
        let k = self.ids.draw(random);
        let (mut c, mut pad) = ([0; C_LENGTH], [0; PAD_LENGTH]);
        let c = fill_groups(random, &mut c);
        let pad = fill_groups(random, &mut pad);
        // Writing to memory does not fail.
        let _ = write!(sql, "({row},{k},'{c}','{pad}')");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_and_pad_are_groups_of_eleven_digits() {
        let mut random = Random::new(1);
        for (length, groups) in [(C_LENGTH, 10), (PAD_LENGTH, 5)] {
            let mut text = vec![0; length];
            let text = fill_groups(&mut random, &mut text);
            let parts: Vec<&str> = text.split('-').collect();
            assert_eq!(parts.len(), groups, "{text}");
            assert!(
                parts
                    .iter()
                    .all(|part| part.len() == 11 && part.bytes().all(|byte| byte.is_ascii_digit()))
            );
        }
        assert_eq!((C_LENGTH, PAD_LENGTH), (119, 59));
    }
}
