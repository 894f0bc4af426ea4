//! The general options of a run, with every default resolved.

use std::time::Duration;

use dbduel_client::distributions::Shape;
use dbduel_client::run::Limits;
use dbduel_lua::Shapes;
use dbduel_text::terminal;

use super::Stop;
use super::logger::Logger;
use super::parsed_options::ParsedOptions;

/// The most clients, as in the load process.
const CLIENTS_MAX: u32 = 65_536;
/// The most checkpoints, as in sysbench.
const CHECKPOINTS_MAX: usize = 256;
/// The longest time, seconds: a year.
pub const SECONDS_MAX: u64 = 366 * 86_400;
/// The smallest stack of a thread; the standard library asks for it.
const STACK_BYTES_MIN: u64 = 64 << 10;

/// The general options.
#[derive(Debug, Clone)]
pub struct General {
    /// Clients.
    pub threads: u32,
    /// Limits of events, time and rate.
    pub limits: Limits,
    /// Time after its start at which it ends, whatever is running.
    pub forced_shutdown: Option<Duration>,
    /// Time for all clients to be ready.
    pub init_timeout: Duration,
    /// Interval of intermediate reports.
    pub report_interval: Option<Duration>,
    /// Times of full reports after the beginning, ascending.
    pub checkpoints: Vec<Duration>,
    /// Whether debugging messages are printed.
    pub debug: bool,
    /// Whether data that are read are validated.
    pub validate: bool,
    /// Percentile of the latencies; 0 for none.
    pub percentile: u32,
    /// Whether a histogram is printed.
    pub histogram: bool,
    /// The seed as it was given; 0 when the clock chose it.
    pub seed_given: u64,
    /// Root of the random streams.
    pub seed: u64,
    /// Distributions of ids.
    pub shapes: Shapes,
    /// Stack of a thread.
    pub stack_bytes: usize,
    /// The logger, with the verbosity.
    pub voice: Logger,
}

/// The logger, which must exist before any message.
pub fn voice(given: &ParsedOptions) -> Logger {
    let verbosity = if given.switch("debug") {
        5
    } else {
        given.number("verbosity").clamp(0.0, 5.0) as u64
    };
    Logger { verbosity }
}

impl General {
    /// Reads the options, and warns of old ones.
    ///
    /// # Errors
    /// An invalid value.
    pub fn read(given: &ParsedOptions, fresh_seed: u64) -> Result<Self, Stop> {
        let voice = voice(given);
        let renamed = |old: &str, new: &'static str, none: f64| {
            if given.number(old) == none {
                return new.to_owned();
            }
            Logger::ALWAYS.warning(&format!("--{old} is deprecated, use --{new} instead"));
            old.to_owned()
        };
        if given.is_written("test") {
            terminal::status_line(
                "WARNING: the --test option is deprecated. You can pass a script name or path on the command line without any options.",
            );
        }
        let threads = given.positive(&renamed("num-threads", "threads", 1.0), CLIENTS_MAX)?;
        let events = given.count(&renamed("max-requests", "events", 0.0))?;
        let time_s = given.count(&renamed("max-time", "time", 0.0))?;
        let rate = given.count(&renamed("tx-rate", "rate", 0.0))?;
        let warm_up_s = given.count("warmup-time")?;
        for (name, value) in [("time", time_s), ("warmup-time", warm_up_s)] {
            if value > SECONDS_MAX {
                return Err(Stop::Fatal(format!(
                    "Invalid value for --{name}: {value}; a run takes a year at most"
                )));
            }
        }
        if time_s == 0 && events == 0 {
            Logger::ALWAYS
                .warning("Both event and time limits are disabled, running an endless test");
        }
        let percentile = given.number("percentile");
        if !(0.0..=100.0).contains(&percentile) {
            return Err(Stop::Fatal(format!(
                "Invalid value for --percentile: {percentile}"
            )));
        }
        let seed_given = given.count("rand-seed")?;
        let seed = if seed_given == 0 {
            fresh_seed
        } else {
            seed_given
        };
        let interval_s = given.count("report-interval")?;
        Ok(General {
            threads,
            limits: Limits {
                events: Some(events).filter(|events| *events > 0),
                time: Some(Duration::from_secs(time_s)).filter(|time| !time.is_zero()),
                per_second: Some(rate as f64).filter(|rate| *rate > 0.0),
                warm_up: Duration::from_secs(warm_up_s),
                seed,
            },
            forced_shutdown: forced_shutdown(given, time_s, warm_up_s)?,
            init_timeout: Duration::from_secs(given.count("thread-init-timeout")?.clamp(1, 86_400)),
            report_interval: Some(Duration::from_secs(interval_s.min(SECONDS_MAX)))
                .filter(|interval| !interval.is_zero()),
            checkpoints: checkpoints(given)?,
            debug: given.switch("debug"),
            validate: given.switch("validate"),
            percentile: percentile as u32,
            histogram: given.switch("histogram"),
            seed_given,
            seed,
            shapes: shapes(given)?,
            stack_bytes: given.count("thread-stack-size")?.max(STACK_BYTES_MIN) as usize,
            voice,
        })
    }
}

