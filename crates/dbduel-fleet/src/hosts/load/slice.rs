//! A slice that all load hosts drive together, from one instant on.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use dbduel_lab::outage::{OUT_OF_REACH_MAX, SILENCE_MAX};
use dbduel_load::order::{Answer, Orchestration, Order, SliceAnswer, SliceOrder, Tick};
use dbduel_machine::clock;
use dbduel_nats::{Exchange, LinkEnd};
use dbduel_record::commits::CommitRange;

use super::super::network::{HostLink as _, Network};
use super::super::{CLOCK_QUESTIONS, CLOCK_TIMEOUT, Stop, clock_subject};
use super::{ANSWER_TIMEOUT, Event, LoadLink};

/// Least time from the order of a slice to its beginning, beside the time of messages: for the processes that pass it
/// on.
pub(super) const LEAD_MIN: Duration = Duration::from_millis(30);
/// The longest such time, after hosts that began late.
const LEAD_MAX: Duration = Duration::from_secs(1);
/// A slice is lost when a host begins later than agreed by more than this.
const LATE_MAX: Duration = Duration::from_millis(1);
/// Largest share of a slice in which the load process of a host may stall.
const STALLED_SHARE_MAX: f64 = 0.05;
/// Largest p99 lag of a host, microseconds; beyond it the host does not drive the ordered load.
const LAG_US_MAX: f64 = 100_000.0;

/// A host's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HostClock {
    /// The clock there minus the one here, nanoseconds.
    offset_ns: i64,
    /// Largest error of the offset, nanoseconds.
    uncertainty_ns: u64,
}

impl HostClock {
    /// From one round trip. `None` when the answer is not a time.
    fn of(network: &impl Network, exchange: &Exchange) -> Option<Self> {
        let there: u64 = std::str::from_utf8(&exchange.answer).ok()?.parse().ok()?;
        let half_ns = u64::try_from(exchange.round_trip.as_nanos() / 2).ok()?;
        let here = network.ns_of(exchange.asked_at) + half_ns;
        Some(HostClock {
            offset_ns: there.cast_signed().wrapping_sub(here.cast_signed()),
            uncertainty_ns: half_ns,
        })
    }

    fn there(self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.offset_ns)
    }

    fn here(self, there_ns: u64) -> u64 {
        there_ns.saturating_add_signed(self.offset_ns.saturating_neg())
    }
}

/// End of a slice on one host.
#[derive(Debug)]
enum HostEnd {
    Finished(Box<SliceAnswer>),
    Lost(String),
}

/// Progress of a slice on one host.
#[derive(Debug, Default)]
struct HostSlice {
    /// Delay of its beginning against the agreed time.
    late: Option<Duration>,
    /// The longest time without a message from it.
    silent: Duration,
    end: Option<HostEnd>,
}

/// Sums of the finished ticks of a slice, with the number of hosts that reported each.
#[derive(Debug, Default)]
struct TickSums {
    sums: Vec<(Tick, usize)>,
    /// Ticks reported by each host.
    seen: Vec<usize>,
}

impl TickSums {
    /// Adds the next tick of a host; returns the sum when all hosts have reported it.
    fn add(&mut self, host: usize, hosts: usize, tick: &Tick) -> Option<Tick> {
        self.seen.resize(hosts, 0);
        let place = self.seen[host];
        self.seen[host] += 1;
        match self.sums.get_mut(place) {
            Some((sum, count)) => {
                sum.add_host(tick);
                *count += 1;
            }
            None => self.sums.push((*tick, 1)),
        }
        let (sum, count) = self.sums[place];
        (count == hosts).then_some(sum)
    }
}

