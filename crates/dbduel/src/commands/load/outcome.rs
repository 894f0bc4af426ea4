//! Results of a load: the JSON document, from which the terminal summary is made.

use std::cmp::Reverse;

use anyhow::{Result, anyhow};
use dbduel_audit::finding::at_most;
use dbduel_judge::classes::{ErrorCode, FAILED_VOID};
use dbduel_lab::contest::now_ms;
use dbduel_load::monotonic;
use dbduel_load::order::{ErrorCount, SliceAnswer, Tick};
use dbduel_record::insert_benchmark::KEPT_SHARE;
use dbduel_record::latency::{self, Interval, Packed};
use dbduel_record::order_entry;
use dbduel_record::plan::{Arrival, Workload};
use dbduel_record::rows::{ALL_CLASSES, TransactionCounts, error_name};
use dbduel_text::{counts, percent};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::NAME;

/// Errors that a message about failed transactions names.
const ERRORS_NAMED: usize = 3;

/// Raised when a field of the document changes its name or meaning; new fields do not raise it.
const SCHEMA_VERSION: u32 = 2;

/// The document, and the histograms that its quantiles come from.
pub struct Outcome {
    /// The figures, as `--json` prints them.
    pub document: Document,
    intervals: Vec<Interval>,
}

/// Parameters of the load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setup {
    /// Where the server listens.
    pub server: String,
    /// Version that the server reports.
    pub version: String,
    /// Whether the clients' connections are encrypted.
    pub tls: bool,
    /// Cipher of the clients' connections, as the server names it; none without TLS, or when the server does not say.
    pub tls_cipher: Option<String>,
    /// Database with the tables.
    pub database: String,
    /// Workload of the clients, with every parameter.
    pub workload: Workload,
    /// Number of clients.
    pub clients: u32,
    /// Arrival of their transactions.
    pub arrival: Arrival,
    /// Threads of the load process.
    pub threads: u32,
    /// Time that a waiting thread polls before it sleeps, microseconds; 0 for sleeping at once.
    pub busy_poll_us: u32,
    /// Load before the measured part, seconds.
    pub warm_up_s: f64,
    /// Root of the clients' random streams.
    pub seed: u64,
    /// Disclaimer that must accompany every result of the workload.
    pub disclaimer: Option<&'static str>,
}

/// All that `dbduel load --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Version of this document's form.
    pub schema_version: u32,
    /// Version of the program.
    pub dbduel: &'static str,
    /// Parameters of the load.
    #[serde(flatten)]
    pub setup: Setup,
    /// Whether the user ended the load early.
    pub interrupted: bool,
    /// Reason when the load ended early because the server's connections broke; the figures cover the time before.
    pub lost: Option<String>,
    /// Start of the measured part, milliseconds since 1970-01-01 UTC.
    pub start_ms: u64,
    /// Length of the measured part, seconds.
    pub measured_s: f64,
    /// Whether the clients finished the fixed work of the step in time; none where time alone is the limit.
    pub work_done: Option<bool>,
    /// All classes together.
    pub total: Figures,
    /// Each class by itself.
    pub classes: Vec<Figures>,
    /// New-Orders, for the order-entry workload.
    pub new_orders: Option<NewOrders>,
    /// Service times (done − sent) where transactions fall due by a schedule; in a closed loop these are the latencies.
    pub service_us: Option<Latency>,
    /// Errors by code, those of retried statements included.
    pub errors: Vec<ErrorCode>,
    /// Of those, errors that were not conflicts between clients: statements of the workload that the server refuses.
    pub refused: Vec<ErrorCode>,
    /// Resource use and lag of the load process.
    pub client: Client,
    /// The series, warm-up included.
    pub ticks: Vec<Tick>,
}

