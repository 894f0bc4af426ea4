//! A capture in its own order: which session runs which transactions in which quantum, and which sessions wait for others.
//!
//! All transactions are put in order of their starts and cut into quanta of equally many. A quantum has a part of each session with
//! transactions in it. Parts begin in order of their first transactions, and a part begins only when every session has ended that had
//! ended before it when captured; parts of sessions that were open together run side by side, each in its own order. Nothing else of the
//! order between sessions is kept: clients that wait for statements of others would hang on locks.

use std::ops::Range;
use std::sync::Arc;

use dbduel_capture::entry::Lack;
use dbduel_capture::store::Capture;
use dbduel_record::plan::{Parameters, Resolved};
use dbduel_text::counts;

use super::last::LastMade;
use super::mix::{Mix, ReplayTransaction};
use super::{CAPTURE, CAPTURE_DIGEST, OPEN, PACE, SPEED, TRANSACTIONS_PER_SLICE};

/// Least quanta of a trace: one for the warm-up and two for a block.
const QUANTA_MIN: u32 = 3;
/// End of a session's part in a quantum that the session outlasts.
const STAYS_OPEN: u32 = u32::MAX;
/// Coarsest times that say when a transaction is due, nanoseconds.
const STEP_MAX_NS: u32 = 100_000_000;

/// The trace of the last capture of this process, which all its contenders share.
static LAST: LastMade<Source, Trace> = LastMade::none();

/// Why a capture has no trace with these parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{parameter}` {why}")]
pub struct Refused {
    /// The parameter to change.
    pub parameter: &'static str,
    /// The problem, as the end of a sentence that begins with the parameter.
    pub why: String,
}

fn refuse(parameter: &'static str, why: String) -> Refused {
    Refused { parameter, why }
}

/// What a trace follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    capture: String,
    digest: String,
    per_slice: u64,
}

impl Source {
    fn of(parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        Source {
            capture: resolved.text(CAPTURE).to_owned(),
            digest: resolved.text(CAPTURE_DIGEST).to_owned(),
            per_slice: resolved.count(TRANSACTIONS_PER_SLICE),
        }
    }
}

/// The transactions of one session in one quantum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionPart {
    /// Places in [`Mix::all`].
    pub(crate) transactions: Range<u32>,
    /// Position of its first transaction in the order of starts.
    pub(crate) begin: u32,
    /// Position after the last transaction that began before the session ended; greater than all where it ends in another quantum.
    pub(crate) end: u32,
}

/// When a transaction began: its time, the place of its first statement in the log, and its place in [`Mix::all`].
type Start = (i64, u32, u32);

/// A capture cut into quanta.
#[derive(Debug)]
pub(crate) struct Trace {
    mix: Arc<Mix>,
    /// By quantum, then by their begins.
    parts: Vec<SessionPart>,
    /// Of each quantum, places in `parts`.
    quanta: Vec<Range<u32>>,
    /// Start of the first transaction of each quantum, nanoseconds since the capture's start.
    begins_ns: Vec<i64>,
    /// Most sessions open at once.
    sessions_max: u32,
    /// From the first to the last start of a transaction of the longest quantum, nanoseconds.
    longest_ns: u64,
}

impl Trace {
    /// The trace for these resolved parameters. It is found once per capture and process.
    ///
    /// # Errors
    /// Why the capture has none, with the parameter to change.
    pub(crate) fn of(parameters: &Parameters) -> Result<Arc<Self>, Refused> {
        let source = Source::of(parameters);
        let per_slice = source.per_slice;
        LAST.or_make(source, || {
            let mix = Mix::of(parameters)
                .map_err(|why| refuse(CAPTURE, format!("cannot be replayed: {why}")))?;
            Self::cut(mix, per_slice)
        })
    }

