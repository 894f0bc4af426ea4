//! Driving a slice on all threads.

use std::io::Write;
use std::time::{Duration, Instant};

use dbduel_client::SliceSpec;
use dbduel_client::tally::{Tally, TickTally};

use super::input::Stretches;
use super::{ClassNames, Desk, DriveError, Event, Interruption, PROMPT, answer, input};
use crate::heartbeat::Heartbeat;
use crate::load_thread::{BeginSlice, Command, Report, SliceReport};
use crate::monotonic;
use crate::order::{Answer, SliceAnswer, SliceOrder};

/// Time from the order to the start of a slice, so that all threads have received it.
const LEAD: Duration = Duration::from_millis(1);

/// Longest wait, after a slice, for its sessions to report to the server's statistics. A session with longer
/// transactions reports about as often as it would by itself.
const REPORTS_MAX: Duration = Duration::from_secs(1);

/// Results of a slice until all threads had reported, or the contender's connections were lost.
struct Gathered {
    reports: Vec<SliceReport>,
    /// Why the connections were lost.
    lost: Option<String>,
    /// All clients had done their work before the end of the measured part.
    is_finished: bool,
    /// Transactions committed between the sessions' reports to the server's statistics; `None` where unknown.
    reported: Option<u64>,
    /// Heartbeat of the gathering loop.
    heartbeat: Heartbeat,
}

impl<O: Write> Desk<O> {
    pub(super) fn slice(&mut self, order: &SliceOrder) -> Result<Answer, Interruption> {
        let contender = &order.contender;
        let refused = |why: String| {
            Ok(Answer::Refused {
                why: format!("cannot drive `{contender}`: {why}"),
            })
        };
        let stretches = match input::stretches(order) {
            Ok(stretches) => stretches,
            Err(why) => return refused(why),
        };
        let Some(open) = self.contenders.get(contender) else {
            return refused("it is not open".to_owned());
        };
        if order.clients == 0 || order.clients > open.clients {
            return refused(format!(
                "{} clients cannot take part; it has {}",
                order.clients, open.clients
            ));
        }
        let (names, retries) = (open.classes.clone(), open.retries);
        let blocks_threads = open.blocks_threads;
        if let Some(why) = open.lost.clone() {
            return self.lose(contender, why);
        }
        let timeout = stretches.drain.max(Duration::from_secs(1));
        if let Err(why) = self.settle(contender, timeout)? {
            return self.lose(contender, why);
        }
        let (start, start_ns) = self.beginning();
        let threads = self.threads.len() as u32;
        for thread in 0..threads {
            let mut tally = match self.spare.pop() {
                Some(mut tally) => {
                    tally.restart(names.classes.len(), stretches.window);
                    tally
                }
                None => Tally::new(names.classes.len(), stretches.window),
            };
            tally.measure_statements(names.statements.len());
            let share = self.share.of_thread(thread, threads, order.clients);
            let spec = SliceSpec {
                start,
                start_ns,
                arrival: order.arrival,
                share,
                retries,
                quantum: order.quantum,
                seed: order.seed,
            };
            self.threads[thread as usize].command(Command::Begin(Box::new(BeginSlice {
                contender: contender.clone(),
                spec,
                close_ns: stretches.close_ns,
                tally,
                drain: stretches.drain,
            })));
        }
        let open_ns = start_ns + stretches.window.open_ns;
        self.answer(&Answer::Begun { open_ns })?;
        let deadline = start + Duration::from_nanos(stretches.window.close_ns) + PROMPT;
        let Gathered {
            mut reports,
            lost,
            is_finished,
            reported,
            heartbeat: own,
        } = self.gather(order, (start, start_ns), deadline, stretches)?;
        if lost.is_some() {
            reports.extend(self.close(contender)?);
        }
        // Where a thread may be held up on purpose, this one still sees when the whole process is.
        let own = blocks_threads.then_some(&own);
        let open = start + Duration::from_nanos(stretches.window.open_ns);
        let counted = self.merged(reports, own, &names, (open, open_ns));
        let commits = self.take_commits(contender);
        match (lost, counted) {
            (None, Some(answer)) => Ok(Answer::Slice(Box::new(SliceAnswer {
                is_finished,
                reported,
                commits,
                ..answer
            }))),
            (None, None) => {
                Err(DriveError::Thread("no thread counted the slice".to_owned()).into())
            }
            (Some(why), counted) => Ok(Answer::Lost {
                why,
                commits,
                // Nothing was measured before the guard was over.
                counted: counted
                    .filter(|answer| answer.measured_s > 0.0)
                    .map(Box::new),
            }),
        }
    }

