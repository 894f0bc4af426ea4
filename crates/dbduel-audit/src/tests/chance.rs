//! Equal servers whose counters differ by chance: what a run does to them must not look like bias.

use dbduel_record::facts::Host;
use dbduel_testkit::noise::Noise;

use super::*;

/// Trials per server.
const TRIALS: usize = 300;
/// Standard deviation of the logarithm of a counter between two runs of one server.
const NOISE: f64 = 0.15;
/// Share of trials that may raise more than a note: the error probability of one verdict.
const ERRORS_MAX: f64 = 0.05;

struct Draw(Noise);

impl Draw {
    /// Any order of magnitude from 1 to 10 to the power of `digits`.
    fn magnitude(&mut self, digits: f64) -> f64 {
        10f64.powf(self.0.uniform() * digits)
    }

    fn share(&mut self) -> f64 {
        self.0.uniform()
    }

    /// A count that is `mean` on average, in one of many runs.
    fn count(&mut self, mean: f64) -> f64 {
        let in_this_run = mean * (NOISE * self.0.normal()).exp();
        let counted = in_this_run + in_this_run.sqrt() * self.0.normal();
        counted.round().max(0.0)
    }
}

/// What rules read, with how it is drawn: the mean of all runs of a server.
fn means(draw: &mut Draw) -> Vec<(&'static str, f64)> {
    let commits = 1000.0 * draw.magnitude(3.0);
    let tables = draw.magnitude(5.0);
    let written = 1e6 * draw.magnitude(4.0);
    let looked_up = 1e4 * draw.magnitude(2.0);
    let connections = draw.magnitude(4.0);
    vec![
        ("com_commit", commits),
        ("com_update", 2.0 * commits),
        ("com_rollback", commits * draw.share().powi(4)),
        ("innodb_deadlocks", commits * draw.share().powi(6)),
        ("innodb_data_fsyncs", commits),
        ("innodb_data_written", written),
        ("innodb_buffer_pool_bytes_dirty", written * draw.share()),
        ("innodb_checkpoint_age", 1e8 * draw.share()),
        ("innodb_checkpoint_max_age", 1e8),
        ("innodb_lsn_current", 1e6 * draw.magnitude(4.0)),
        ("innodb_log_waits", draw.magnitude(4.0) - 1.0),
        ("innodb_buffer_pool_wait_free", draw.magnitude(4.0) - 1.0),
        ("table_open_cache_hits", looked_up),
        ("table_open_cache_misses", looked_up * 0.05 * draw.share()),
        ("table_open_cache_overflows", draw.magnitude(3.0) - 1.0),
        ("opened_tables", draw.magnitude(4.0)),
        ("created_tmp_tables", tables),
        ("created_tmp_disk_tables", tables * draw.share().powi(2)),
        ("connections", connections),
        ("threads_created", connections * 0.2 * draw.share()),
    ]
}

fn status(draw: &mut Draw, means: &[(&str, f64)]) -> Texts {
    let mut status: Texts = means
        .iter()
        .map(|(name, mean)| ((*name).to_owned(), draw.count(*mean).to_string()))
        .collect();
    // Read from the configuration, not counted.
    status.insert(
        "innodb_checkpoint_max_age".to_owned(),
        "100000000".to_owned(),
    );
    status.insert("uptime".to_owned(), "600".to_owned());
    status
}

#[test]
fn counters_that_differ_by_chance_are_no_bias() {
    let mut draw = Draw(Noise::new(20_261_120));
    let mut raised: Vec<String> = Vec::new();
    let servers = ["mysql-5.6.24", "mysql-8.0.33", "mariadb-10.11.5"];
    for recorded in servers {
        for _ in 0..TRIALS {
            let mut case = two(recorded, &[], &[]);
            case.stage = Stage::Results;
            case.clients = Some(16);
            case.host = Some(host_that_says_all());
            // Some verdicts are wrong; their margin has no cause.
            let margin = if draw.share() < 0.05 { 1.3 } else { 1.0 };
            case.margins = Some([("b".to_owned(), margin)].into());
            let means = means(&mut draw);
            let data = 128e6 * draw.share() * 2.0;
            for contender in &mut case.contenders {
                contender.status_after = status(&mut draw, &means);
                contender.status_before = contender
                    .status_after
                    .keys()
                    .map(|name| (name.clone(), "0".to_owned()))
                    .collect();
                contender.data_bytes = Some((data * (1.0 + 0.01 * draw.0.normal())) as u64);
                contender.engine_status_after = Some(String::new());
                contender.connection.prepared = Some(true);
            }
            let audit = audit(&case);
            let heavy = audit
                .findings
                .iter()
                .filter(|one| one.severity > Severity::Note);
            raised.extend(heavy.map(|one| format!("{recorded}: {} {}", one.rule, one.claim)));
        }
    }
    let allowed = (ERRORS_MAX * (TRIALS * servers.len()) as f64) as usize;
    assert!(
        raised.len() <= allowed,
        "{} findings: {raised:#?}",
        raised.len()
    );
}

/// A machine about which nothing is left to ask.
fn host_that_says_all() -> Host {
    let word = || Some("x".to_owned());
    Host {
        cpus: Some(8),
        threads_per_core: Some(1),
        sockets: Some(1),
        memory_bytes: Some(1 << 40),
        block_device: word(),
        file_system: word(),
        kernel: word(),
        transparent_huge_pages: Some("madvise".to_owned()),
        ..Host::default()
    }
}
