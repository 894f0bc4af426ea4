//! Opening and closing a contender: its clients on all threads.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbduel_client::ClientConfig;
use dbduel_driver::session::Session;
use dbduel_driver::{Credentials, Tls};
use dbduel_lua::gather_states;
use dbduel_workloads::parameters;

use super::input::nanoseconds;
use super::{ClassNames, Desk, DriveError, Event, Interruption, OpenContender, PROMPT};
use crate::load_thread::{Command, Report, SliceReport};
use crate::order::{Answer, OpenOrder};

/// Maximum number of clients of one contender: the number of ports of one address.
const CLIENTS_MAX: u32 = 65_536;

impl<O: Write> Desk<O> {
    pub(super) fn open(&mut self, order: OpenOrder) -> Result<Answer, Interruption> {
        let contender = order.contender.clone();
        let examples = self.next_examples.take();
        let refused = |why: String| {
            Ok(Answer::Refused {
                why: format!("cannot open `{contender}`: {why}"),
            })
        };
        if self.contenders.contains_key(&contender) {
            return refused("it is already open".to_owned());
        }
        if order.clients > CLIENTS_MAX {
            return refused(format!(
                "{} clients exceed the limit of {CLIENTS_MAX}",
                order.clients
            ));
        }
        let workload = match dbduel_workloads::find(&order.workload.name) {
            Ok(workload) => workload,
            Err(error) => return refused(error.to_string()),
        };
        if !workload.speaks(order.dialect) {
            return refused(format!(
                "workload `{}` has no statements for {}",
                workload.name(),
                order.dialect.product()
            ));
        }
        if order.dialect.is_in_process() && order.clients > self.threads.len() as u32 {
            return refused(format!(
                "{} clients need as many load threads, because SQLite statements block their thread; there are {}",
                order.clients,
                self.threads.len()
            ));
        }
        match parameters::resolve(workload, &order.workload.parameters) {
            Err(error) => return refused(error.to_string()),
            Ok(resolved) if resolved != order.workload.parameters => {
                return refused(
                    "its parameters are incomplete; an order must set all of them".to_owned(),
                );
            }
            Ok(resolved) => {
                let checked = parameters::check_dialect(workload, order.dialect, &resolved);
                if let Err(error) = checked {
                    return refused(error.to_string());
                }
            }
        }
        let Some(connect_ns) = nanoseconds(order.connect_s) else {
            return refused(format!(
                "`connect_s` cannot be {}; it must be from 0 to a day, in seconds",
                order.connect_s
            ));
        };
        let in_process = order.dialect.is_in_process();
        let began = Instant::now();
        let deadline = began + Duration::from_nanos(connect_ns);
        let threads = self.threads.len() as u32;
        let sequence = Arc::clone(self.sequences.entry(contender.clone()).or_default());
        let classes = ClassNames {
            classes: workload.classes(&order.workload.parameters),
            statements: workload.statement_classes(&order.workload.parameters),
        };
        let shared = workload.shared(&order.workload.parameters);
        let (clients, retries, connect_s) = (order.clients, order.retries, order.connect_s);
        let config = Arc::new(ClientConfig {
            dialect: order.dialect,
            address: order.address,
            credentials: Credentials::new(order.user, order.password),
            tls: Arc::new(Tls::new(order.tls)),
            database: order.database,
            workload,
            parameters: order.workload.parameters,
            sequence,
            host: self.share,
            shared,
            examples: examples.clone(),
        });
        for (thread, number) in self.threads.iter().zip(0_u32..) {
            let share = self.share.of_thread(number, threads, clients);
            let clients = (0..clients)
                .filter(|&client| share.has_client(client))
                .collect();
            thread.command(Command::Open {
                contender: contender.clone(),
                config: Arc::clone(&config),
                clients,
            });
        }
        let mut waiting = threads;
        let mut session = Session::default();
        while waiting > 0 {
            let why = match self.next_event(deadline)? {
                Event::Report(Report::Opened(seen)) => {
                    waiting -= 1;
                    session = seen.map_or(session, |seen| *seen);
                    continue;
                }
                Event::Report(Report::Lost {
                    contender: lost,
                    why,
                }) if lost == contender => why.to_string(),
                Event::Report(Report::Lost { contender, why }) => {
                    self.remember_loss(&contender, &why);
                    continue;
                }
                Event::TimeUp => {
                    format!("{clients} clients could not connect within {connect_s} s")
                }
                Event::Report(_) | Event::Stop => continue,
            };
            self.close(&contender)?;
            return refused(why);
        }
        gather_states();
        self.contenders.insert(
            contender.clone(),
            OpenContender {
                classes,
                blocks_threads: workload.blocks_threads() || in_process,
                clients,
                retries,
                lost: None,
                examples,
            },
        );
        Ok(Answer::Opened {
            contender,
            seconds: began.elapsed().as_secs_f64(),
            session,
        })
    }

    /// Drops the contender's clients on all threads; returns the counts of those that drove a slice.
    pub(super) fn close(&mut self, contender: &str) -> Result<Vec<SliceReport>, Interruption> {
        self.contenders.remove(contender);
        for thread in &self.threads {
            thread.command(Command::Close {
                contender: contender.to_owned(),
            });
        }
        let deadline = Instant::now() + PROMPT;
        let mut waiting = self.threads.len();
        let mut reports = Vec::new();
        while waiting > 0 {
            match self.next_event(deadline)? {
                Event::Report(Report::Closed) => waiting -= 1,
                Event::Report(Report::Done(report)) => reports.push(*report),
                Event::Report(Report::Lost { contender, why }) => {
                    self.remember_loss(&contender, &why);
                }
                Event::TimeUp => {
                    return Err(DriveError::Thread(
                        "it did not close its clients in time".to_owned(),
                    )
                    .into());
                }
                Event::Report(_) | Event::Stop => {}
            }
        }
        Ok(reports)
    }
}