impl<N: Network, O: Write> LoadLink<'_, N, O> {
    pub(super) fn slice(&mut self, order: &SliceOrder) -> Result<Answer, Stop> {
        let (ordered, bytes_before) = (clock::now(), self.bytes());
        let clocks = self.clocks()?;
        let uncertainty_ns = clocks.iter().map(|clock| clock.uncertainty_ns).max();
        let uncertainty = Duration::from_nanos(uncertainty_ns.unwrap_or_default());
        // For the order, and for one of its frames that is late.
        let two_round_trips = 4 * uncertainty;
        let begin = clock::now() + self.lead + two_round_trips;
        let begin_ns = self.network.ns_of(begin);
        for (host, clock) in clocks.iter().enumerate() {
            let at_ns = clock.there(begin_ns);
            self.send(host, &Order::BeginAt { at_ns });
            self.send(host, &Order::Slice(order.clone()));
        }
        let guard_ns = (order.guard_s.clamp(0.0, 86_400.0) * 1e9) as u64;
        let length_s = order.guard_s + order.measured_s + 2.0 * order.drain_s;
        let length = Duration::from_secs_f64(length_s.clamp(0.0, 4.0 * 86_400.0));
        let agreed = Agreed {
            open_ns: begin_ns + guard_ns,
            deadline: begin + length + ANSWER_TIMEOUT,
        };
        let mut commits = Vec::new();
        let slices = self.gather_slice(&clocks, &agreed, &mut commits)?;
        let latest = slices.iter().filter_map(|slice| slice.late).max();
        if let Some(late) = latest {
            self.lead = next_lead(self.lead, two_round_trips, late);
        }
        let mut troubles = Vec::new();
        let mut finished: Vec<(String, SliceAnswer)> = Vec::new();
        let mut was_cut_off = false;
        for (slice, host) in slices.into_iter().zip(&mut self.hosts) {
            // Also between slices: what a server sent then has not arrived.
            let silent = std::mem::take(&mut host.longest_silence);
            was_cut_off |= silent > OUT_OF_REACH_MAX;
            match slice.end {
                Some(HostEnd::Finished(answer)) => {
                    troubles.extend(trouble(&host.name, slice.late, silent, &answer));
                    finished.push((host.name.clone(), *answer));
                }
                Some(HostEnd::Lost(why)) => {
                    return Ok(Answer::Lost {
                        why: format!("load host `{}`: {why}", host.name),
                        commits,
                        counted: None,
                    });
                }
                None => {}
            }
        }
        let lags = finished.iter();
        let lag_us_p99: BTreeMap<String, f64> = lags
            .map(|(name, answer)| (name.clone(), answer.lag_us_p99))
            .collect();
        let longest_s = finished.iter().map(|(_, answer)| answer.measured_s);
        let loaded_s = order.guard_s + longest_s.fold(0.0, f64::max);
        let mut answers = finished.into_iter().map(|(_, answer)| answer);
        let Some(mut sum) = answers.next() else {
            return Err(Stop::Unreachable("there is no load host".to_owned()));
        };
        sum.open_ns = agreed.open_ns;
        for answer in answers {
            sum.add_host(answer).map_err(Stop::Unreachable)?;
        }
        sum.commits.append(&mut commits);
        let idle_s = (clock::since(ordered).as_secs_f64() - loaded_s).max(0.0);
        sum.orchestration = Some(Orchestration {
            clock_uncertainty_us: uncertainty.as_nanos() as f64 / 1e3,
            orchestration_ms: 1e3 * idle_s,
            orchestration_bytes: self.bytes() - bytes_before,
            lag_us_p99,
            was_cut_off,
            trouble: (!troubles.is_empty()).then(|| troubles.join("; ")),
        });
        Ok(Answer::Slice(Box::new(sum)))
    }

    /// Bytes of all links so far.
    fn bytes(&self) -> u64 {
        self.hosts.iter().map(|host| host.link.bytes()).sum()
    }

    /// The clocks of all hosts: of several round trips the quickest has the least room for asymmetry, so it alone is used.
    fn clocks(&mut self) -> Result<Vec<HostClock>, Stop> {
        let names = self.hosts.iter().map(|host| clock_subject(&host.name));
        let subjects: Vec<String> = names.collect();
        let mut best: Vec<Option<HostClock>> = vec![None; subjects.len()];
        let began = clock::now();
        loop {
            let asked = self
                .network
                .ask_each(&subjects, CLOCK_QUESTIONS, CLOCK_TIMEOUT);
            for (best, exchanges) in best.iter_mut().zip(asked) {
                let clocks = exchanges
                    .iter()
                    .filter_map(|one| HostClock::of(self.network, one));
                *best = best
                    .iter()
                    .copied()
                    .chain(clocks)
                    .min_by_key(|clock| clock.uncertainty_ns);
            }
            for host in &mut self.hosts {
                host.note_silence();
            }
            match best.iter().position(Option::is_none) {
                None => return Ok(best.into_iter().flatten().collect()),
                Some(missing) if clock::since(began) >= SILENCE_MAX => {
                    return Err(self.out_of_reach(&self.hosts[missing].name, clock::since(began)));
                }
                // Where nothing listens, the answer to that comes at once.
                Some(_) => clock::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Passes on the hosts' answers about a slice until it is over on all of them.
    fn gather_slice(
        &mut self,
        clocks: &[HostClock],
        agreed: &Agreed,
        commits: &mut Vec<CommitRange>,
    ) -> Result<Vec<HostSlice>, Stop> {
        let hosts = self.hosts.len();
        let mut slices: Vec<HostSlice> = Vec::new();
        slices.resize_with(hosts, HostSlice::default);
        let mut ticks = TickSums::default();
        let (mut is_begun, mut is_stopped) = (false, false);
        while let Some(running) = slices.iter().position(|slice| slice.end.is_none()) {
            let event = self.next_event()?;
            for (slice, host) in slices.iter_mut().zip(&self.hosts) {
                if slice.end.is_none() {
                    slice.silent = slice.silent.max(host.link.silent_for());
                }
            }
            let mut stops = false;
            match event {
                Some(Event::Order(Order::Stop)) => stops = true,
                Some(Event::Order(order)) => self.backlog.push_back(order),
                Some(Event::Line { host, line }) => match self.understood(host, &line)? {
                    Answer::Begun { open_ns } => {
                        let late_ns = clocks[host].here(open_ns).saturating_sub(agreed.open_ns);
                        slices[host].late = Some(Duration::from_nanos(late_ns));
                    }
                    Answer::Tick(tick) => {
                        if let Some(sum) = ticks.add(host, hosts, &tick) {
                            self.answer(&Answer::Tick(sum))?;
                        }
                    }
                    Answer::Acknowledged { mut acknowledged } => {
                        for one in &mut acknowledged {
                            one.at_ns = clocks[host].here(one.at_ns);
                        }
                        self.answer(&Answer::Acknowledged { acknowledged })?;
                    }
                    Answer::Slice(mut answer) => {
                        commits.append(&mut answer.commits);
                        slices[host].end = Some(HostEnd::Finished(answer));
                    }
                    Answer::Lost {
                        why, commits: own, ..
                    } => {
                        commits.extend(own);
                        slices[host].end = Some(HostEnd::Lost(why));
                        stops = true;
                    }
                    Answer::Refused { why } => {
                        slices[host].end = Some(HostEnd::Lost(why));
                        stops = true;
                    }
                    other => {
                        let name = &self.hosts[host].name;
                        let why =
                            format!("load host `{name}` sent an unexpected answer: {other:?}");
                        return Err(Stop::Unreachable(why));
                    }
                },
                Some(Event::End) | None => {}
            }
            if stops && !is_stopped {
                is_stopped = true;
                self.send_all(&Order::Stop);
            }
            if !is_begun && slices.iter().all(|slice| slice.late.is_some()) {
                is_begun = true;
                let open_ns = agreed.open_ns;
                self.answer(&Answer::Begun { open_ns })?;
            }
            if clock::now() >= agreed.deadline + slices[running].silent {
                return Err(Stop::Unreachable(format!(
                    "load host `{}` did not end the slice in time",
                    self.hosts[running].name
                )));
            }
        }
        Ok(slices)
    }
}

/// The lead of the next slice after one that began `late`. It does not grow for an order that was lost and sent again.
fn next_lead(lead: Duration, two_round_trips: Duration, late: Duration) -> Duration {
    let is_resent = lead + two_round_trips + late >= LinkEnd::RESEND_AFTER;
    match late > LATE_MAX && !is_resent {
        true => (lead + 2 * late).min(LEAD_MAX),
        false => lead,
    }
}

/// Agreed times of a slice.
struct Agreed {
    /// Start of the measured part, nanoseconds of `CLOCK_MONOTONIC` here.
    open_ns: u64,
    /// Time by which all hosts must have answered, silence apart.
    deadline: Instant,
}

/// Reason why a slice says nothing about the server although the host answered.
fn trouble(
    name: &str,
    late: Option<Duration>,
    silent: Duration,
    answer: &SliceAnswer,
) -> Option<String> {
    let late = late.unwrap_or_default();
    let what = if late > LATE_MAX {
        let late_ms = late.as_secs_f64() * 1e3;
        format!("began {late_ms:.1} ms later than agreed")
    } else if silent > OUT_OF_REACH_MAX {
        format!("was out of reach for {:.1} s", silent.as_secs_f64())
    } else if answer.stalled_s > STALLED_SHARE_MAX * answer.measured_s {
        format!(
            "stalled for {:.1} s of {:.1} s and sent nothing meanwhile",
            answer.stalled_s, answer.measured_s
        )
    } else if answer.lag_us_p99 > LAG_US_MAX {
        let lag_ms = answer.lag_us_p99 / 1e3;
        format!("lagged by {lag_ms:.0} ms at the 99 % quantile")
    } else {
        return None;
    };
    Some(format!("load host `{name}` {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_hosts_get_more_time_and_lost_orders_do_not() {
        let ms = Duration::from_millis;
        let next = |late| next_lead(ms(30), ms(40), late);
        assert_eq!(next(Duration::ZERO), ms(30));
        assert_eq!(next(LATE_MAX), ms(30));
        assert_eq!(next(ms(14)), ms(58));
        assert_eq!(next(ms(500)), LEAD_MAX);
        assert_eq!(next(ms(530)), ms(30));
    }
}
