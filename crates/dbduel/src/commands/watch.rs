//! `dbduel watch`: the report in a browser on this machine, renewed while the contest runs.
//!
//! It only reads the record, so it can be started and stopped at any time. Whoever asks must know the
//! token in the address; the server listens on 127.0.0.1 alone and answers nothing but reads.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use dbduel_record::Record;

use super::http::{Loopback, Reply, Server};
use crate::chance::secret;
use crate::cli;
use crate::console;
use crate::exit::Exit;
use crate::interrupt::{self, Urgency};
use crate::judge;
use crate::report;

/// Between two looks at the journal.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A page is not made anew more often than this: that takes processor time beside the contest.
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Length of the token that a reader's address must have: 128 bits.
const TOKEN_BYTES: usize = 16;

/// Follows the record until the user has enough.
///
/// # Errors
/// When there is no record, or the address cannot be listened on.
pub fn watch(arguments: &cli::Watch) -> Result<Exit> {
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let address = serve(&arguments.record, arguments.port)?;
    console::print(&format!(
        "{address}\nCtrl-C ends this; the contest goes on.\n"
    ))?;
    while interrupt::urgency() == Urgency::None {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(Exit::Done)
}

/// Serves the report of `record` on a port of 127.0.0.1, 0 for a free one, until the process ends; gives the
/// address with its token.
///
/// # Errors
/// When there is no record, or the port cannot be listened on.
pub fn serve(record: &Path, port: u16) -> Result<String> {
    let pages = Arc::new(Pages::new(record)?);
    let token = secret(TOKEN_BYTES)?;
    let server = Server::start(Loopback::port(port), Some(token.clone()), move |path| {
        pages.reply(path)
    })?;
    Ok(format!("http://{}/?token={token}", server.address()))
}

/// The pages of one record.
struct Pages {
    record: std::path::PathBuf,
    last: Mutex<Option<Page>>,
}

struct Page {
    html: String,
    journal_bytes: u64,
    made: Instant,
}

impl Pages {
    fn new(record: &Path) -> Result<Self> {
        Record::open(record)?;
        Ok(Self {
            record: record.to_owned(),
            last: Mutex::new(None),
        })
    }

    fn reply(self: &Arc<Self>, path: &str) -> Reply {
        match path {
            "/" => match self.page() {
                Ok(html) => Reply::Text("text/html; charset=utf-8", html),
                Err(error) => Reply::Failed(format!("{error:#}")),
            },
            "/events" => {
                let pages = Arc::clone(self);
                Reply::Events {
                    every: LOOK_EVERY,
                    state: Box::new(move || pages.journal_bytes()),
                }
            }
            _ => Reply::Unknown,
        }
    }

    fn journal_bytes(&self) -> u64 {
        let path = self.record.join(dbduel_record::store::EVENTS);
        fs::metadata(path).map_or(0, |metadata| metadata.len())
    }

    fn page(&self) -> Result<String> {
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let journal_bytes = self.journal_bytes();
        if let Some(page) = &*last
            && (page.journal_bytes == journal_bytes || page.made.elapsed() < RENEW_EVERY)
        {
            return Ok(page.html.clone());
        }
        let (summary, findings) = judge::summarise(&Record::open(&self.record)?);
        let format = report::format("html").context("this format is not built in")?;
        let options = report::Options {
            width: 80,
            colour: false,
        };
        let html = followed(&format.render(&summary, &findings, &options).text);
        *last = Some(Page {
            html: html.clone(),
            journal_bytes,
            made: Instant::now(),
        });
        Ok(html)
    }
}

/// The page with a script that asks for it again when the record has grown. The browser keeps the place
/// on the page.
fn followed(html: &str) -> String {
    let wait_ms = RENEW_EVERY.as_millis();
    let script = format!(
        "<script>(() => {{ let first = null; const opened = Date.now(); \
         const events = new EventSource('/events' + location.search); \
         events.onmessage = (event) => {{ if (first === null) first = event.data; \
         else if (event.data !== first) {{ events.close(); \
         setTimeout(() => location.reload(), Math.max(0, {wait_ms} - (Date.now() - opened))); }} }}; }})();</script>\n</body>"
    );
    match html.rsplit_once("</body>") {
        Some((page, end)) => format!("{page}{script}{end}"),
        None => html.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::synthetic::Scenario;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpStream;

    struct Lab {
        _dir: tempfile::TempDir,
        journal: std::path::PathBuf,
        server: Server,
    }

    fn lab() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("record");
        Scenario {
            blocks: 2,
            ..Scenario::duel()
        }
        .write(&record);
        let pages = Arc::new(Pages::new(&record).unwrap());
        let server = Server::start(Loopback::port(0), Some("secret".to_owned()), move |path| {
            pages.reply(path)
        })
        .unwrap();
        Lab {
            _dir: dir,
            journal: record.join(dbduel_record::store::EVENTS),
            server,
        }
    }

    fn ask(lab: &Lab, request: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(lab.server.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    fn answer(lab: &Lab, request: &str) -> String {
        let mut text = String::new();
        ask(lab, request).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_page_is_shown_to_whoever_knows_the_token_and_to_nobody_else() {
        let lab = lab();
        let host = "Host: 127.0.0.1\r\n\r\n";
        let page = answer(&lab, &format!("GET /?token=secret HTTP/1.1\r\n{host}"));
        assert!(page.starts_with("HTTP/1.1 200"), "{page:.200}");
        assert!(page.contains("EventSource"));
        for (request, status) in [
            (format!("GET / HTTP/1.1\r\n{host}"), "403"),
            (format!("GET /?token=secreT HTTP/1.1\r\n{host}"), "403"),
            (format!("POST /?token=secret HTTP/1.1\r\n{host}"), "405"),
            (
                format!("GET /etc/passwd?token=secret HTTP/1.1\r\n{host}"),
                "404",
            ),
            // A page elsewhere that has its own name point here must not read ours.
            (
                "GET /?token=secret HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
                "403",
            ),
            ("nonsense\r\n\r\n".to_owned(), "400"),
        ] {
            let text = answer(&lab, &request);
            assert!(
                text.starts_with(&format!("HTTP/1.1 {status}")),
                "{request}: {text:.80}"
            );
        }
    }

    #[test]
    fn a_record_that_grows_is_announced() {
        let lab = lab();
        let mut events = ask(
            &lab,
            "GET /events?token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n",
        );
        let mut next = || {
            let mut line = String::new();
            while !line.starts_with("data:") {
                line.clear();
                assert!(events.read_line(&mut line).unwrap() > 0, "the stream ended");
            }
            line
        };
        let first = next();
        fs::OpenOptions::new()
            .append(true)
            .open(&lab.journal)
            .unwrap()
            .write_all(b"{}\n")
            .unwrap();
        assert_ne!(next(), first);
    }
}
