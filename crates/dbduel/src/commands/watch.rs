//! `dbduel watch`: the report in a browser on this machine, renewed while the contest runs. A sweep has one page,
//! which leads to those of its cells.
//!
//! It only reads the record, so it can be started and stopped at any time. Requests must carry the
//! token in the address; the server listens on 127.0.0.1 alone and answers nothing but reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;
use dbduel_judge as judge;
use dbduel_machine::interrupt::{self, Urgency};
use dbduel_machine::random::secret;
use dbduel_record::Record;
use dbduel_record::store::{EVENTS, PLAN};
use dbduel_report as report;

use super::http::{Loopback, Reply, Server};
use super::record_set::SetPlan;
use crate::console;
use crate::exit::Exit;

/// Options of `dbduel watch`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a record, a sweep or a bisection.
    pub record: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
}

/// Interval between two reads of the journal's size.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A page is rendered no more often than this: rendering takes processor time beside the contest.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// A page stays for at least this many times its rendering time.
const RENEW_REST: u32 = 20;

/// The page of a cell, as the page of its sweep links to it.
const PAGE: &str = "report.html";

/// Length of the token that a reader's address must have: 128 bits.
const TOKEN_BYTES: usize = 16;

/// Serves the report until the user ends it.
///
/// # Errors
/// When there is no record, or it cannot listen on the port.
pub fn watch(arguments: &Arguments) -> Result<Exit> {
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let address = serve(&arguments.record, arguments.port)?;
    console::print(&format!(
        "{address}\nCtrl-C stops the server; the contest continues.\n"
    ))?;
    while interrupt::urgency() == Urgency::None {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(Exit::Done)
}

/// Serves the report of the record or the record set in `dir` on a port of 127.0.0.1, 0 for a free one, until the process
/// ends; gives the address with its token.
///
/// # Errors
/// When there is neither, or it cannot listen on the port.
pub fn serve(dir: &Path, port: u16) -> Result<String> {
    let pages = Arc::new(Pages::new(dir)?);
    let token = secret(TOKEN_BYTES)?;
    let server = Server::start(Loopback::port(port), Some(token.clone()), move |path| {
        pages.reply(path)
    })?;
    Ok(format!("http://{}/?token={token}", server.address()))
}

/// The pages of one record, or of a record set and of its contests that have begun.
struct Pages {
    dir: PathBuf,
    /// Pages by the directory that they are about.
    made: Mutex<BTreeMap<PathBuf, Page>>,
}

struct Page {
    html: String,
    journal_bytes: u64,
    /// Earliest time at which it is rendered again.
    stays_until: Instant,
}

impl Pages {
    fn new(dir: &Path) -> Result<Self> {
        if SetPlan::at(dir)?.is_none() {
            Record::open(dir)?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            made: Mutex::default(),
        })
    }

    fn reply(self: &Arc<Self>, path: &str) -> Reply {
        let Some((dir, file)) = self.subject(path) else {
            return Reply::Unknown;
        };
        match file {
            "" | PAGE => match self.page(&dir) {
                Ok(html) => Reply::Text("text/html; charset=utf-8", html),
                Err(error) => Reply::Failed(format!("{error:#}")),
            },
            "events" => {
                let pages = Arc::clone(self);
                Reply::Events {
                    every: LOOK_EVERY,
                    state: Box::new(move || pages.journal_bytes(&dir)),
                }
            }
            _ => Reply::Unknown,
        }
    }

    /// The record or record set that a path is about, and the file that it asks for. The page of a set links to those of its
    /// contests.
    fn subject<'p>(&self, path: &'p str) -> Option<(PathBuf, &'p str)> {
        let path = path.strip_prefix('/')?;
        let Some((folder, file)) = path.rsplit_once('/') else {
            return Some((self.dir.clone(), path));
        };
        let contests = self.set_at(&self.dir)?.contests(&self.dir);
        let found = contests.into_iter().find_map(|(_, record)| {
            (record == self.dir.join(folder) && record.join(PLAN).is_file()).then_some(record)
        });
        found.map(|record| (record, file))
    }

    /// The plan of the set as it stands now, when `dir` is its directory and not that of a record.
    fn set_at(&self, dir: &Path) -> Option<SetPlan> {
        (dir == self.dir).then(|| SetPlan::at(dir).ok())??
    }

    /// Size of the journals behind a page, bytes.
    fn journal_bytes(&self, dir: &Path) -> u64 {
        let of_record =
            |record: &Path| fs::metadata(record.join(EVENTS)).map_or(0, |metadata| metadata.len());
        match self.set_at(dir) {
            Some(set) => {
                let contests = set.contests(dir);
                contests.iter().map(|(_, record)| of_record(record)).sum()
            }
            None => of_record(dir),
        }
    }

    fn page(&self, dir: &Path) -> Result<String> {
        let mut made = self
            .made
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let journal_bytes = self.journal_bytes(dir);
        let begun = Instant::now();
        if let Some(page) = made.get(dir)
            && (page.journal_bytes == journal_bytes || begun < page.stays_until)
        {
            return Ok(page.html.clone());
        }
        let html = match self.set_at(dir) {
            Some(set) => set.page(dir)?,
            None => page_of_record(dir)?,
        };
        let html = followed(&html, journal_bytes);
        let page = Page {
            html: html.clone(),
            journal_bytes,
            stays_until: Instant::now() + RENEW_EVERY.max(begun.elapsed() * RENEW_REST),
        };
        made.insert(dir.to_owned(), page);
        Ok(html)
    }
}

