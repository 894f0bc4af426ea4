//! Durability of a committed transaction, in one sentence per contender.

use dbduel_record::facts::Proof;
use dbduel_text::counts;

use super::case::Case;
use super::reading;
use super::server::Product;
use super::table::table;
use super::value::Value;

/// From this value of the fact `commit.level` on, a commit is on disk before it is acknowledged.
pub const FULLY_DURABLE: f64 = 3.0;

/// The sentence about the contender `index`.
#[must_use]
pub fn promise(case: &Case, index: usize) -> String {
    let fact = |name: &str| {
        let fact = table().fact(name)?;
        reading::read(fact, case, index).value().cloned()
    };
    let product = case.contenders[index].product;
    let level = fact("commit.level").and_then(|level| level.number());
    let survives = match level {
        Some(FULLY_DURABLE..) => &format!(
            "a committed transaction survives a kill, an OS crash and a power cut ({})",
            basis(case.contenders[index].proof.as_ref())
        ),
        Some(2.0..) => "a committed transaction survives a kill, not an OS crash or a power cut",
        Some(1.0..) => "a committed transaction may be lost with the process, for a second or so",
        Some(_) => "a committed transaction survives nothing",
        None => "what a committed transaction survives cannot be read",
    };
    let pages = match fact("torn_page.protection") {
        Some(Value::Word(mechanism)) if mechanism == "none" => {
            "torn pages are not repaired".to_owned()
        }
        Some(_) if product == Product::PostgreSql => {
            "torn pages are covered by full-page images in the WAL".to_owned()
        }
        Some(_) if product == Product::Sqlite => {
            let is_wal = fact("journal_mode").is_some_and(|mode| mode.to_string() == "wal");
            let journal = if is_wal { "WAL" } else { "rollback journal" };
            format!("torn pages are covered by the {journal}")
        }
        Some(mechanism) => format!("torn pages are covered by {mechanism}"),
        None => "protection from torn pages cannot be read".to_owned(),
    };
    let log = match (fact("binlog.on"), fact("binlog.sync")) {
        // These have one log, and no other that could be behind it.
        _ if !product.has_innodb() => return format!("{survives}; {pages}"),
        (Some(Value::Switch(false)), _) => "no binary log".to_owned(),
        (Some(_), Some(Value::Number(1.0))) => {
            "the binary log is synced with every commit".to_owned()
        }
        (Some(_), Some(_)) => "the binary log is not synced with every commit".to_owned(),
        _ => "the binary log cannot be read".to_owned(),
    };
    format!("{survives}; {pages}; {log}")
}

/// Basis of the claim of full durability.
fn basis(proof: Option<&Proof>) -> String {
    let Some(proof) = proof.filter(|proof| proof.cuts > 0) else {
        return "by its settings".to_owned();
    };
    let word = match proof.is_proved() {
        true => "proven",
        false => "claimed by its settings and disproved",
    };
    let corrupt = match proof.cuts_corrupt {
        0 => String::new(),
        cuts => format!(", {} with wrong data", counts::things(cuts.into(), "cut")),
    };
    format!(
        "{word}: {} over {}, {} lost{corrupt}",
        counts::things(proof.acknowledged, "acknowledged commit"),
        counts::things(proof.cuts.into(), "power cut"),
        counts::of(proof.lost)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Defaults, predict};

    #[track_caller]
    fn check(recorded: &str, settings: &[(&str, &str)], expected: &str) {
        let mut server = Defaults::of(recorded).unwrap().evidence("a").unwrap();
        for (name, value) in settings {
            predict(&mut server, name, value);
        }
        assert_eq!(promise(&Case::of(vec![server]), 0), expected);
    }

    #[test]
    fn the_promise_follows_from_commits_pages_and_the_log() {
        let safe = "a committed transaction survives a kill, an OS crash and a power cut (by its settings)";
        let log = "the binary log is synced with every commit";
        check(
            "mysql-8.0.33",
            &[],
            &format!("{safe}; torn pages are covered by doublewrite; {log}"),
        );
        check(
            "mariadb-10.11.5",
            &[
                ("innodb_flush_log_at_trx_commit", "2"),
                ("innodb_doublewrite", "0"),
            ],
            "a committed transaction survives a kill, not an OS crash or a power cut; torn pages are not repaired; no binary log",
        );
        check(
            "sqlite-3.54.1",
            &[],
            &format!("{safe}; torn pages are covered by the rollback journal"),
        );
        check(
            "sqlite-3.54.1",
            &[("journal_mode", "WAL"), ("synchronous", "NORMAL")],
            "a committed transaction survives a kill, not an OS crash or a power cut; torn pages are covered by the WAL",
        );
    }

    #[test]
    fn a_proof_gives_its_counts() {
        let proof = |lost, cuts_corrupt| Proof {
            cuts: 10,
            acknowledged: 4_321,
            lost,
            cuts_with_loss: u32::from(lost > 0),
            cuts_corrupt,
            ..Proof::default()
        };
        let not_cut = Proof {
            weaker_promise: Some("synchronous_commit = off".to_owned()),
            ..Proof::default()
        };
        let counts = "4,321 acknowledged commits over 10 power cuts";
        for (proof, expected) in [
            (None, "by its settings".to_owned()),
            (Some(not_cut), "by its settings".to_owned()),
            (Some(proof(0, 0)), format!("proven: {counts}, 0 lost")),
            (
                Some(proof(7, 1)),
                format!(
                    "claimed by its settings and disproved: {counts}, 7 lost, 1 cut with wrong data"
                ),
            ),
        ] {
            assert_eq!(basis(proof.as_ref()), expected);
        }
    }
}
