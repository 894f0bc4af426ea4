//! `[limits] prove = true`: cuts the power of every contender that claims durable commits before the contest.
//!
//! Runs before any other preparation, so that no sandbox of the contest exists that the crash test could disturb, and
//! the contest finds the loaded data in a snapshot.

use anyhow::{Context as _, Result};
use dbduel_machine::clock;
use dbduel_powercut::{CutModel, mount};
use dbduel_record::Record;
use dbduel_record::event::{Notice, Severity};
use dbduel_record::facts::Proof;
use dbduel_record::plan::DurabilityProof;
use dbduel_record::store::PROOF;

use super::ContestConfig;
use super::journal::Journal;
use crate::crash::{self, ContenderOutcome, CrashConfig};

/// Cuts the power of each contender whose proof is not in the record, and records the result.
///
/// # Errors
/// When this machine has no FUSE, a server cannot be fetched, loaded or driven, the record cannot be written, or the
/// user interrupts. A server's loss or corruption is no error.
pub fn prove(config: &ContestConfig<'_>, past: &Record, journal: &mut Journal<'_>) -> Result<()> {
    let plan = &config.plan;
    let Some(DurabilityProof { cuts, load_s }) = plan.limits.prove else {
        return Ok(());
    };
    let crash = CrashConfig {
        contest: config,
        cuts,
        models: &CutModel::ALL,
        load_s,
        images: None,
    };
    let mut claims = past.contenders.iter().filter(|files| {
        let proof = files.proof.as_ref();
        proof.is_some_and(|proof| proof.weaker_promise.is_none())
    });
    let mut is_claimed = claims.next().is_some();
    let open = plan.contenders.iter().zip(&past.contenders).enumerate();
    for (number, (contender, _)) in open.filter(|(_, (_, files))| files.proof.is_none()) {
        mount::check()?;
        let begun = clock::now();
        let outcome = crash::prove(&crash, number)
            .with_context(|| format!("could not cut the power of `{}`", contender.name))?;
        let seconds = clock::since(begun).as_secs_f64();
        let proof = match outcome {
            Ok(outcome) => summary(&outcome, seconds),
            Err(setting) => Proof {
                weaker_promise: Some(setting),
                seconds,
                ..Proof::default()
            },
        };
        is_claimed |= proof.weaker_promise.is_none();
        config.remark(&said(&contender.name, &proof));
        journal
            .writer()
            .contender_json(&contender.name, PROOF, &proof)?;
    }
    if !is_claimed {
        journal.notice(Notice::new(
            "prove.nothing-claimed",
            Severity::Note,
            &[],
            "`prove = true` had no effect: no contender's settings claim that a commit survives a power cut".to_owned(),
            "set innodb_flush_log_at_trx_commit = 1 or synchronous_commit = on, or leave `prove` out",
        ))?;
    }
    Ok(())
}

/// Summary of the cuts for the record.
fn summary(outcome: &ContenderOutcome, seconds: f64) -> Proof {
    let counted = || {
        outcome
            .cuts
            .iter()
            .filter_map(|cut| Some((cut, cut.verdict.lost?)))
    };
    let tally = outcome.tally(None);
    Proof {
        weaker_promise: None,
        cuts: tally.cuts,
        acknowledged: counted().map(|(cut, _)| cut.acknowledged).sum(),
        lost: counted().map(|(_, lost)| lost).sum(),
        cuts_with_loss: tally.commits_lost,
        cuts_corrupt: tally.noticed + tally.unnoticed,
        example: outcome.first_failure(),
        clients: outcome.load.clients,
        load_s: outcome.load.seconds,
        seconds,
    }
}

fn said(contender: &str, proof: &Proof) -> String {
    match (&proof.weaker_promise, &proof.example) {
        (Some(setting), _) => {
            format!("{contender}: no power cuts, as {setting} does not claim durable commits")
        }
        (None, None) => format!(
            "{contender}: all {} acknowledged commits survived {} power cuts",
            proof.acknowledged, proof.cuts
        ),
        (None, Some(example)) => format!("{contender}: {example}"),
    }
}