impl Document {
    /// What to say when more transactions failed than a contest could have a verdict on; `None` otherwise.
    pub fn too_many_failed(&self) -> Option<String> {
        let TransactionCounts { ok, failed, .. } = self.total.counts;
        let share = ratio(failed as f64, (ok + failed) as f64);
        if share <= FAILED_VOID {
            return None;
        }
        let mut errors: Vec<&ErrorCode> = self.errors.iter().collect();
        errors.sort_by_key(|error| Reverse(error.count));
        let named = errors.iter().map(|error| {
            let count = counts::things(error.count, "time");
            format!("{} {count}: {}", error.code, error.example)
        });
        let named = at_most(ERRORS_NAMED, named);
        Some(format!(
            "{} of the transactions failed ({} of {}, limit {}; {}); the figures cover the rest. Use more rows or fewer \
             clients, or remove the cause that the server's log names.",
            percent::of(share),
            counts::of(failed),
            counts::of(ok + failed),
            percent::of(FAILED_VOID),
            named.join("; ")
        ))
    }
}

/// Figures of a transaction class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Its name.
    pub class: String,
    /// Outcomes.
    #[serde(flatten)]
    pub counts: TransactionCounts,
    /// Committed per second.
    pub per_second: f64,
    /// Rows that they inserted, deleted or indexed per second; none where the workload does not state the rows per
    /// transaction.
    pub rows_per_second: Option<f64>,
    /// The rate that the workload requires; none where it requires none.
    pub required: Option<RequiredRate>,
    /// Latencies of the committed ones; none when nothing was committed.
    pub latency_us: Option<Latency>,
}

/// A rate that a class of transactions must reach for the load to count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RequiredRate {
    /// Required rate, committed transactions per second.
    pub per_second: f64,
    /// Whether at least 95 % of it was reached.
    pub kept: bool,
}

impl Figures {
    /// Figures of one class, with its row rate and required rate where the workload states them.
    fn of_class(setup: &Setup, class: &str, counts: TransactionCounts, measured_s: f64) -> Self {
        let per_second = per_second(counts.ok, measured_s);
        let parameters = &setup.workload.parameters;
        let workload = dbduel_workloads::find(&setup.workload.name).ok();
        let rows = workload.and_then(|known| known.rows_per_transaction(parameters, class));
        let required = workload.and_then(|known| known.required_rate(parameters, class));
        Figures {
            class: class.to_owned(),
            counts,
            per_second,
            rows_per_second: rows.map(|rows| rows as f64 * per_second),
            required: required.map(|required| RequiredRate {
                per_second: required,
                kept: per_second >= KEPT_SHARE * required,
            }),
            latency_us: None,
        }
    }
}

/// The metric of the order-entry workload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NewOrders {
    /// Those completed in the measured part.
    pub count: u64,
    /// The same per minute (NOPM).
    pub per_minute: f64,
    /// How many of them were rolled back on purpose.
    pub rolled_back: u64,
}

impl NewOrders {
    fn of(workload: &str, answer: &SliceAnswer) -> Option<Self> {
        let new_order = answer
            .classes
            .iter()
            .find(|class| workload == order_entry::NAME && class.class == order_entry::NEW_ORDER)?;
        Some(NewOrders {
            count: new_order.counts.ok,
            per_minute: 60.0 * per_second(new_order.counts.ok, answer.measured_s),
            rolled_back: answer.rolled_back,
        })
    }
}

/// Latencies, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95 % quantile.
    pub p95: f64,
    /// 99 % quantile.
    pub p99: f64,
    /// 99.9 % quantile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// Resource use and lag of the load process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Client {
    /// Processor time in user mode, seconds.
    pub cpu_user_s: f64,
    /// Processor time in the kernel, seconds.
    pub cpu_system_s: f64,
    /// Time that its threads waited for a processor, seconds.
    pub cpu_wait_s: f64,
    /// Part of the user and system time that was polled in vain, seconds.
    pub polled_s: f64,
    /// Processor time per committed transaction, microseconds, without what was polled in vain; none when nothing was
    /// committed.
    pub cpu_us_per_transaction: Option<f64>,
    /// Processor time as a share of what its threads could have used, without what was polled in vain.
    pub cpu_share: f64,
    /// 99 % quantile of its own lag, microseconds.
    pub lag_us_p99: f64,
    /// Time in stalls of 0.25 s or more during the measured part, seconds.
    pub stalled_s: f64,
    /// Part of the measured time after its ordered end, until the transactions due before it were done, seconds.
    pub drained_s: f64,
}

