//! Identical contenders, one server set alike: any difference between them is chance or a lab error.

use dbduel_audit::variable_name;
use dbduel_record::Record;
use dbduel_record::plan::Setting;

use super::settings::is_same_value;
use super::summary::SettingDifference;

/// Every two identical contenders, by their names, the earlier first. `differences` are those between the effective
/// settings of all contenders.
///
/// Contenders are identical when they have the same server program, proved by its digest, or are one running server,
/// with the same requested and effective settings and the same tables, on one machine, and the lab gave none of them
/// a handicap.
#[must_use]
pub fn pairs(record: &Record, differences: &[SettingDifference]) -> Vec<[String; 2]> {
    let contenders = &record.plan.contenders;
    let couples = (0..contenders.len())
        .flat_map(|one| (one + 1..contenders.len()).map(move |other| [one, other]));
    couples
        .filter(|&pair| are_identical(record, differences, pair))
        .map(|pair| pair.map(|contender| contenders[contender].name.clone()))
        .collect()
}

fn are_identical(
    record: &Record,
    differences: &[SettingDifference],
    [one, other]: [usize; 2],
) -> bool {
    let plan = &record.plan;
    let [a, b] = [one, other].map(|contender| &plan.contenders[contender]);
    let injected = plan.injection.as_ref().map(|injection| injection.contender);
    let was_read = |contender: usize| {
        let files = record.contenders.get(contender);
        files.is_some_and(|files| !files.variables_before.is_empty())
    };
    let is_same_effect =
        |difference: &SettingDifference| match (&difference.values[one], &difference.values[other])
        {
            (Some(a), Some(b)) => is_same_value(a, b),
            (None, None) => true,
            _ => false,
        };
    injected.is_none_or(|injected| injected != one && injected != other)
        && a.host == b.host
        && a.tables == b.tables
        && are_asked_alike(&a.settings, &b.settings)
        && is_one_program(record, [one, other])
        && [one, other].into_iter().all(was_read)
        && differences.iter().all(is_same_effect)
}

fn is_one_program(record: &Record, pair: [usize; 2]) -> bool {
    let build = |contender: usize| record.contenders.get(contender)?.build.as_ref();
    let [Some(a), Some(b)] = pair.map(build) else {
        return false;
    };
    match (&a.daemon_sha256, &b.daemon_sha256) {
        (Some(a), Some(b)) => a == b,
        (None, None) => {
            let [a_server, b_server] = pair.map(|at| &record.plan.contenders[at].server);
            !a.managed && !b.managed && a_server == b_server
        }
        _ => false,
    }
}

fn are_asked_alike(one: &[Setting], other: &[Setting]) -> bool {
    let is_in = |setting: &Setting, settings: &[Setting]| {
        let name = variable_name(&setting.name);
        // Of a setting that is written twice the last one counts.
        let mut last = settings.iter().rev();
        let found = last.find(|found| variable_name(&found.name) == name);
        found.is_some_and(|found| is_same_value(&found.value, &setting.value))
    };
    one.iter().all(|setting| is_in(setting, other))
        && other.iter().all(|setting| is_in(setting, one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;
    use crate::summarise;
    use dbduel_record::Verdict;
    use dbduel_record::event::Severity;
    use dbduel_record::plan::Injection;
    use dbduel_testkit::synthetic::Scenario;

    /// A duel of one server with itself, in which the second is shown faster at the first level.
    fn same_server_twice() -> Record {
        let mut record = Scenario::duel().record();
        record.plan.contenders[1].settings = record.plan.contenders[0].settings.clone();
        for files in &mut record.contenders {
            files.build.as_mut().unwrap().daemon_sha256 = Some("5f2b".to_owned());
        }
        let first = record.contenders[0].variables_before.clone();
        record.contenders[1].variables_before = first;
        let port = |port: &str| ("port".to_owned(), port.to_owned());
        record.contenders[1].variables_before.extend([port("3399")]);
        record
    }

    fn found(record: &Record) -> Vec<[String; 2]> {
        pairs(record, &settings::differences(record))
    }

    #[test]
    fn one_server_set_alike_is_identical_and_any_difference_ends_that() {
        assert_eq!(found(&same_server_twice()).len(), 1);
        let check_apart = |change: fn(&mut Record)| {
            let mut record = same_server_twice();
            change(&mut record);
            assert_eq!(found(&record), Vec::<[String; 2]>::new());
        };
        check_apart(|record| {
            let build = record.contenders[1].build.as_mut().unwrap();
            build.daemon_sha256 = Some("0000".to_owned());
        });
        check_apart(|record| record.plan.contenders[1].settings[0].value = "2G".to_owned());
        check_apart(|record| {
            let variables = &mut record.contenders[1].variables_before;
            variables.insert("innodb_io_capacity".to_owned(), "400".to_owned());
        });
        check_apart(|record| record.contenders[1].variables_before.clear());
        check_apart(|record| {
            let tables = &mut record.plan.contenders[1].tables;
            tables.insert("row_format".to_owned(), "compressed".into());
        });
        check_apart(|record| {
            record.plan.injection = Some(Injection {
                contender: 1,
                stopped_share: 0.1,
                period_s: 0.1,
                stalls: None,
            });
        });
    }

    #[test]
    fn a_verdict_between_identical_contenders_is_doubted() {
        let (summary, findings) = summarise(&same_server_twice());
        assert_eq!(summary.duels[0].comparisons[0].verdict, Verdict::Faster);
        let found = findings
            .iter()
            .find(|finding| finding.rule == "lab.identical-contenders")
            .unwrap();
        assert_eq!(found.severity, Severity::Doubt);
        assert!(
            found.claim.contains("chance or a lab error"),
            "{}",
            found.claim
        );
        let (_, findings) = summarise(&Scenario::duel().record());
        assert!(
            findings
                .iter()
                .all(|finding| finding.rule != "lab.identical-contenders")
        );
    }
}
