//! The known handicap of a contest as the lab really gave it.

use dbduel_record::Record;
use dbduel_record::rows::ALL_CLASSES;

/// Share of the time of its turns in which the server with the handicap was stopped; zero without one.
#[must_use]
pub fn stopped_share(record: &Record) -> f64 {
    let Some(injection) = &record.plan.injection else {
        return 0.0;
    };
    let sum = |metric: &str| {
        let readings = record.readings.iter();
        let own = readings.filter(|reading| reading.source == "lab" && reading.metric == metric);
        own.map(|reading| reading.value)
            .reduce(|sum, one| sum + one)
    };
    let stopped_s = sum("server_stopped_s").unwrap_or(0.0);
    let total_s = match sum("server_awake_s") {
        Some(awake_s) => stopped_s + awake_s,
        // Records of before have the stopped part of the measured time instead.
        None => {
            let name = &record.plan.contenders[injection.contender].name;
            let rows = record.slices.iter();
            let own = rows.filter(|row| row.contender == *name && row.class == ALL_CLASSES);
            own.map(|row| row.measured_s).sum()
        }
    };
    stopped_s / total_s.max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use dbduel_record::plan::Injection;
    use dbduel_record::rows::ReadingRow;

    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    #[test]
    fn the_share_is_of_the_turns_and_in_older_records_of_the_measured_time() {
        let mut record = Scenario::duel().record();
        assert_eq!(stopped_share(&record), 0.0);
        record.plan.injection = Some(Injection {
            contender: 1,
            stopped_share: 0.2,
            period_s: 5.0,
            stalls: None,
        });
        let name = record.plan.contenders[1].name.clone();
        let reading = |metric: &str, value| ReadingRow {
            block: 0,
            position: 1,
            contender: name.clone(),
            source: "lab".to_owned(),
            metric: metric.to_owned(),
            value,
        };
        let rows = record.slices.iter();
        let own = rows.filter(|row| row.contender == name && row.class == ALL_CLASSES);
        let measured_s: f64 = own.map(|row| row.measured_s).sum();
        record.readings.push(reading("server_stopped_s", 3.0));
        assert_eq!(stopped_share(&record), 3.0 / measured_s);
        record.readings.push(reading("server_awake_s", 9.0));
        assert_eq!(stopped_share(&record), 0.25);
    }
}