    /// Cuts the transactions into quanta of about `per_slice`.
    fn cut(mix: Arc<Mix>, per_slice: u64) -> Result<Self, Refused> {
        check_order(mix.capture())?;
        let starts = starts(&mix);
        let all = starts.len() as u64;
        let quanta = (all / per_slice.max(1)) as u32;
        if all < u64::from(QUANTA_MIN) {
            let why = format!(
                "is too short for a trace, which needs {QUANTA_MIN} transactions; it has {all}"
            );
            return Err(refuse(CAPTURE, why));
        }
        if quanta < QUANTA_MIN {
            let why = format!(
                "cannot be {per_slice}: the trace has {}, and at least {QUANTA_MIN} slices must fit into it; set {} at most",
                counts::things(all, "transaction"),
                all / u64::from(QUANTA_MIN)
            );
            return Err(refuse(TRANSACTIONS_PER_SLICE, why));
        }
        // The first position of each quantum.
        let first = |quantum: u32| (all * u64::from(quantum) / u64::from(quanta)) as u32;
        let firsts: Vec<u32> = (0..=quanta).map(first).collect();
        let mut positions = vec![0_u32; starts.len()];
        for (position, (_, _, place)) in starts.iter().enumerate() {
            positions[*place as usize] = position as u32;
        }
        let mut parts = parts(&mix, &starts, &positions, &firsts);
        let sessions_max = most_open(&mix, &starts, &positions);
        let quantum_of = |part: &SessionPart| firsts.partition_point(|first| *first <= part.begin);
        parts.sort_unstable_by_key(|part| part.begin);
        let mut next = 0;
        let quanta = (1..=quanta as usize)
            .map(|quantum| {
                let begin = next;
                let own = parts[begin..].partition_point(|part| quantum_of(part) <= quantum);
                next += own;
                begin as u32..next as u32
            })
            .collect();
        let time = |position: u32| starts.get(position as usize).map_or(0, |start| start.0);
        let spans = firsts.windows(2).map(|ends| {
            let last = ends[1].saturating_sub(1);
            time(last).saturating_sub(time(ends[0])).max(0) as u64
        });
        Ok(Trace {
            longest_ns: spans.max().unwrap_or(0),
            begins_ns: firsts[..firsts.len() - 1]
                .iter()
                .map(|first| time(*first))
                .collect(),
            parts,
            quanta,
            sessions_max,
            mix,
        })
    }

    /// The transactions, and what is left out.
    pub(crate) fn mix(&self) -> &Arc<Mix> {
        &self.mix
    }

    /// Number of its quanta.
    pub(crate) fn quanta(&self) -> u32 {
        self.quanta.len() as u32
    }

    /// Most sessions that were open at once: more clients have no work.
    pub(crate) fn sessions_max(&self) -> u32 {
        self.sessions_max
    }

    /// The parts of a quantum, in order of their begins; none beyond the last quantum.
    pub(crate) fn parts(&self, quantum: u32) -> &[SessionPart] {
        let places = self.quanta.get(quantum as usize).cloned().unwrap_or(0..0);
        self.parts
            .get(places.start as usize..places.end as usize)
            .unwrap_or_default()
    }

    /// When a transaction of a quantum began, nanoseconds since the quantum's first.
    pub(crate) fn since_begin_ns(&self, quantum: u32, transaction: u32) -> u64 {
        let begin = self.begins_ns.get(quantum as usize).copied().unwrap_or(0);
        let transaction = self.mix.all().get(transaction as usize);
        let start = transaction.and_then(|one| start_of(self.mix.capture(), one));
        start.map_or(0, |(ns, _)| ns.saturating_sub(begin).max(0) as u64)
    }

    /// Time of the longest quantum at the captured rate, seconds.
    pub(crate) fn longest_s(&self) -> f64 {
        self.longest_ns as f64 / 1e9
    }

    /// What a slice runs, in one sentence without values of statements.
    pub(crate) fn claim(&self, parameters: &Parameters) -> String {
        let all = self.mix.coverage().transactions;
        let pace = match is_open(parameters) {
            true => format!(
                "transactions are due at their captured times, at {} × the captured rate",
                Resolved(parameters).number(SPEED)
            ),
            false => "a session's next transaction follows the previous one at once".to_owned(),
        };
        format!(
            "The capture is run as a trace, in {} quanta of {} each, with at most {} open at once; {pace}. At its end all contenders \
             begin again with restored tables.",
            counts::of(self.quanta().into()),
            counts::things(all / u64::from(self.quanta().max(1)), "transaction"),
            counts::things(self.sessions_max.into(), "session"),
        )
    }
}

/// True where transactions are due at their captured times.
pub(crate) fn is_open(parameters: &Parameters) -> bool {
    Resolved(parameters).text(PACE) == OPEN
}

/// Refuses resolved parameters of a trace that have no meaning together, and captures without an order.
///
/// # Errors
/// Names the parameter to change.
pub fn check(parameters: &Parameters) -> Result<(), Refused> {
    let resolved = Resolved(parameters);
    if !is_open(parameters) && resolved.number(SPEED).total_cmp(&1.0).is_ne() {
        let why = format!(
            "is for `{PACE} = \"{OPEN}\"`: in a closed loop each transaction follows the previous one of its session at once"
        );
        return Err(refuse(SPEED, why));
    }
    let trace = Trace::of(parameters)?;
    let step_ns = trace.mix.capture().manifest().span.step_ns;
    if is_open(parameters) && step_ns > STEP_MAX_NS {
        let why = format!(
            "cannot be `{OPEN}`: the log has times to {} only, too coarse to say when a transaction was due; use `closed`, or capture \
             with a log whose times have fractions of seconds",
            dbduel_text::duration(f64::from(step_ns) / 1e9)
        );
        return Err(refuse(PACE, why));
    }
    Ok(())
}

