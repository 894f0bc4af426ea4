//! Session facts of the load's own connections, recorded and passed to the audit.

use anyhow::Result;
use dbduel_audit::ServerEvidence;
use dbduel_audit::evidence::Connection as Link;
use dbduel_driver::address::Address;
use dbduel_driver::session::Session;
use dbduel_record::facts::Connection;
use dbduel_record::tsv;

use crate::contest::journal::Journal;
use dbduel_inspect::live::transport;

/// Records the sessions and adds them to the evidence, both in plan order.
///
/// # Errors
/// When the record cannot be written.
pub fn keep_sessions(
    sessions: Vec<(Address, Session)>,
    evidence: &mut [ServerEvidence],
    journal: &Journal<'_>,
) -> Result<()> {
    for ((address, session), evidence) in sessions.into_iter().zip(evidence) {
        let lines = session.variables.iter();
        let lines: String = lines
            .map(|(name, value)| tsv::line(&[name.clone(), value.clone()]))
            .collect();
        let connection = Connection {
            transport: Some(transport(&address)),
            tls_cipher: session.tls_cipher,
            compression: session.compression,
            prepared: session.prepared,
            client: format!("dbduel {}", env!("CARGO_PKG_VERSION")),
        };
        let writer = journal.writer();
        writer.contender_file(&evidence.name, "session.tsv", lines.as_bytes())?;
        writer.contender_json(&evidence.name, "connection.json", &connection)?;
        let names = session.variables.into_iter();
        evidence.session = names
            .map(|(name, value)| (name.to_lowercase(), value))
            .collect();
        evidence.connection = Link::of(&connection);
    }
    Ok(())
}
