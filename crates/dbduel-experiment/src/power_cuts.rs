//! Which experiments a power cut can be tried on.

use anyhow::Result;
use dbduel_record::plan::{Contender, Workload};
use dbduel_server::{Meaning, ServerName};

/// Why an experiment cannot be cut.
#[derive(Debug, thiserror::Error)]
pub enum NotCuttable {
    /// Nothing says what was acknowledged.
    #[error("the workload `{0}` keeps no log of acknowledged commits; use one of {1}")]
    NoCommitLog(String, String),
    /// Its data are not ours to cut.
    #[error(
        "contender `{0}` is a running server; a power cut needs one that dbduel starts, such as `server = \"mariadb-10.11\"`"
    )]
    Running(String),
    /// It has no process of its own that could be started again.
    #[error(
        "contender `{0}` runs in the load process; a power cut needs a server that dbduel starts, such as `server = \"mariadb-10.11\"`"
    )]
    InProcess(String),
    /// Its data are not here.
    #[error(
        "the server of contender `{0}` is on another machine; a power cut needs one on this machine, so leave its host out"
    )]
    Elsewhere(String),
}

/// Refuses what cannot be done, before anything is started.
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