/// Refuses captures whose order is not known.
fn check_order(capture: &Capture) -> Result<(), Refused> {
    let manifest = capture.manifest();
    if manifest.lacks.contains(&Lack::Sampled) {
        let why = "cannot be run as a trace: the log is a sample (a rate limit), so parts of its transactions and sessions are missing; \
                   use `mode = \"mix\"`, or capture without a rate limit";
        return Err(refuse(CAPTURE, why.to_owned()));
    }
    if manifest.counts.without_start > 0 {
        let why = format!(
            "cannot be run as a trace: the log has no time of {}, so their order is unknown; use `mode = \"mix\"`",
            counts::things(manifest.counts.without_start, "statement")
        );
        return Err(refuse(CAPTURE, why));
    }
    Ok(())
}

/// Time of a transaction's first statement, and the place of this statement in the log.
fn start_of(capture: &Capture, transaction: &ReplayTransaction) -> Option<(i64, u32)> {
    let statement = capture.ordered(transaction.first, 1).next()?;
    // Statements of a capture have numbers of 32 bits.
    Some((capture.start(statement)?, statement as u32))
}

/// All transactions in order of their starts. Those of a session never precede an earlier one of it, whatever the log's times are.
fn starts(mix: &Mix) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::with_capacity(mix.all().len());
    for session in mix.sessions() {
        let mut latest = (i64::MIN, 0);
        for place in session.clone() {
            let start = mix
                .all()
                .get(place as usize)
                .and_then(|one| start_of(mix.capture(), one));
            latest = latest.max(start.unwrap_or(latest));
            starts.push((latest.0, latest.1, place));
        }
    }
    starts.sort_unstable();
    starts
}

/// Position after the last transaction that began before a session ended.
fn end_of(mix: &Mix, starts: &[Start], positions: &[u32], session: &Range<u32>) -> u32 {
    let capture = mix.capture();
    let last_place = session.end.saturating_sub(1) as usize;
    let last = mix.all().get(last_place).and_then(|one| {
        capture
            .ordered(one.first + one.count.saturating_sub(1), 1)
            .next()
    });
    let Some(statement) = last else {
        return STAYS_OPEN;
    };
    let start = capture.start(statement).unwrap_or(i64::MAX);
    let duration = capture.duration_ns(statement).unwrap_or(0);
    let end = start.saturating_add(i64::try_from(duration).unwrap_or(i64::MAX));
    let end = starts.partition_point(|one| (one.0, one.1) <= (end, statement as u32)) as u32;
    // Where times of a session go back, its last transaction has the start of an earlier one.
    end.max(positions.get(last_place).map_or(0, |own| own + 1))
}

/// The parts of all sessions; `firsts` are the first positions of the quanta and the number of all transactions.
fn parts(mix: &Mix, starts: &[Start], positions: &[u32], firsts: &[u32]) -> Vec<SessionPart> {
    let position = |place: u32| positions.get(place as usize).copied().unwrap_or(0);
    let mut parts = Vec::new();
    for session in mix.sessions() {
        let end = end_of(mix, starts, positions, session);
        let mut rest = session.clone();
        while !rest.is_empty() {
            let begin = position(rest.start);
            let quantum = firsts.partition_point(|first| *first <= begin);
            let close = firsts.get(quantum).copied().unwrap_or(u32::MAX);
            let own = rest.clone().take_while(|place| position(*place) < close);
            let split = rest.start + own.count() as u32;
            parts.push(SessionPart {
                transactions: rest.start..split,
                begin,
                end: match split == session.end && end <= close {
                    true => end,
                    false => STAYS_OPEN,
                },
            });
            rest.start = split;
        }
    }
    parts
}

/// Most sessions that were open at once.
fn most_open(mix: &Mix, starts: &[Start], positions: &[u32]) -> u32 {
    let sessions = mix.sessions();
    let begin = |session: &Range<u32>| positions.get(session.start as usize).copied();
    let mut begins: Vec<u32> = sessions.iter().filter_map(begin).collect();
    let mut ends: Vec<u32> = sessions
        .iter()
        .map(|session| end_of(mix, starts, positions, session))
        .collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let open = begins.iter().enumerate().map(|(before, begin)| {
        let ended = ends.partition_point(|end| end <= begin);
        before + 1 - ended.min(before)
    });
    open.max().unwrap_or(1) as u32
}
