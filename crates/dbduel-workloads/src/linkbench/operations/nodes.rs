//! Adding, writing, deleting and reading a node. Each is one statement in autocommit.

use dbduel_driver::{ClientConnection, Protocol, Statement, StatementError, Value};

use crate::linkbench::settings::NODE_TYPE;

/// The statements.
pub(in crate::linkbench) struct Nodes {
    add: Statement,
    update: Statement,
    delete: Statement,
    get: Statement,
}

impl Nodes {
    pub(in crate::linkbench) async fn prepare(
        conn: &mut ClientConnection,
        protocol: Protocol,
    ) -> Result<Self, StatementError> {
        let mut prepare = async |sql: &str| conn.prepare(sql, protocol).await;
        Ok(Nodes {
            add: prepare("INSERT INTO nodetable (type, version, time, data) VALUES (?, 1, ?, ?)")
                .await?,
            update: prepare(
                "UPDATE nodetable SET version = 2, time = ?, data = ? WHERE id = ? AND type = ?",
            )
            .await?,
            delete: prepare("DELETE FROM nodetable WHERE id = ? AND type = ?").await?,
            get: prepare("SELECT id, type, version, time, data FROM nodetable WHERE id = ?")
                .await?,
        })
    }

    /// Adds a node; the server chooses its id.
    pub(in crate::linkbench) async fn add(
        &mut self,
        conn: &mut ClientConnection,
        payload: &[u8],
        now_s: u64,
    ) -> Result<(), StatementError> {
        let values = [
            Value::Unsigned(NODE_TYPE),
            Value::Unsigned(now_s),
            Value::Bytes(payload),
        ];
        conn.execute(&mut self.add, &values).await?;
        Ok(())
    }

    /// Writes a node, which may have been deleted.
    pub(in crate::linkbench) async fn update(
        &mut self,
        conn: &mut ClientConnection,
        id: u64,
        payload: &[u8],
        now_s: u64,
    ) -> Result<(), StatementError> {
        let values = [
            Value::Unsigned(now_s),
            Value::Bytes(payload),
            Value::Unsigned(id),
            Value::Unsigned(NODE_TYPE),
        ];
        conn.execute(&mut self.update, &values).await?;
        Ok(())
    }

    /// Deletes a node and leaves its links.
    pub(in crate::linkbench) async fn delete(
        &mut self,
        conn: &mut ClientConnection,
        id: u64,
    ) -> Result<(), StatementError> {
        conn.execute(
            &mut self.delete,
            &[Value::Unsigned(id), Value::Unsigned(NODE_TYPE)],
        )
        .await?;
        Ok(())
    }

    /// Reads a node, which may have been deleted.
    pub(in crate::linkbench) async fn get(
        &mut self,
        conn: &mut ClientConnection,
        id: u64,
    ) -> Result<(), StatementError> {
        conn.execute(&mut self.get, &[Value::Unsigned(id)]).await?;
        Ok(())
    }
}