fn page_of_record(record: &Path) -> Result<String> {
    let (summary, findings) = judge::summarise(&Record::open(record)?);
    let format = report::format("html").context("this format is not built in")?;
    let options = report::Options {
        width: 80,
        colour: false,
    };
    Ok(format.render(&summary, &findings, &options).text)
}

/// The page with a script that reloads it when the journals have grown beyond `journal_bytes`, and adds the token to
/// its links. The browser keeps the scroll position.
fn followed(html: &str, journal_bytes: u64) -> String {
    let wait_ms = RENEW_EVERY.as_millis();
    let script = format!(
        "<script>(() => {{ const shown = '{journal_bytes}'; const opened = Date.now(); \
         for (const link of document.links) if (link.origin === location.origin) link.search = location.search; \
         const events = new EventSource('events' + location.search); \
         events.onmessage = (event) => {{ if (event.data !== shown) {{ events.close(); \
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
    use dbduel_record::bisect::{BISECT, step_dir};
    use dbduel_record::sweep::cell_dir;
    use dbduel_testkit::synthetic::{Scenario, write_bisection, write_sweep};
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpStream;

    struct Lab {
        _dir: tempfile::TempDir,
        journal: PathBuf,
        server: Server,
    }

    fn lab() -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let record = dir.path().join("record");
        let scenario = Scenario {
            blocks: 2,
            ..Scenario::duel()
        };
        scenario.write(&record);
        serving(dir, &record, record.join(EVENTS))
    }

    fn serving(dir: tempfile::TempDir, shown: &Path, journal: PathBuf) -> Lab {
        let pages = Arc::new(Pages::new(shown).unwrap());
        let server = Server::start(Loopback::port(0), Some("secret".to_owned()), move |path| {
            pages.reply(path)
        })
        .unwrap();
        Lab {
            _dir: dir,
            journal,
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

    /// Growth of the journal is sent to the listeners at this path.
    fn check_growth_is_announced(lab: &Lab, path: &str) {
        let request = format!("GET {path}?token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut events = ask(lab, &request);
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

    #[test]
    fn a_record_that_grows_is_announced() {
        check_growth_is_announced(&lab(), "/events");
    }

    #[test]
    fn a_bisection_has_a_page_that_gets_the_steps_begun_since() {
        let dir = tempfile::tempdir().unwrap();
        let bisection = dir.path().to_owned();
        let whole = write_bisection(&bisection);
        let write = |steps: usize| {
            let mut plan = whole.clone();
            plan.steps.truncate(steps);
            fs::write(bisection.join(BISECT), serde_json::to_vec(&plan).unwrap()).unwrap();
        };
        write(1);
        let first = step_dir(&bisection, &whole.steps[0]);
        let lab = serving(dir, &bisection, first.join(EVENTS));
        let get = |path: &str| {
            answer(
                &lab,
                &format!("GET {path}?token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            )
        };
        let page = get("/").replace("&#x2f;", "/");
        assert!(
            page.contains("href=\"steps/01/report.html\""),
            "{page:.200}"
        );
        assert!(get("/steps/02/report.html").starts_with("HTTP/1.1 404"));
        write(2);
        let step = get("/steps/02/report.html");
        assert!(step.starts_with("HTTP/1.1 200"), "{step:.200}");
        check_growth_is_announced(&lab, "/events");
    }

    #[test]
    fn a_sweep_has_one_page_that_leads_to_those_of_its_cells() {
        let dir = tempfile::tempdir().unwrap();
        let sweep = dir.path().to_owned();
        let plan = write_sweep(&sweep, &[1_000, 10_000], &[0.9, 1.1]);
        let [begun, coming] = [0, 1].map(|number| cell_dir(&sweep, &plan.cells[number]));
        fs::remove_dir_all(coming).unwrap();
        let lab = serving(dir, &sweep, begun.join(EVENTS));
        let get = |path: &str| {
            answer(
                &lab,
                &format!("GET {path}?token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            )
        };
        let cell = |number: usize| format!("/cells/{}/{PAGE}", plan.cells[number].name);
        let page = get("/");
        assert!(page.starts_with("HTTP/1.1 200"), "{page:.200}");
        assert!(page.contains(&format!("href=\"{}\"", cell(0).trim_start_matches('/'))));
        let page = get(&cell(0));
        assert!(
            page.starts_with("HTTP/1.1 200") && page.contains("<svg"),
            "{page:.200}"
        );
        for path in [&cell(1), "/cells/../report.html", "/cells//events"] {
            let page = get(path);
            assert!(page.starts_with("HTTP/1.1 404"), "{path}: {page:.80}");
        }
        check_growth_is_announced(&lab, "/events");
        let events = cell(0).replace(PAGE, "events");
        check_growth_is_announced(&lab, &events);
    }
}
