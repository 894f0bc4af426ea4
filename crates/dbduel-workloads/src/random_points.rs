//! The two workloads of sysbench that read one table through its secondary index.
//!
//! Each client draws from its own part of the range: with n clients, client i draws between
//! i·(`table_size` / n) and (i + 1)·(`table_size` / n), both ends included and truncated to whole numbers.

use dbduel_client::distributions::Distribution;
use dbduel_client::random::Random;
use dbduel_client::tally::Class;
use dbduel_client::{Begin, Client, ClientContext, ClientTask, Clients};
use dbduel_driver::{ClientConnection, Dialect, Statement, StatementError, Value};
use dbduel_record::plan::Parameters;

use super::parameters::{ParameterError, ParameterSpec, Resolved};
use super::sbtest::{self, Sbtest};
use super::specs::integer;
use super::{Effect, Table, Workload};

/// One of the two workloads.
#[derive(Debug)]
pub(super) struct SelectRandom {
    query: Query,
    name: &'static str,
    about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Query {
    Points,
    Ranges,
}

const NUMBER_OF_RANGES: ParameterSpec = integer(
    "number_of_ranges",
    1,
    10_000,
    10,
    "Ranges joined by OR in a query.",
);
const DELTA: ParameterSpec = integer("delta", 1, 1_000_000, 5, "Width of each range.");

impl SelectRandom {
    pub(super) const POINTS: Self = SelectRandom {
        query: Query::Points,
        name: "select-random-points",
        about: "One query with a list of values for an indexed column.",
    };
    pub(super) const RANGES: Self = SelectRandom {
        query: Query::Ranges,
        name: "select-random-ranges",
        about: "One query that counts the rows of several ranges of an indexed column.",
    };
}

impl Workload for SelectRandom {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        let own: &[ParameterSpec] = match self.query {
            Query::Points => &[sbtest::RANDOM_POINTS],
            Query::Ranges => &[NUMBER_OF_RANGES, DELTA],
        };
        [own, sbtest::COMMON].concat()
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        sbtest::check(parameters)
    }

    fn effect(&self, _parameters: &Parameters) -> Effect {
        Effect::Reads
    }

    fn speaks(&self, _dialect: Dialect) -> bool {
        true
    }

    fn mysql_parameters(&self) -> &'static [&'static str] {
        &["engine"]
    }

    fn own_parameters(&self) -> &'static [&'static str] {
        sbtest::TABLE_PARAMETERS
    }

    fn tables(&self, dialect: Dialect, parameters: &Parameters) -> Vec<Table> {
        let sbtest = Sbtest::new(parameters);
        vec![sbtest.table(dialect, parameters, 1, sbtest.table_size.unsigned_abs())]
    }

    fn size_parameters(&self) -> &'static [&'static str] {
        &["table_size"]
    }
}

impl Clients for SelectRandom {
    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        let resolved = Resolved(parameters);
        let (terms, delta) = match self.query {
            Query::Points => (resolved.count("random_points"), None),
            Query::Ranges => (
                resolved.count("number_of_ranges"),
                Some(resolved.integer("delta")),
            ),
        };
        client_context.boxed::<SelectRandomClient>(Options {
            sbtest: Sbtest::new(parameters),
            terms: terms as usize,
            delta,
        })
    }
}

/// State common to all clients.
#[derive(Clone)]
pub(super) struct Options {
    sbtest: Sbtest,
    /// Points or ranges per query.
    terms: usize,
    /// Width of a range; `None` for points.
    delta: Option<i64>,
}

/// The stream of queries of one client.
pub(super) struct SelectRandomClient {
    options: Options,
    values: Distribution,
    random: Random,
    statement: Statement,
    /// The values of one query; the buffer is reused.
    bound: Vec<Value<'static>>,
}

impl Client for SelectRandomClient {
    type Options = Options;

    async fn open(
        conn: &mut ClientConnection,
        options: &Options,
        _context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let sql = match options.delta {
            None => format!(
                "SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({})",
                repeated("?", ", ", options.terms)
            ),
            Some(_) => {
                let ranges = repeated("k BETWEEN ? AND ?", " OR ", options.terms);
                format!("SELECT count(k) FROM sbtest1 WHERE {ranges}")
            }
        };
        Ok(SelectRandomClient {
            statement: conn.prepare(&sql, options.sbtest.protocol).await?,
            values: options.sbtest.ids(),
            random: Random::new(0),
            bound: Vec::with_capacity(2 * options.terms),
            options: options.clone(),
        })
    }

    fn begin(&mut self, begin: Begin) {
        self.random = Random::new(begin.seed);
        let (low, high) = part(self.options.sbtest.table_size, begin.client, begin.clients);
        self.values = Distribution::new(self.options.sbtest.shape, low, high);
    }

    async fn transaction(
        &mut self,
        _class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        self.bound.clear();
        for _ in 0..self.options.terms {
            let value = self.values.draw(&mut self.random);
            self.bound.push(Value::Signed(value));
            if let Some(delta) = self.options.delta {
                self.bound.push(Value::Signed(value + delta));
            }
        }
        conn.execute(&mut self.statement, &self.bound).await?;
        Ok(())
    }
}

fn repeated(term: &str, separator: &str, count: usize) -> String {
    vec![term; count].join(separator)
}

/// The part of the values that a client draws from.
fn part(table_size: i64, client: u32, clients: u32) -> (i64, i64) {
    let width = table_size as f64 / f64::from(clients.max(1));
    let low = width * f64::from(client);
    (low as i64, (low + width) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_clients_meet_at_their_ends() {
        assert_eq!(part(10_000, 0, 1), (0, 10_000));
        assert_eq!(part(10_000, 0, 4), (0, 2_500));
        assert_eq!(part(10_000, 3, 4), (7_500, 10_000));
        assert_eq!(part(10, 1, 3), (3, 6));
    }
}
