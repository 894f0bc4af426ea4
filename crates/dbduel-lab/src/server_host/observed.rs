//! A host's observations of a turn of its server, as sent to the contest.

use serde::{Deserialize, Serialize};

use crate::observe::{Kind, Observed, Reading};

/// Sources of readings.
const SOURCES: &[&str] = &["server", "host", "engine", "waits", "observer"];
/// The source on the orchestrator's machine.
const LOAD: &str = "load";

/// As [`Observed`], without the load process, which is not on the host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HostObserved {
    /// Source, metric, how values are combined, value.
    readings: Vec<(String, String, Kind, f64)>,
    /// Offset and length in seconds, source, metric, value.
    seconds: Vec<(f64, f64, String, String, f64)>,
    /// Source, its missing value and the reason.
    missing: Vec<(String, String)>,
}

impl From<Observed> for HostObserved {
    fn from(observed: Observed) -> Self {
        let readings = observed.readings.into_iter();
        let seconds = observed.seconds.into_iter();
        let missing = observed.missing.into_iter();
        HostObserved {
            readings: readings
                .map(|one| (one.source.to_owned(), one.metric, one.kind, one.value))
                .collect(),
            seconds: seconds
                .map(|(offset_s, length_s, source, metric, value)| {
                    (offset_s, length_s, source.to_owned(), metric, value)
                })
                .collect(),
            missing: missing
                .map(|(source, what)| (source.to_owned(), what))
                .collect(),
        }
    }
}

impl HostObserved {
    /// Observations of a turn that the host could not watch; `why` is the reason.
    pub fn unwatched(why: &str) -> Self {
        let missing = (
            "server".to_owned(),
            format!("samples of the server ({why})"),
        );
        Self {
            missing: vec![missing],
            ..Self::default()
        }
    }

    /// Combined with the local observations, of which only the load process counts.
    pub fn beside(self, here: Observed) -> Observed {
        let known = |source: &str| SOURCES.iter().copied().find(|known| *known == source);
        let readings = self.readings.into_iter();
        let readings = readings.filter_map(|(source, metric, kind, value)| {
            Some(Reading {
                source: known(&source)?,
                metric,
                kind,
                value,
            })
        });
        let seconds = self.seconds.into_iter();
        let seconds = seconds.filter_map(|(offset_s, length_s, source, metric, value)| {
            Some((offset_s, length_s, known(&source)?, metric, value))
        });
        let of_load = |source: &str| source == LOAD;
        let missing = self.missing.into_iter();
        let missing = missing.filter_map(|(source, what)| Some((known(&source)?, what)));
        let own_readings = here.readings.into_iter();
        let own_seconds = here.seconds.into_iter();
        let own_missing = here.missing.into_iter();
        Observed {
            readings: readings
                .chain(own_readings.filter(|one| of_load(one.source)))
                .collect(),
            seconds: seconds
                .chain(own_seconds.filter(|one| of_load(one.2)))
                .collect(),
            missing: missing
                .chain(own_missing.filter(|one| of_load(one.0)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(source: &'static str, value: f64) -> Reading {
        Reading {
            source,
            metric: "cpu_user_s".to_owned(),
            kind: Kind::Counter,
            value,
        }
    }

    #[test]
    fn the_server_is_seen_by_its_host_and_the_load_process_here() {
        let there = Observed {
            readings: vec![reading("server", 1.0), reading("host", 2.0)],
            seconds: vec![(0.0, 1.0, "server", "rss_bytes".to_owned(), 3.0)],
            missing: vec![
                ("load", "processor time".to_owned()),
                ("server", "device".to_owned()),
            ],
        };
        let here = Observed {
            readings: vec![reading("load", 4.0), reading("observer", 5.0)],
            seconds: vec![(0.0, 1.0, "load", "rss_bytes".to_owned(), 6.0)],
            missing: vec![
                ("engine", "engine counters".to_owned()),
                ("load", "memory".to_owned()),
            ],
        };
        let line = serde_json::to_vec(&HostObserved::from(there)).unwrap();
        let there: HostObserved = serde_json::from_slice(&line).unwrap();
        let both = there.beside(here);
        let values: Vec<f64> = both.readings.iter().map(|one| one.value).collect();
        assert_eq!(values, [1.0, 2.0, 4.0]);
        let values: Vec<f64> = both.seconds.iter().map(|one| one.4).collect();
        assert_eq!(values, [3.0, 6.0]);
        let missing: Vec<&str> = both.missing.iter().map(|one| one.1.as_str()).collect();
        assert_eq!(missing, ["device", "memory"]);
    }
}
