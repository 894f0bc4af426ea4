//! Reading links: a count, a few by their ids, the newest of a node.

use dbduel_driver::{ClientConnection, Protocol, Row, Sink, Statement, StatementError, Value};

use crate::linkbench::settings::LIST_LIMIT;
use crate::sql::force_index;

/// The columns of a link as every query returns them; the time is the last.
const COLUMNS: &str = "id1, id2, link_type, visibility, data, version, time";
/// A time later than every link's.
const END_OF_TIME: u64 = i64::MAX as u64;

/// The statements.
pub(in crate::linkbench) struct ReadLinks {
    count: Statement,
    list: Statement,
    /// One statement per number of ids, each prepared when it is first needed.
    multiget: Vec<Option<Statement>>,
    values: Vec<Value<'static>>,
    protocol: Protocol,
}

impl ReadLinks {
    pub(in crate::linkbench) async fn prepare(
        conn: &mut ClientConnection,
        protocol: Protocol,
    ) -> Result<Self, StatementError> {
        let index = force_index(conn.dialect(), "id1_type");
        Ok(ReadLinks {
            count: conn.prepare("SELECT count FROM counttable WHERE id = ? AND link_type = ?", protocol).await?,
            list: conn
                .prepare(
                    &format!(
                        "SELECT {COLUMNS} FROM linktable{index} WHERE id1 = ? AND link_type = ? \
                         AND time >= 0 AND time <= ? AND visibility = 1 ORDER BY time DESC LIMIT {LIST_LIMIT} OFFSET ?"
                    ),
                    protocol,
                )
                .await?,
            multiget: Vec::new(),
            values: Vec::new(),
            protocol,
        })
    }

    /// Reads the number of visible links of a node.
    pub(in crate::linkbench) async fn count(
        &mut self,
        conn: &mut ClientConnection,
        id1: u64,
        link_type: u64,
    ) -> Result<(), StatementError> {
        conn.execute(
            &mut self.count,
            &[Value::Unsigned(id1), Value::Unsigned(link_type)],
        )
        .await?;
        Ok(())
    }

    /// Reads the links to these ids, hidden ones too.
    pub(in crate::linkbench) async fn multiget(
        &mut self,
        conn: &mut ClientConnection,
        id1: u64,
        link_type: u64,
        ids: &[u64],
    ) -> Result<(), StatementError> {
        if self.multiget.len() < ids.len() {
            self.multiget.resize_with(ids.len(), || None);
        }
        let place = &mut self.multiget[ids.len() - 1];
        let statement = match place {
            Some(statement) => statement,
            empty => {
                let marks = vec!["?"; ids.len()].join(", ");
                let sql = format!(
                    "SELECT {COLUMNS} FROM linktable WHERE id1 = ? AND link_type = ? AND id2 IN ({marks})"
                );
                empty.insert(conn.prepare(&sql, self.protocol).await?)
            }
        };
        self.values.clear();
        self.values.extend(
            [id1, link_type]
                .iter()
                .chain(ids)
                .map(|&id| Value::Unsigned(id)),
        );
        conn.execute(statement, &self.values).await?;
        Ok(())
    }

    /// Reads the newest visible links of a node; returns the time of the oldest of them when there may be
    /// more.
    pub(in crate::linkbench) async fn list(
        &mut self,
        conn: &mut ClientConnection,
        id1: u64,
        link_type: u64,
    ) -> Result<Option<u64>, StatementError> {
        self.list_before(conn, id1, link_type, END_OF_TIME, 0).await
    }

    /// Continues a list whose oldest link so far has this time.
    pub(in crate::linkbench) async fn list_on(
        &mut self,
        conn: &mut ClientConnection,
        id1: u64,
        link_type: u64,
        time: u64,
    ) -> Result<Option<u64>, StatementError> {
        // The first one is known already.
        self.list_before(conn, id1, link_type, time, 1).await
    }

    async fn list_before(
        &mut self,
        conn: &mut ClientConnection,
        id1: u64,
        link_type: u64,
        newest: u64,
        skip: u64,
    ) -> Result<Option<u64>, StatementError> {
        let values = [
            Value::Unsigned(id1),
            Value::Unsigned(link_type),
            Value::Unsigned(newest),
            Value::Unsigned(skip),
        ];
        let mut end = ListEnd::default();
        conn.execute_into(&mut self.list, &values, &mut end).await?;
        Ok(end.time)
    }
}

/// Reads the last link of a list that is as long as a query allows, and no other.
#[derive(Default)]
struct ListEnd {
    rows: u64,
    time: Option<u64>,
}

impl Sink for ListEnd {
    #[inline]
    fn wants_columns(&self) -> bool {
        false
    }

    #[inline]
    fn row(&mut self, row: &Row<'_>) {
        self.rows += 1;
        if self.rows == LIST_LIMIT {
            let time = row
                .values()
                .last()
                .and_then(Result::ok)
                .and_then(|value| value.as_i64());
            self.time = time.and_then(|time| time.try_into().ok());
        }
    }
}
