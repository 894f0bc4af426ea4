//! Workloads of one statement on one of sysbench's tables, without a counterpart among sysbench's scripts.
//!
//! A table is chosen uniformly for every statement, and ids or values of `k` come from the distribution `rand_type`,
//! as in the other OLTP workloads. docs/microbenchmarks.md has the published microbenchmarks as parameters of these.

mod options;

use dbduel_client::distributions::Distribution;
use dbduel_client::random::Random;
use dbduel_client::tally::Class;
use dbduel_client::{Begin, Client, ClientContext, ClientTask, Clients};
use dbduel_driver::{ClientConnection, Dialect, StatementError, Value};
use dbduel_record::plan::Parameters;

use super::per_table::PerTable;
use super::tables;
use crate::parameters::{ParameterError, ParameterSpec};
use crate::sbtest::{self, C_LENGTH, Sbtest, fill_groups};
use crate::specs::{choice, switch};
use crate::{Effect, Table, Workload};
use options::{ACCESS, Access, Action, HOT_POINTS, Options};

/// One of the workloads.
#[derive(Debug)]
pub(crate) struct SingleStatement {
    action: Action,
    name: &'static str,
    about: &'static str,
}

const SELECT_PARAMETERS: &[ParameterSpec] = &[
    choice(
        ACCESS,
        &["points", "range", "scan"],
        "Rows that a query selects: those of an IN list, those between two values, or none after reading all.",
    ),
    choice(
        "key",
        &["primary", "secondary"],
        "Column that is searched: `id` (primary key) or `k` (secondary index). A scan searches neither.",
    ),
    choice(
        "columns",
        &["c", "key", "key-and-c", "count"],
        "Columns that are read: `c`, the searched one alone (its index covers the query), both, or COUNT(c).",
    ),
    sbtest::RANGE_SIZE,
];

const POINTS_PARAMETERS: &[ParameterSpec] = &[
    sbtest::RANDOM_POINTS,
    switch(
        HOT_POINTS,
        false,
        "Whether the IN list always has the same adjacent values, starting after the middle of the table.",
    ),
    sbtest::TABLES,
];

impl SingleStatement {
    pub(crate) const SELECT: Self = SingleStatement {
        action: Action::Select,
        name: "oltp-select",
        about: "One query of points, a range or a scan, by primary or secondary key, covered by its index or not.",
    };
    pub(crate) const UPDATE_INLIST: Self = SingleStatement {
        action: Action::UpdateInlist,
        name: "oltp-update-inlist",
        about: "One update of a column without index in all rows of an IN list, in autocommit.",
    };
}

impl Workload for SingleStatement {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        let own = match self.action {
            Action::Select => SELECT_PARAMETERS,
            Action::UpdateInlist => &[],
        };
        [own, POINTS_PARAMETERS, sbtest::COMMON].concat()
    }

    fn check(&self, parameters: &Parameters) -> Result<(), ParameterError> {
        sbtest::check(parameters)?;
        let options = Options::new(self.action, parameters);
        if !options.has_hot_points {
            return Ok(());
        }
        let why = if options.access != Access::Points {
            "cannot be true without an IN list; use `access = \"points\"`".to_owned()
        } else if options.hot_point(options.points) > options.sbtest.table_size {
            format!(
                "cannot be true for {} values behind the middle of {} rows; lower `random_points`",
                options.points, options.sbtest.table_size
            )
        } else {
            return Ok(());
        };
        Err(ParameterError {
            parameter: HOT_POINTS.to_owned(),
            why,
            nearest: None,
        })
    }

    fn effect(&self, _parameters: &Parameters) -> Effect {
        match self.action {
            Action::Select => Effect::Reads,
            Action::UpdateInlist => Effect::Changes,
        }
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
        tables(
            &sbtest,
            dialect,
            parameters,
            sbtest.table_size.unsigned_abs(),
        )
    }

    fn size_parameters(&self) -> &'static [&'static str] {
        &["table_size", "tables"]
    }
}

impl Clients for SingleStatement {
    fn client(&self, parameters: &Parameters, client_context: ClientContext) -> ClientTask {
        client_context.boxed::<SingleStatementClient>(Options::new(self.action, parameters))
    }
}

/// The stream of statements of one client.
pub(super) struct SingleStatementClient {
    options: Options,
    statements: PerTable,
    ids: Distribution,
    random: Random,
    /// Number of the client, from 0.
    client: u32,
}

impl Client for SingleStatementClient {
    type Options = Options;

    async fn open(
        conn: &mut ClientConnection,
        options: &Options,
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let (protocol, sql) = (options.protocol(), options.sql());
        Ok(SingleStatementClient {
            statements: PerTable::prepare(conn, protocol, options.tables, &sql).await?,
            ids: options.sbtest.ids(),
            random: Random::new(0),
            client: context.client,
            options: options.clone(),
        })
    }

    fn begin(&mut self, begin: Begin) {
        self.random = Random::new(begin.seed);
        self.client = begin.client;
    }

    async fn transaction(
        &mut self,
        _class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let statement = match self.options.access {
            // Clients scan tables of their own as far as there are enough.
            Access::Scan => self.statements.of(self.client as usize),
            Access::Points | Access::Range => self.statements.choose(&mut self.random),
        };
        let mut c = [0; C_LENGTH];
        let mut bound = Vec::with_capacity(self.options.points as usize + 1);
        if self.options.action == Action::UpdateInlist {
            bound.push(Value::Text(fill_groups(&mut self.random, &mut c)));
        }
        let (ids, random) = (&self.ids, &mut self.random);
        self.options.draw_key(ids, random, &mut bound);
        conn.execute(statement, &bound).await?;
        Ok(())
    }
}