    /// When the slice begins, also in nanoseconds of `CLOCK_MONOTONIC`: as ordered unless that is past, otherwise at
    /// once.
    fn beginning(&mut self) -> (Instant, u64) {
        let at_once = Instant::now() + LEAD;
        let ordered = self.begin_at_ns.take();
        let ordered = ordered.map(|at_ns| (monotonic::instant_of(at_ns), at_ns));
        ordered
            .filter(|(at, _)| *at >= at_once)
            .unwrap_or_else(|| (at_once, monotonic::ns_of(at_once)))
    }

    /// Counts of all threads together; stalls seen by `own` replace those that the threads saw.
    fn merged(
        &mut self,
        reports: Vec<SliceReport>,
        own: Option<&Heartbeat>,
        names: &ClassNames,
        (open, open_ns): (Instant, u64),
    ) -> Option<SliceAnswer> {
        let mut reports = reports.into_iter();
        let mut whole = reports.next()?;
        for report in reports {
            whole.merge(&report);
            self.spare.push(report.tally);
        }
        if let Some(own) = own {
            whole.stalled = own.stalled();
            whole.gaps.clone_from(own.gaps());
        }
        let since_open = |at: Instant| at.saturating_duration_since(open).as_secs_f64();
        let gaps = whole.gaps.iter();
        let answer = SliceAnswer {
            gaps_s: gaps
                .map(|gap| [since_open(gap.start), since_open(gap.end)])
                .collect(),
            ..answer::slice(&whole, names, open_ns)
        };
        self.spare.push(whole.tally);
        Some(answer)
    }

    /// Closes a contender whose clients are unusable.
    fn lose(&mut self, contender: &str, why: String) -> Result<Answer, Interruption> {
        self.close(contender)?;
        let commits = self.take_commits(contender);
        Ok(Answer::Lost {
            why,
            commits,
            counted: None,
        })
    }

    /// Asks all threads to report when their clients have ended the transactions of a [`Command::Settle`].
    fn ask_to_settle(&mut self, contender: &str, is_parked: bool) {
        self.settles += 1;
        for thread in &self.threads {
            thread.command(Command::Settle {
                number: self.settles,
                contender: contender.to_owned(),
                is_parked,
            });
        }
    }

    /// Waits until the clients have the replies that an earlier slice has awaited in vain.
    fn settle(
        &mut self,
        contender: &str,
        timeout: Duration,
    ) -> Result<Result<(), String>, Interruption> {
        self.ask_to_settle(contender, false);
        let deadline = Instant::now() + timeout;
        let mut waiting = self.threads.len();
        while waiting > 0 {
            match self.next_event(deadline)? {
                Event::Report(Report::Settled(number)) if number == self.settles => waiting -= 1,
                Event::Report(Report::Lost {
                    contender: lost,
                    why,
                }) if lost == contender => {
                    return Ok(Err(why.to_string()));
                }
                Event::Report(Report::Lost { contender, why }) => {
                    self.remember_loss(&contender, &why);
                }
                Event::TimeUp => {
                    return Ok(Err(
                        "clients still wait for replies of the previous slice; is the server stuck?"
                            .to_owned(),
                    ));
                }
                Event::Report(_) | Event::Stop => {}
            }
        }
        Ok(Ok(()))
    }