impl Outcome {
    /// From the answer of the load process.
    ///
    /// # Errors
    /// When a histogram of the answer cannot be read, which is a fault of the program.
    pub fn of(
        setup: Setup,
        answer: SliceAnswer,
        interrupted: bool,
        lost: Option<String>,
    ) -> Result<Self> {
        let (total, merged) = answer.total(ALL_CLASSES).map_err(|why| anyhow!(why))?;
        let counts = total.counts;
        let mut classes = Vec::with_capacity(answer.classes.len());
        let mut intervals = Vec::new();
        let passed = monotonic::instant_of(answer.open_ns).elapsed();
        let start_ms = now_ms().saturating_sub(passed.as_millis() as u64);
        let measured_s = answer.measured_s;
        let interval = |class: &str, histogram: &Histogram<u64>| Interval {
            block: 0,
            position: 0,
            contender: NAME.to_owned(),
            clients: setup.clients,
            class: class.to_owned(),
            start_s: start_ms as f64 / 1e3,
            length_s: measured_s,
            histogram: Packed::of(histogram),
        };
        for class in &answer.classes {
            let histogram = latency::decode(&class.histogram).map_err(|why| anyhow!(why))?;
            let own = class.counts;
            // With one class the sum would only repeat it.
            if answer.classes.len() > 1 {
                intervals.push(interval(&class.class, &histogram));
            }
            classes.push(Figures {
                latency_us: Latency::of(&histogram, class.latency_us_sum),
                ..Figures::of_class(&setup, &class.class, own, measured_s)
            });
        }
        intervals.push(interval(ALL_CLASSES, &merged));
        let services = answer.service_times.as_deref().map(latency::decode);
        let services = services.transpose().map_err(|why| anyhow!(why))?;
        let workload = dbduel_workloads::find(&setup.workload.name);
        let has_fixed_work =
            workload.is_ok_and(|known| known.has_fixed_work(&setup.workload.parameters));
        let cpu_s = (answer.cpu_user_s + answer.cpu_system_s - answer.polled_s).max(0.0);
        let refused = answer.errors.iter().filter(|error| !error.is_conflict);
        let refused = refused.cloned().map(named).collect();
        let document = Document {
            refused,
            schema_version: SCHEMA_VERSION,
            dbduel: env!("CARGO_PKG_VERSION"),
            interrupted,
            lost,
            start_ms,
            measured_s,
            work_done: has_fixed_work.then_some(answer.is_finished),
            total: Figures {
                class: ALL_CLASSES.to_owned(),
                counts,
                per_second: per_second(counts.ok, measured_s),
                rows_per_second: None,
                required: None,
                latency_us: Latency::of(&merged, total.latency_us_sum),
            },
            classes,
            new_orders: NewOrders::of(&setup.workload.name, &answer),
            client: Client {
                cpu_user_s: answer.cpu_user_s,
                cpu_system_s: answer.cpu_system_s,
                cpu_wait_s: answer.cpu_wait_s,
                polled_s: answer.polled_s,
                cpu_us_per_transaction: (counts.ok > 0).then(|| cpu_s * 1e6 / counts.ok as f64),
                cpu_share: ratio(cpu_s, measured_s * f64::from(setup.threads)),
                lag_us_p99: answer.lag_us_p99,
                stalled_s: answer.stalled_s,
                drained_s: answer.drained_s,
            },
            service_us: services
                .and_then(|times| Latency::of(&times, times.mean() * times.len() as f64 / 1e3)),
            errors: answer.errors.into_iter().map(named).collect(),
            ticks: answer.ticks,
            setup,
        };
        Ok(Outcome {
            document,
            intervals,
        })
    }

    /// The latencies as a HdrHistogram interval log: a line per class, and one for all together.
    pub fn interval_log(&self) -> String {
        let lines = self.intervals.iter().map(latency::line);
        latency::header(self.document.start_ms) + &lines.collect::<String>()
    }
}

