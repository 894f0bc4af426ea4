//! Adding, writing and hiding a link, with its count in the same transaction.

use dbduel_driver::{ClientConnection, Dialect, Protocol, Statement, StatementError, Value};

use super::{Bound, LinkKey, Number, Outer};
use crate::rows::unusable;
use crate::sql::on_taken_key;

/// The statements.
pub(in crate::linkbench) struct WriteLinks {
    insert: Outer,
    count_up: Statement,
    count_up_last: Outer,
    update_last: Outer,
    lock: Outer,
    hide: Statement,
    count_down: Statement,
    commit: Statement,
}

/// The statement that inserts the link or makes it visible. It says what the link was before: new (1), visible (0) or hidden (2).
/// MySQL says that by the count of changed rows, since connections do not ask for the count of rows found instead. PostgreSQL
/// returns it: a hidden link gets a version of 1 until the update that ends the transaction (`xmax` would say it too, but cannot be
/// read from tables with partitions).
fn insert_sql(dialect: Dialect) -> String {
    let on_taken_key = on_taken_key(dialect, "link_type, id1, id2");
    let answer = match dialect {
        Dialect::MySql | Dialect::Sqlite => "",
        Dialect::PostgreSql => {
            ", version = 1 WHERE linktable.visibility <> 1 RETURNING version + 1"
        }
    };
    format!(
        "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) \
         VALUES (?, ?, ?, 1, ?, ?, 0) {on_taken_key} visibility = 1{answer}"
    )
}

impl WriteLinks {
    pub(in crate::linkbench) async fn prepare(
        conn: &mut ClientConnection,
        protocol: Protocol,
    ) -> Result<Self, StatementError> {
        let insert = insert_sql(conn.dialect());
        let on_taken_count = on_taken_key(conn.dialect(), "id, link_type");
        let count_up = format!(
            "INSERT INTO counttable (id, link_type, count, time, version) VALUES (?, ?, 1, ?, 0) {on_taken_count} \
             count = counttable.count + 1, version = counttable.version + 1, time = ?"
        );
        let count_down = format!(
            "INSERT INTO counttable (id, link_type, count, time, version) VALUES (?, ?, 0, ?, 0) {on_taken_count} \
             count = CASE WHEN counttable.count = 0 THEN 0 ELSE counttable.count - 1 END, time = ?, \
             version = counttable.version + 1"
        );
        let update = "UPDATE linktable SET visibility = 1, data = ?, time = ?, version = 0 \
                      WHERE id1 = ? AND id2 = ? AND link_type = ?";
        let lock = "SELECT visibility FROM linktable WHERE id1 = ? AND id2 = ? AND link_type = ? FOR UPDATE";
        Ok(WriteLinks {
            insert: Outer::prepare(conn, protocol, Bound::Begins, &insert).await?,
            count_up: conn.prepare(&count_up, protocol).await?,
            count_up_last: Outer::prepare(conn, protocol, Bound::Commits, &count_up).await?,
            update_last: Outer::prepare(conn, protocol, Bound::Commits, update).await?,
            lock: Outer::prepare(conn, protocol, Bound::Begins, lock).await?,
            hide: conn
                .prepare(
                    "UPDATE linktable SET visibility = 0 WHERE id1 = ? AND id2 = ? AND link_type = ?",
                    protocol,
                )
                .await?,
            count_down: conn.prepare(&count_down, protocol).await?,
            commit: conn.prepare("COMMIT", protocol).await?,
        })
    }

    /// Adds a link; one that exists is made visible and gets this payload and time, milliseconds.
    pub(in crate::linkbench) async fn add(
        &mut self,
        conn: &mut ClientConnection,
        key: LinkKey,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), StatementError> {
        let LinkKey {
            id1,
            id2,
            link_type,
        } = key;
        let (id1, id2, link_type) = (
            Value::Unsigned(id1),
            Value::Unsigned(id2),
            Value::Unsigned(link_type),
        );
        let (now, payload) = (Value::Unsigned(now_ms), Value::Bytes(payload));
        let count = [id1, link_type, now, now];
        let update = [payload, now, id1, id2, link_type];
        let mut returned = Number::default();
        let inserted = self
            .insert
            .execute_into(conn, &[id1, id2, link_type, payload, now], &mut returned)
            .await?;
        let before = match conn.dialect() {
            Dialect::MySql | Dialect::Sqlite => inserted.affected_rows,
            Dialect::PostgreSql => returned.0.unwrap_or_default().unsigned_abs(),
        };
        match before {
            // New.
            1 => self.count_up_last.execute(conn, &count).await?,
            // There and visible.
            0 => self.update_last.execute(conn, &update).await?,
            // There and hidden until now.
            2 => {
                conn.execute(&mut self.count_up, &count).await?;
                self.update_last.execute(conn, &update).await?
            }
            changed => {
                return Err(unusable(&format!(
                    "adding one link changed {changed} rows; does `linktable` have its primary key?"
                )));
            }
        };
        Ok(())
    }

    /// Hides a link, if it is there and visible.
    pub(in crate::linkbench) async fn delete(
        &mut self,
        conn: &mut ClientConnection,
        key: LinkKey,
        now_ms: u64,
    ) -> Result<(), StatementError> {
        let now = Value::Unsigned(now_ms);
        let link = [
            Value::Unsigned(key.id1),
            Value::Unsigned(key.id2),
            Value::Unsigned(key.link_type),
        ];
        let mut visibility = Number::default();
        self.lock.execute_into(conn, &link, &mut visibility).await?;
        if visibility.0 == Some(1) {
            conn.execute(&mut self.hide, &link).await?;
            conn.execute(&mut self.count_down, &[link[0], link[2], now, now])
                .await?;
        }
        conn.execute(&mut self.commit, &[]).await?;
        Ok(())
    }
}