    /// Passes ticks on and collects the counts of each thread, until all have reported or the contender's connections
    /// are lost. Ends the slice early when the clients of all threads have done their work. Where the server is not
    /// going to be frozen, transactions in flight have no later slice to count in, so they are awaited as well.
    /// Finally the sessions report to the server's statistics.
    fn gather(
        &mut self,
        order: &SliceOrder,
        (start, start_ns): (Instant, u64),
        mut deadline: Instant,
        Stretches { window, drain, .. }: Stretches,
    ) -> Result<Gathered, Interruption> {
        let instant = |ns| start + Duration::from_nanos(ns);
        let mut heartbeat = Heartbeat::new(Instant::now());
        let threads = self.threads.len();
        let contender = order.contender.as_str();
        let (mut unfinished, mut undrained, mut unparked) = (threads, threads, threads);
        let mut is_in_time = true;
        // Until when clients that begin nothing more are waited for.
        let mut parked_by = None;
        let mut reports = Vec::with_capacity(threads);
        let mut ticks: Vec<(TickTally, usize)> = Vec::new();
        let (mut unreported, mut reported, mut reported_by) = (threads, Some(0), None);
        while reports.len() < threads || unreported > 0 {
            let until = reported_by.unwrap_or(deadline).min(deadline);
            let event = self.next_event(heartbeat.next().min(until))?;
            let now = Instant::now();
            if reported_by.is_some_and(|reported_by| now >= reported_by) {
                break;
            }
            // Whatever held this loop up held the load threads up as well.
            deadline += heartbeat.beat(now, instant(window.open_ns)..now);
            if parked_by.is_some_and(|parked_by| now >= parked_by) {
                parked_by = None;
                self.command_all(|| Command::End);
            }
            match event {
                Event::Report(Report::Tick { index, tick }) => {
                    match ticks.get_mut(index) {
                        Some((merged, count)) => {
                            merged.merge(&tick);
                            *count += 1;
                        }
                        None => ticks.push((tick, 1)),
                    }
                    if let Some((merged, count)) = ticks.get(index)
                        && *count == threads
                    {
                        let tick = answer::tick(merged, window.open_ns);
                        self.answer(&Answer::Tick(tick))?;
                    }
                }
                Event::Report(Report::Finished) => {
                    unfinished = unfinished.saturating_sub(1);
                    if unfinished == 0 {
                        self.command_all(|| Command::Stop);
                    }
                }
                // All threads drive the load until the last of them has nothing to wait for.
                Event::Report(Report::Drained { in_time }) => {
                    undrained = undrained.saturating_sub(1);
                    is_in_time &= in_time;
                    match undrained {
                        0 if order.until_halted || !is_in_time => {
                            self.command_all(|| Command::End);
                        }
                        0 => {
                            self.halt();
                            self.ask_to_settle(contender, true);
                            parked_by = Some(now + drain);
                        }
                        _ => {}
                    }
                }
                Event::Report(Report::Settled(number)) if number == self.settles => {
                    unparked = unparked.saturating_sub(1);
                    if unparked == 0 && parked_by.take().is_some() {
                        self.command_all(|| Command::End);
                    }
                }
                Event::Report(Report::Done(report)) => {
                    reports.push(*report);
                    reported_by = (reports.len() == threads).then(|| now + REPORTS_MAX);
                }
                Event::Report(Report::Reported {
                    start_ns: of,
                    committed,
                }) if of == start_ns => {
                    unreported = unreported.saturating_sub(1);
                    reported = reported.zip(committed).map(|(sum, one)| sum + one);
                }
                Event::Report(Report::Lost {
                    contender: lost,
                    why,
                }) if lost == contender => {
                    return Ok(Gathered {
                        reports,
                        lost: Some(why.to_string()),
                        is_finished: false,
                        reported: None,
                        heartbeat,
                    });
                }
                Event::Report(Report::Lost { contender, why }) => {
                    self.remember_loss(&contender, &why);
                }
                Event::Stop => self.command_all(|| Command::Stop),
                Event::TimeUp if now >= deadline => {
                    return Err(
                        DriveError::Thread("it did not end the slice in time".to_owned()).into(),
                    );
                }
                Event::TimeUp | Event::Report(_) => {}
            }
        }
        Ok(Gathered {
            reports,
            lost: None,
            is_finished: unfinished == 0,
            reported: reported.filter(|_| unreported == 0),
            heartbeat,
        })
    }

    /// Halts the clients in the slice that was reported.
    pub(super) fn halt(&self) {
        self.command_all(|| Command::Halt);
    }

    fn command_all(&self, command: impl Fn() -> Command) {
        let threads = self.threads.iter();
        threads.for_each(|thread| thread.command(command()));
    }
}