impl Latency {
    fn of(histogram: &Histogram<u64>, sum_us: f64) -> Option<Self> {
        if histogram.is_empty() {
            return None;
        }
        let quantile = |q| histogram.value_at_quantile(q) as f64 / 1e3;
        Some(Latency {
            mean: sum_us / histogram.len() as f64,
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: histogram.max() as f64 / 1e3,
        })
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    ratio(count as f64, seconds)
}

/// Zero in place of a division by nothing, as after an interruption in the warm-up.
fn ratio(of: f64, by: f64) -> f64 {
    if by > 0.0 { of / by } else { 0.0 }
}

/// The error in the form of the document.
fn named(error: ErrorCount) -> ErrorCode {
    ErrorCode {
        code: error_name(error.code),
        count: error.count,
        example: error.example,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Instant;

    use dbduel_load::order::ClassAnswer;

    use super::*;

    fn class(name: &str, ok: u64, failed: u64, latency_us: u64) -> ClassAnswer {
        let mut histogram = latency::new_histogram();
        histogram.record_n(latency_us * 1000, ok).unwrap();
        ClassAnswer {
            class: name.to_owned(),
            counts: TransactionCounts {
                due: ok + failed + 3,
                ok,
                failed,
                skipped: 1,
                unfinished: 2,
                retries: 4,
                statements: 2 * ok,
            },
            latency_us_sum: (ok * latency_us) as f64,
            histogram: latency::encode(&histogram),
        }
    }

    /// Two classes over ten seconds, for tests of what is printed as well.
    pub fn answer() -> SliceAnswer {
        SliceAnswer {
            open_ns: monotonic::ns_of(Instant::now()),
            measured_s: 10.0,
            is_finished: false,
            classes: vec![class("slow", 100, 7, 50_000), class("fast", 900, 0, 500)],
            statements: Vec::new(),
            ticks: vec![Tick::default()],
            errors: vec![ErrorCount {
                code: 1213,
                is_conflict: true,
                count: 7,
                example: "Deadlock found".to_owned(),
            }],
            cpu_user_s: 0.5,
            cpu_system_s: 1.5,
            cpu_wait_s: 0.1,
            polled_s: 0.0,
            lag_us_p99: 30.0,
            service_times: None,
            stalled_s: 0.0,
            gaps_s: Vec::new(),
            drained_s: 0.2,
            client_drained_s: 0.0,
            reported: None,
            rolled_back: 0,
            commits: Vec::new(),
            orchestration: None,
        }
    }

    pub fn setup() -> Setup {
        Setup {
            server: "unix:/run/db.sock".to_owned(),
            version: "10.11.1-MariaDB".to_owned(),
            tls: false,
            tls_cipher: None,
            database: "dbduel".to_owned(),
            workload: Workload {
                name: "oltp-read-write".to_owned(),
                parameters: [("tables".to_owned(), 4.into())].into(),
            },
            clients: 16,
            arrival: Arrival::Closed { think_ms: 0.0 },
            threads: 2,
            busy_poll_us: 0,
            warm_up_s: 5.0,
            seed: 7,
            disclaimer: None,
        }
    }

    #[test]
    fn classes_add_up() {
        let Document { total, client, .. } = Outcome::of(setup(), answer(), false, None)
            .unwrap()
            .document;
        let TransactionCounts {
            due,
            ok,
            failed,
            skipped,
            unfinished,
            ..
        } = total.counts;
        assert_eq!((due, ok, failed), (1013, 1000, 7));
        assert_eq!(due, ok + failed + skipped + unfinished);
        assert_eq!(total.per_second, 100.0);
        let latency = total.latency_us.unwrap();
        assert_eq!(latency.mean, 5_450.0);
        assert!((latency.p50 - 500.0).abs() < 1.0 && (latency.p95 - 50_000.0).abs() < 50.0);
        assert_eq!(client.cpu_us_per_transaction, Some(2_000.0));
        assert_eq!(client.cpu_share, 0.1);
    }

    /// An Insert Benchmark step of so many rows per second, in which 100 and 900 statements of 50 rows are inserted and deleted.
    pub fn of_insert_benchmark(rate: u64, is_finished: bool) -> Document {
        let workload = dbduel_workloads::find("insert-benchmark").unwrap();
        let given = [
            ("step".to_owned(), "qr100".into()),
            ("rate".to_owned(), rate.into()),
        ];
        let setup = Setup {
            workload: Workload {
                name: workload.name().to_owned(),
                parameters: workload.resolve(&given.into()).unwrap(),
            },
            ..setup()
        };
        let answer = SliceAnswer {
            classes: vec![class("insert", 100, 0, 500), class("query", 900, 0, 500)],
            is_finished,
            ..answer()
        };
        Outcome::of(setup, answer, false, None).unwrap().document
    }

    #[test]
    fn a_background_rate_is_kept_from_95_percent_on() {
        // 100 statements of 50 rows in ten seconds.
        for (rate, kept) in [(526, true), (527, false)] {
            let document = of_insert_benchmark(rate, false);
            let [inserts, queries] = &document.classes[..] else {
                panic!("{:?}", document.classes)
            };
            assert_eq!(inserts.rows_per_second, Some(500.0));
            assert_eq!(inserts.required.map(|required| required.kept), Some(kept));
            assert_eq!((queries.rows_per_second, queries.required), (None, None));
            assert_eq!(document.work_done, None);
        }
    }

    #[test]
    fn a_share_of_failed_transactions_above_the_limit_is_a_failure_with_its_errors() {
        let outcome = |failed: u64| {
            let errors = [(1205, failed), (1213, 3 * failed)];
            let failing = SliceAnswer {
                classes: vec![class("only", 1000 - failed, failed, 500)],
                errors: errors
                    .map(|(code, count)| ErrorCount {
                        code,
                        is_conflict: true,
                        count,
                        example: format!("example of {code}"),
                    })
                    .into(),
                ..answer()
            };
            let outcome = Outcome::of(setup(), failing, false, None).unwrap();
            outcome.document.too_many_failed()
        };
        assert_eq!(outcome(10), None);
        let why = outcome(20).unwrap();
        let expected = "2 % of the transactions failed (20 of 1,000, limit 1 %; 1213 60 times: example of 1213; 1205 20 times: \
             example of 1205)";
        assert!(why.starts_with(expected), "{why}");
    }

    #[test]
    fn what_was_polled_in_vain_is_no_cost() {
        let polled = SliceAnswer {
            cpu_user_s: 9.0,
            cpu_system_s: 9.0,
            polled_s: 16.0,
            ..answer()
        };
        let Document { client, .. } = Outcome::of(setup(), polled, false, None).unwrap().document;
        assert_eq!(client.cpu_us_per_transaction, Some(2_000.0));
        assert_eq!((client.cpu_share, client.polled_s), (0.1, 16.0));
    }

    #[test]
    fn a_load_without_a_result_has_no_latency_and_no_nonsense() {
        let nothing = SliceAnswer {
            measured_s: 0.0,
            classes: vec![class("only", 0, 0, 0)],
            ..answer()
        };
        let Document { total, client, .. } =
            Outcome::of(setup(), nothing, true, None).unwrap().document;
        assert_eq!((total.latency_us, total.per_second), (None, 0.0));
        assert_eq!(
            (client.cpu_us_per_transaction, client.cpu_share),
            (None, 0.0)
        );
    }

    #[test]
    fn the_interval_log_reads_back() {
        let log = Outcome::of(setup(), answer(), false, None)
            .unwrap()
            .interval_log();
        let read: Vec<Interval> = log
            .lines()
            .filter_map(|line| latency::parse_line(line).unwrap())
            .collect();
        let classes: Vec<&str> = read.iter().map(|one| one.class.as_str()).collect();
        assert_eq!(classes, ["slow", "fast", ALL_CLASSES]);
        assert_eq!(read[2].histogram.unpack().len(), 1000);
    }

    #[test]
    fn the_document_names_its_version_and_what_was_asked_for() {
        let document = Outcome::of(setup(), answer(), false, None)
            .unwrap()
            .document;
        let json = serde_json::to_value(&document).unwrap();
        assert_eq!(json["schema_version"], 2);
        assert_eq!(json["errors"][0]["code"], "1213");
        assert_eq!(json["server"], "unix:/run/db.sock");
        assert_eq!(json["arrival"]["kind"], "closed");
        assert_eq!(json["total"]["ok"], 1000);
        assert_eq!(json["classes"][1]["class"], "fast");
    }
}
