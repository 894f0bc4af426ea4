//! Which experiments support power cuts.

use anyhow::Result;
use dbduel_record::plan::{Contender, Workload};
use dbduel_server::{Meaning, ServerName};

/// Why an experiment does not support power cuts.
#[derive(Debug, thiserror::Error)]
pub enum NotCuttable {
    /// The workload has no log of acknowledged commits.
    #[error("the workload `{0}` keeps no log of acknowledged commits; use one of {1}")]
    NoCommitLog(String, String),
    /// The server is not started by dbduel.
    #[error(
        "contender `{0}` is a running server; a power cut needs one that dbduel starts, such as `server = \"mariadb-10.11\"`"
    )]
    Running(String),
    /// The contender has no server process.
    #[error(
        "contender `{0}` runs in the load process; a power cut needs a server that dbduel starts, such as `server = \"mariadb-10.11\"`"
    )]
    InProcess(String),
    /// The data are on another machine.
    #[error(
        "the server of contender `{0}` is on another machine; a power cut needs one on this machine; remove its `host`"
    )]
    Elsewhere(String),
}

/// Refuses an unsupported experiment before anything is started.
///
/// # Errors
/// [`NotCuttable`].
pub fn check_cuttable(workload: &Workload, contenders: &[Contender]) -> Result<()> {
    let found = dbduel_workloads::find(&workload.name)?;
    if !found.keeps_commit_log() {
        let others = dbduel_workloads::WORKLOADS.iter();
        let others = others.filter(|workload| workload.keeps_commit_log());
        let others: Vec<&str> = others.map(|workload| workload.name()).collect();
        return Err(NotCuttable::NoCommitLog(workload.name.clone(), others.join(", ")).into());
    }
    for contender in contenders {
        if contender.host.is_some() {
            return Err(NotCuttable::Elsewhere(contender.name.clone()).into());
        }
        let name = ServerName::parse(&contender.server)?;
        match name.meaning {
            Meaning::Provided { .. } => {}
            Meaning::Running(_) => {
                return Err(NotCuttable::Running(contender.name.clone()).into());
            }
            Meaning::InProcess => return Err(NotCuttable::InProcess(contender.name.clone()).into()),
        }
    }
    Ok(())
}
