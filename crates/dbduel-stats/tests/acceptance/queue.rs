//! An open-loop queue: Poisson arrivals, eight first-come workers, log-normal service with a mean of
//! 10 ms, and stalls that freeze all workers. Latencies count from the arrival.

use dbduel_stats::random::RandomStream;

const WORKERS: usize = 8;
const SERVICE_DEVIATION: f64 = 0.8;

/// Stalls as (start, end), ascending and disjoint.
pub type Stalls = Vec<(f64, f64)>;

/// Stalls of 0.1 s plus an exponential with mean 0.2 s, on average `every` seconds apart.
pub fn draw_stalls(every: f64, until: f64, random: &mut RandomStream) -> Stalls {
    let mut stalls = Vec::new();
    let mut time = 0.0;
    loop {
        time -= every * (1.0 - random.uniform()).ln();
        if time > until {
            return stalls;
        }
        let end = time + 0.1 - 0.2 * (1.0 - random.uniform()).ln();
        stalls.push((time, end));
        time = end;
    }
}

/// The instant at which work of `length` begun at `start` is done, when no work is done in stalls.
fn finish(start: f64, length: f64, stalls: &Stalls) -> f64 {
    let mut end = start + length;
    let first = stalls.partition_point(|(_, stall_end)| *stall_end <= start);
    for (stall_start, stall_end) in &stalls[first..] {
        if *stall_start >= end {
            break;
        }
        end += stall_end - stall_start.max(start);
    }
    end
}

/// Counts of latencies on a grid of 1/700 in the logarithm, about as fine as a histogram's.
#[derive(Debug, Clone)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

impl Latencies {
    const PER_LOG: f64 = 700.0;
    const LOG_MIN: f64 = -14.0;

    pub fn new(latencies: impl IntoIterator<Item = f64>) -> Self {
        let mut all = Latencies {
            counts: vec![0; 16_000],
            total: 0,
        };
        for latency in latencies {
            let cell = ((latency.ln() - Self::LOG_MIN) * Self::PER_LOG).round() as usize;
            all.counts[cell] += 1;
            all.total += 1;
        }
        all
    }

    pub fn merge(&mut self, other: &Latencies) {
        for (own, others) in self.counts.iter_mut().zip(&other.counts) {
            *own += others;
        }
        self.total += other.total;
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// Smallest value on the grid with at least a fraction `q` of the latencies at or below it.
    pub fn quantile(&self, q: f64) -> f64 {
        let rank = (q * self.total as f64 - 1e-9).ceil() as u64;
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            seen >= rank.max(1)
        };
        let cell = self.counts.iter().position(reaches);
        Self::value(cell.unwrap_or(self.counts.len() - 1))
    }

    fn value(cell: usize) -> f64 {
        (Self::LOG_MIN + cell as f64 / Self::PER_LOG).exp()
    }
}

/// Arrival time and latency of every request in `from..until` at `rate` per second; service times are
/// multiplied by `slowness(second)`.
pub fn serve(
    from: f64,
    until: f64,
    rate: f64,
    stalls: &Stalls,
    slowness: impl Fn(f64) -> f64,
    random: &mut RandomStream,
) -> Vec<(f64, f64)> {
    let mut free = [from; WORKERS];
    let mut requests = Vec::with_capacity(((until - from) * rate * 1.1) as usize);
    let mut arrival = from;
    loop {
        arrival -= (1.0 - random.uniform()).ln() / rate;
        if arrival >= until {
            return requests;
        }
        let log_mean = 0.010_f64.ln() - 0.5 * SERVICE_DEVIATION * SERVICE_DEVIATION;
        let service = (log_mean + SERVICE_DEVIATION * random.normal()).exp() * slowness(arrival);
        let mut worker = 0;
        for candidate in 1..WORKERS {
            if free[candidate] < free[worker] {
                worker = candidate;
            }
        }
        let end = finish(arrival.max(free[worker]), service, stalls);
        free[worker] = end;
        requests.push((arrival, end - arrival));
    }
}
