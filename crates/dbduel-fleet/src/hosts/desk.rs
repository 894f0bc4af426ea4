//! Decisions of an agent about the orchestrators that ask for its work: it works for one at a time.

use std::time::Duration;

use anyhow::Result;
use dbduel_judge::IDENTITY;
use dbduel_lab::outage::SILENCE_MAX;
use dbduel_record::facts::ServerHost;

use super::{AttachReply, AttachRequest, HostWork, PROTOCOL};

/// The most threads of a load process.
const THREADS_MAX: u32 = 1024;

/// A process at work, and the link to its orchestrator.
pub(super) trait Work: Sized {
    /// True when the process has ended.
    fn has_ended(&mut self) -> bool;

    /// True when lines of the link were lost.
    fn is_broken(&self) -> bool;

    /// Time since the orchestrator was heard last.
    fn silent_for(&self) -> Duration;

    /// Ends the process.
    fn end(self);
}

/// What an agent starts work with.
pub(super) trait Service<W: Work> {
    /// True when the agent offers such work.
    fn fits(&self, work: &HostWork) -> bool;

    /// Starts the process.
    fn start(&self, request: &AttachRequest) -> Result<W>;
}

/// The work of an agent, if it has any.
pub(super) struct Desk<W> {
    host: ServerHost,
    session: Option<(AttachRequest, W)>,
    /// Identity of the last session that ended.
    ended: String,
}

impl<W: Work> Desk<W> {
    pub fn new(host: ServerHost) -> Self {
        Self {
            host,
            session: None,
            ended: String::new(),
        }
    }

    /// The request that it works for.
    pub fn request(&self) -> Option<&AttachRequest> {
        self.session.as_ref().map(|(request, _)| request)
    }

    /// Identity of the session; empty for none.
    pub fn session(&self) -> String {
        let session = self.request().map(|request| request.session.clone());
        session.unwrap_or_default()
    }

    /// Takes the work whose process has ended, or whose orchestrator is gone.
    pub fn take_over(&mut self) -> Option<(AttachRequest, W)> {
        let taken = self.session.take_if(|(_, work)| {
            work.has_ended() || work.is_broken() || work.silent_for() > SILENCE_MAX
        });
        if let Some((request, _)) = &taken {
            self.ended.clone_from(&request.session);
        }
        taken
    }

    /// Takes the work in any case.
    pub fn take(&mut self) -> Option<(AttachRequest, W)> {
        self.session.take()
    }

    /// Answers a link that asks for work.
    pub fn attach(&mut self, service: &impl Service<W>, request: &[u8]) -> AttachReply {
        let refused = |why: String| AttachReply::Refused { why };
        let request: AttachRequest = match serde_json::from_slice(request) {
            Ok(request) => request,
            Err(error) => {
                return refused(format!(
                    "its agent does not understand the request: {error}"
                ));
            }
        };
        if let Some(why) = objection(service, &request) {
            return refused(why);
        }
        // Its link may have the last line of that process, so the lines of another would not follow.
        if request.session == self.ended {
            return refused(
                "its process ended while it was attached; resume the contest".to_owned(),
            );
        }
        let attached = AttachReply::Attached {
            host: Box::new(self.host.clone()),
        };
        if let Some((current, work)) = &self.session {
            // The reply to the first request was lost.
            if current.session == request.session {
                return attached;
            }
            if current.orchestrator != request.orchestrator {
                return AttachReply::Busy {
                    contest: current.contest.clone(),
                    silent_s: work.silent_for().as_secs_f64(),
                };
            }
        }
        if let Some((_, replaced)) = self.session.take() {
            replaced.end();
        }
        match service.start(&request) {
            Ok(work) => {
                self.session = Some((request, work));
                attached
            }
            Err(error) => refused(format!("its agent cannot start its process: {error:#}")),
        }
    }
}

/// Why the agent cannot work for a request, if it cannot.
fn objection<W: Work>(service: &impl Service<W>, request: &AttachRequest) -> Option<String> {
    if request.protocol != PROTOCOL {
        return Some(format!(
            "its agent is dbduel {IDENTITY} with contest protocol {PROTOCOL}, and this is dbduel \
             {} with protocol {}; use one version on all machines",
            request.dbduel, request.protocol
        ));
    }
    if !service.fits(&request.work) {
        return Some("its agent offers other work".to_owned());
    }
    if let HostWork::Load {
        host,
        hosts,
        threads,
        ..
    } = request.work
        && (threads > THREADS_MAX || host >= hosts)
    {
        return Some(
            "its agent accepts up to 1024 threads, and a host number below the number of hosts"
                .to_owned(),
        );
    }
    None
}