/// Time after its start at which the run ends, whatever is running.
fn forced_shutdown(
    given: &ParsedOptions,
    time_s: u64,
    warm_up_s: u64,
) -> Result<Option<Duration>, Stop> {
    let text = given.text("forced-shutdown");
    if text == "off" {
        return Ok(None);
    }
    if time_s == 0 {
        return Err(Stop::Fatal(
            "--forced-shutdown requires a time limit; give --time".to_owned(),
        ));
    }
    let invalid = || {
        Stop::Fatal(format!(
            "Invalid value for --forced-shutdown: '{text}'; it takes seconds, N% of --time, or off"
        ))
    };
    let extra_s = match text.strip_suffix('%') {
        // Bare: a twentieth of the time.
        _ if text.is_empty() || text == "on" => time_s as f64 / 20.0,
        Some(percent) => {
            let percent: u32 = percent.parse().map_err(|_| invalid())?;
            time_s as f64 * f64::from(percent) / 100.0
        }
        None => f64::from(text.parse::<u32>().map_err(|_| invalid())?),
    };
    let whole = Duration::from_secs(time_s + warm_up_s);
    Ok(Some(whole + Duration::from_secs_f64(extra_s)))
}

fn checkpoints(given: &ParsedOptions) -> Result<Vec<Duration>, Stop> {
    let list = given.list("report-checkpoints");
    if list.len() > CHECKPOINTS_MAX {
        return Err(Stop::Fatal(format!(
            "Too many checkpoints in --report-checkpoints (up to {CHECKPOINTS_MAX} can be defined)"
        )));
    }
    let mut times = Vec::new();
    for text in list {
        let seconds: u32 = text
            .parse()
            .ok()
            .filter(|seconds| *seconds > 0)
            .ok_or_else(|| {
                Stop::Fatal(format!("Invalid value for --report-checkpoints: '{text}'"))
            })?;
        times.push(Duration::from_secs(u64::from(seconds)));
    }
    times.sort_unstable();
    times.dedup();
    Ok(times)
}

fn shapes(given: &ParsedOptions) -> Result<Shapes, Stop> {
    let iterations = given.positive("rand-spec-iter", 1_000)?;
    let percent = |name: &str| {
        let value = given.number(name);
        if (0.0..=100.0).contains(&value) {
            Ok(value)
        } else {
            Err(Stop::Fatal(format!(
                "Invalid value for --{name}: {value}; it takes a percentage"
            )))
        }
    };
    let h = given.number("rand-pareto-h");
    if !(1e-6..=0.999_999).contains(&h) {
        return Err(Stop::Fatal(format!(
            "Invalid value for --rand-pareto-h: {h}; it lies between 0 and 1"
        )));
    }
    let exponent = given.number("rand-zipfian-exp");
    if !(0.0..=100.0).contains(&exponent) {
        return Err(Stop::Fatal(format!(
            "Invalid value for --rand-zipfian-exp: {exponent}; it takes a number from 0"
        )));
    }
    let special = Shape::Special {
        iterations,
        band_percent: percent("rand-spec-pct")?,
        band_share_percent: percent("rand-spec-res")?,
    };
    let gaussian = Shape::Gaussian { iterations };
    let (pareto, zipfian) = (Shape::Pareto { h }, Shape::Zipfian { exponent });
    let default = match given.text("rand-type") {
        "uniform" => Shape::Uniform,
        "gaussian" => gaussian,
        "special" => special,
        "pareto" => pareto,
        "zipfian" => zipfian,
        other => {
            return Err(Stop::Fatal(format!(
                "Invalid random numbers distribution: {other}; use uniform, gaussian, special, \
                 pareto or zipfian"
            )));
        }
    };
    Ok(Shapes {
        default,
        gaussian,
        special,
        pareto,
        zipfian,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{parsed_options::Words, table};
    use super::*;

    fn read(text: &str) -> Result<General, Stop> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let (given, _) = ParsedOptions::read(table::GENERAL, Words::sort(&words)?.options)?;
        General::read(&given, 77)
    }

    #[test]
    fn old_names_mean_what_they_meant() {
        let general =
            read("--verbosity=0 --num-threads=4 --max-time=3 --max-requests=9 --tx-rate=50")
                .unwrap();
        assert_eq!(general.threads, 4);
        assert_eq!(general.limits.time, Some(Duration::from_secs(3)));
        assert_eq!(general.limits.events, Some(9));
        assert_eq!(general.limits.per_second, Some(50.0));
        assert_eq!(general.seed, 77);
        assert_eq!(read("--rand-seed=5").unwrap().seed, 5);
    }

    #[test]
    fn a_forced_shutdown_comes_after_the_time() {
        let at = |text: &str| {
            read(text)
                .unwrap()
                .forced_shutdown
                .map(|time| time.as_secs_f64())
        };
        assert_eq!(at(""), None);
        assert_eq!(at("--time=20 --forced-shutdown"), Some(21.0));
        assert_eq!(at("--time=20 --forced-shutdown=3"), Some(23.0));
        assert_eq!(at("--time=20 --forced-shutdown=10%"), Some(22.0));
        assert!(read("--forced-shutdown=x").is_err());
        assert!(read("--events=3 --time=0 --forced-shutdown=1").is_err());
    }

    #[test]
    fn checkpoints_are_sorted() {
        let general = read("--report-checkpoints=3,1,2").unwrap();
        assert_eq!(general.checkpoints, [1, 2, 3].map(Duration::from_secs));
        assert!(read("--report-checkpoints=a").is_err());
    }

    #[test]
    fn values_without_sense_are_refused() {
        for bad in [
            "--threads=0",
            "--threads",
            "--percentile=101",
            "--rand-type=foo",
            "--rate=-1",
            "--time=99999999999",
        ] {
            assert!(matches!(read(bad), Err(Stop::Fatal(_))), "{bad}");
        }
    }
}
