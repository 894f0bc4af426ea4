//! A rule about power cuts before the contest, and the commits that they lost.

use dbduel_record::event::Severity;
use dbduel_text::counts;

use super::{Contender, Hit};
use crate::durability_summary::FULLY_DURABLE;

pub fn disproved(contender: &Contender<'_>) -> Option<Hit> {
    let proof = contender.server().proof.as_ref()?;
    let is_claimed = contender.number("commit.level")? >= FULLY_DURABLE;
    if !is_claimed || !proof.is_disproved() {
        return None;
    }
    let what = format!(
        "claims that commits survive a power cut but failed in {} of {}: {} of {} were lost, and {} left wrong data \
         or a server that did not start; {}",
        proof.cuts_with_loss + proof.cuts_corrupt,
        counts::things(proof.cuts.into(), "cut"),
        counts::of(proof.lost),
        counts::things(proof.acknowledged, "acknowledged commit"),
        counts::things(proof.cuts_corrupt.into(), "cut"),
        proof
            .example
            .as_deref()
            .unwrap_or("no example was recorded")
    );
    let remedy = "Run `dbduel crash-test` with this experiment: it keeps an image of such a disk and the order of its writes.";
    let mut hit = Hit::new(what, remedy);
    hit.severity = Some(Severity::Void);
    Some(hit)
}

#[cfg(test)]
mod tests {
    use dbduel_record::event::Severity;
    use dbduel_record::facts::Proof;

    use crate::tests::{finding, says, two};
    use crate::{Grade, audit};

    /// What ten cuts left, of which some were not intact.
    fn proof(lost: u64, corrupt: u32) -> Proof {
        Proof {
            cuts: 10,
            acknowledged: 5_000,
            lost,
            cuts_with_loss: u32::from(lost > 0),
            cuts_corrupt: corrupt,
            ..Proof::default()
        }
    }

    #[test]
    fn a_loss_voids_the_claim_and_only_the_claim() {
        let mut case = two("mariadb-10.11.5", &[], &[]);
        case.contenders[0].proof = Some(proof(0, 0));
        case.contenders[1].proof = Some(proof(0, 0));
        assert!(!says(&audit(&case), "R49"));
        for (lost, corrupt) in [(3, 0), (0, 1)] {
            case.contenders[1].proof = Some(proof(lost, corrupt));
            let audit = audit(&case);
            assert_eq!(finding(&audit, "R49").severity, Severity::Void);
            assert_eq!(finding(&audit, "R49").about, ["b"]);
            assert_eq!(audit.grade, Grade::NotComparable);
            assert!(audit.contenders[1].promise.contains("disproved"));
        }
        // Both say that a commit may be lost.
        let weak = [("innodb_flush_log_at_trx_commit", "2")];
        let mut case = two("mariadb-10.11.5", &weak, &weak);
        case.contenders[1].proof = Some(proof(3, 0));
        assert!(!says(&audit(&case), "R49"));
    }
}
