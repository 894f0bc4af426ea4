//! One client: the script's coroutine, driven one event at a time.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use dbduel_client::tally::Class;
use dbduel_client::{Begin, Client, ClientContext, Duty};
use dbduel_driver::{ClientConnection, ErrorClass, LostError, ServerError, StatementError};
use dbduel_lua::{Context, Event, Resume, RetryDeadline, ScriptError, Session};

use super::confine;
use super::settings::{Server, classes, find, settings, written_options};

/// The class of transactions that called no function of a class.
const UNNAMED: usize = 0;

/// The stream of events of one client.
pub(super) struct ScriptClient {
    session: Session,
    /// The pending answer to the script's last request.
    resume: Option<Resume>,
    /// An event has begun, so the next request for one means that it is done.
    in_event: bool,
    /// Some of the script's functions are classes.
    has_classes: bool,
    /// An error raised while the class was determined.
    failure: Option<ScriptError>,
}

impl Client for ScriptClient {
    type Options = ();

    async fn open(
        conn: &mut ClientConnection,
        (): &(),
        context: &ClientContext,
    ) -> Result<Self, StatementError> {
        let classes = classes(&context.config.parameters);
        match open(conn, context, &classes).await {
            Ok(session) => Ok(ScriptClient {
                session,
                resume: Some(Resume::with(true)),
                in_event: false,
                has_classes: !classes.is_empty(),
                failure: None,
            }),
            Err(ScriptError::Lost(lost)) => Err(lost.into()),
            Err(error) => Err(script(&error)),
        }
    }

    fn begin(&mut self, begin: Begin) {
        self.session.seed(begin.seed);
    }

    /// Runs the script up to its first statement, or up to the function that names a class.
    fn draw(&mut self) -> Class {
        if !self.has_classes {
            return Class(UNNAMED);
        }
        while let Some(resume) = self.resume.take() {
            match self.session.look_ahead(resume, self.in_event) {
                Ok(Some(Event::Class(number))) => {
                    self.resume = Some(Resume::with(true));
                    return Class(number);
                }
                Ok(Some(event)) => {
                    self.in_event |= matches!(event, Event::Next | Event::Start);
                    self.resume = Some(Resume::with(true));
                }
                Ok(None) => {}
                Err(error) => self.failure = Some(error),
            }
        }
        Class(UNNAMED)
    }

    async fn transaction(
        &mut self,
        _class: Class,
        conn: &mut ClientConnection,
    ) -> Result<(), StatementError> {
        let mut resume = self.resume.take().unwrap_or_else(|| Resume::with(true));
        loop {
            let went_on = match self.failure.take() {
                Some(error) => Err(error),
                None => self.session.go_on(resume, &mut Some(&mut *conn)).await,
            };
            let event = match went_on {
                Ok(event) => event,
                // Nothing is left that could go on.
                Err(error) => {
                    return Err(match self.session.take_lost() {
                        Some(lost) => lost.into(),
                        None => script(&error),
                    });
                }
            };
            resume = Resume::with(true);
            match event {
                // The answer begins the next event, so the client stays in one.
                Event::Next if self.in_event => {
                    self.resume = Some(resume);
                    return Ok(());
                }
                Event::Stop if self.in_event => {
                    self.in_event = false;
                    self.resume = Some(resume);
                    return Ok(());
                }
                Event::Next | Event::Start => self.in_event = true,
                Event::More | Event::Stop | Event::Ready | Event::Class(_) => {}
                Event::Restart(error) => {
                    self.resume = Some(resume);
                    return Err(match (self.session.take_lost(), error) {
                        (Some(lost), _) => lost.into(),
                        (None, Some(error)) => to_be_retried(error),
                        (None, None) => ended("asked for a restart without an error"),
                    });
                }
                Event::Failed(error) => {
                    self.in_event = false;
                    self.resume = Some(resume);
                    return Err(self.failure(*error));
                }
                Event::Abandon | Event::Finished | Event::Done(_) => {
                    return Err(ended("left its event loop; under load it must not end"));
                }
            }
        }
    }
}

impl ScriptClient {
    /// A server's error fails the transaction; a broken connection or an error of the script ends the client.
    fn failure(&mut self, error: ScriptError) -> StatementError {
        if let Some(lost) = self.session.take_lost() {
            return lost.into();
        }
        match error {
            ScriptError::Raised {
                sql: Some(error), ..
            } => (*error).into(),
            ScriptError::Lost(lost) => lost.into(),
            error => script(&error),
        }
    }
}

/// Opens the client's session, ready for its event loop.
async fn open(
    conn: &mut ClientConnection,
    client_context: &ClientContext,
    classes: &[String],
) -> Result<Session, ScriptError> {
    let ClientContext {
        client,
        token,
        reactor,
        config,
        ..
    } = client_context;
    let server = Server {
        dialect: config.dialect,
        address: &config.address,
        credentials: &config.credentials,
        database: &config.database,
        tls: config.tls.mode(),
    };
    let parameters = &config.parameters;
    let mut settings = settings(parameters, find(parameters)?, "run", Some(&server));
    if matches!(client_context.duty, Duty::Count(_)) {
        confine(&mut settings);
    }
    let context = Context::new(settings, &written_options(parameters));
    let context = Rc::new(context.with_sequence(Arc::clone(&config.sequence)));
    // No grace: the next slice is another contender's.
    let retry_deadline = RetryDeadline::until(client_context.over_at(), Duration::ZERO);
    let (reactor, conn) = (Rc::clone(reactor), &mut Some(conn));
    let mut session = Session::new(context, *client, None, retry_deadline, reactor, *token)?;
    session.load(conn).await?;
    session.name_classes(classes, conn).await?;
    let mut resume = session.begin(*client)?;
    while !matches!(session.go_on(resume, conn).await?, Event::Ready) {
        resume = Resume::with(false);
    }
    Ok(session)
}

fn script(error: &ScriptError) -> StatementError {
    LostError::Script {
        why: error.message(),
    }
    .into()
}

/// An error after which the script asks for its event again, as one that is retried.
fn to_be_retried(error: ServerError) -> StatementError {
    let class = ErrorClass::Conflict;
    StatementError::Server(ServerError { class, ..error })
}

fn ended(what: &str) -> StatementError {
    let why = format!("it {what}");
    LostError::Script { why }.into()
}
