//! Pairs runs into contests: servers are compared when their runs share the remaining path.

use std::path::Path;

use dbduel_audit::{Case, Machine, ServerEvidence, Stage, is_of_the_instance};

use super::names::{is_repeat, server_of, version_of};
use super::runs::{LeftOut, Run};
use crate::includes::Includes;
use crate::{Gathered, Origin};

/// Settings that one or more runs of a server share.
#[derive(Debug, Clone)]
pub struct Distinct {
    /// Evidence of the first run.
    pub evidence: ServerEvidence,
    /// Places of the runs.
    pub places: Vec<String>,
}

/// The distinct settings among some evidence, in order.
#[must_use]
pub fn distinct(evidence: Vec<ServerEvidence>) -> Vec<Distinct> {
    let runs = evidence.into_iter().map(|one| (String::new(), one));
    distinct_runs(runs)
}

fn distinct_runs(runs: impl Iterator<Item = (String, ServerEvidence)>) -> Vec<Distinct> {
    let mut found: Vec<Distinct> = Vec::new();
    for (place, evidence) in runs {
        match found
            .iter_mut()
            .find(|known| is_set_alike(&known.evidence, &evidence))
        {
            Some(known) => known.places.push(place),
            None => found.push(Distinct {
                evidence,
                places: vec![place],
            }),
        }
    }
    found
}

/// True when two runs have the same version and settings; ports, places and times are no settings.
fn is_set_alike(one: &ServerEvidence, other: &ServerEvidence) -> bool {
    let settings = |evidence: &ServerEvidence| {
        let variables = evidence.variables.clone().into_iter();
        let variables = variables.filter(|(name, _)| !is_of_the_instance(name));
        variables.collect::<Vec<_>>()
    };
    let refused = |evidence: &ServerEvidence| {
        let refused = evidence.refused.iter();
        refused.map(|one| one.why.clone()).collect::<Vec<_>>()
    };
    let missing = |evidence: &ServerEvidence| {
        let missing = evidence.missing_includes.iter();
        missing.map(|one| one.target.clone()).collect::<Vec<_>>()
    };
    (one.product, one.version) == (other.product, other.version)
        && one.schema == other.schema
        && refused(one) == refused(other)
        && missing(one) == missing(other)
        && settings(one) == settings(other)
}

/// Reason for leaving out a server without a counterpart.
const NO_PARTNER: &str = "nothing to compare it with";

/// A server with its runs.
struct Server {
    /// Its name in the audit.
    name: String,
    /// Folders from the directory to it.
    place: Vec<String>,
    /// True when it is below the folder that names it, whose other folders are of the same server.
    is_in_own_folder: bool,
    /// The path without the part that names the server; servers that share it are compared. `None` where no name
    /// contains a product: then it is compared with the servers in the same folder.
    rest: Option<Vec<String>>,
    runs: Vec<(String, ServerEvidence)>,
}

/// The contests between some runs; contests with the same settings on every side are merged.
pub fn of(
    directory: &Path,
    includes: &Includes,
    runs: Vec<Run>,
    left_out: &mut LeftOut,
) -> Vec<Gathered> {
    let servers = servers(directory, includes, runs, left_out);
    let mut groups: Vec<(Vec<String>, Vec<Server>)> = Vec::new();
    let (named, unnamed): (Vec<Server>, Vec<Server>) = servers
        .into_iter()
        .partition(|server| server.rest.is_some());
    for server in named {
        let rest = server.rest.clone().unwrap_or_default();
        join(&mut groups, rest, server);
    }
    // What has no partner by its name is compared with its neighbours, too.
    let (mut groups, single): (Vec<_>, Vec<_>) = groups
        .into_iter()
        .partition(|(_, servers)| servers.len() > 1);
    let single = single.into_iter().flat_map(|(_, servers)| servers);
    for server in single.chain(unnamed) {
        if server.is_in_own_folder {
            left_out.add(&server.place.join("/"), NO_PARTNER.to_owned());
            continue;
        }
        let folder = server.place[..server.place.len().saturating_sub(1)].to_vec();
        join(&mut groups, folder, server);
    }
    let mut contests: Vec<Gathered> = Vec::new();
    for (place, servers) in groups {
        let Some(contest) = contest(directory, &place, servers, left_out) else {
            continue;
        };
        match contests.iter_mut().find(|known| is_same(known, &contest)) {
            Some(known) => {
                known.alike += 1;
                for (known, more) in known.runs.iter_mut().zip(contest.runs) {
                    *known += more;
                }
            }
            None => contests.push(contest),
        }
    }
    contests
}

fn join(groups: &mut Vec<(Vec<String>, Vec<Server>)>, place: Vec<String>, server: Server) {
    match groups.iter_mut().find(|(known, _)| *known == place) {
        Some((_, servers)) => servers.push(server),
        None => groups.push((place, vec![server])),
    }
}

fn servers(
    directory: &Path,
    includes: &Includes,
    runs: Vec<Run>,
    left_out: &mut LeftOut,
) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    for run in runs {
        let place = run.place.join("/");
        let shown = if place.is_empty() {
            directory.display().to_string()
        } else {
            place.clone()
        };
        let evidence = match run
            .files
            .evidence(&shown, (None, None), Machine::default(), includes)
        {
            Ok(evidence) => evidence,
            Err(error) => {
                left_out.add(&shown, format!("{error:#}"));
                continue;
            }
        };
        let server = Server::of(&run.place, run.depth, &evidence);
        let known = servers
            .iter_mut()
            .find(|known| (&known.name, &known.place) == (&server.name, &server.place));
        match known {
            Some(known) => known.runs.push((place, evidence)),
            None => servers.push(Server {
                runs: vec![(place, evidence)],
                ..server
            }),
        }
    }
    servers
}

impl Server {
    /// The server of a run at this place. Folders below `depth` have no siblings.
    fn of(place: &[String], depth: usize, evidence: &ServerEvidence) -> Self {
        let repeats = place.iter().rev().take_while(|name| is_repeat(name));
        let folders = &place[..place.len() - repeats.count()];
        let runs = Vec::new();
        // Runs that only have numbers are named after what runs in them.
        if folders.is_empty() && !place.is_empty() {
            let (product, version) = (evidence.product.word(), evidence.version);
            return Server {
                name: format!("{product}-{version}"),
                place: Vec::new(),
                is_in_own_folder: false,
                rest: Some(Vec::new()),
                runs,
            };
        }
        let named: Vec<_> = folders.iter().map(|name| server_of(name)).collect();
        let of = |has_version: bool| {
            let is_named = |one: &Option<super::names::NamedServer>| {
                one.as_ref()
                    .is_some_and(|one| !has_version || one.version.is_some())
            };
            named.iter().rposition(is_named)
        };
        let at = of(true).or_else(|| of(false));
        match at.and_then(|at| Some((at, named[at].as_ref()?))) {
            Some((at, server)) => {
                let mut rest = folders.to_vec();
                rest.remove(at);
                let mut name = server.name.clone();
                // `mysql/8.4.8` is one name in two folders.
                if server.version.is_none()
                    && let Some(version) = rest.get(at).filter(|next| version_of(next).is_some())
                {
                    name = format!("{name}-{version}");
                    rest.remove(at);
                }
                if !server.rest.is_empty() {
                    rest.insert(at, server.rest.clone());
                }
                Server {
                    name,
                    place: folders.to_vec(),
                    is_in_own_folder: at + 1 < folders.len(),
                    rest: Some(rest),
                    runs,
                }
            }
            None => {
                let place = &folders[..depth.min(folders.len())];
                Server {
                    name: place.last().cloned().unwrap_or_default(),
                    place: place.to_vec(),
                    is_in_own_folder: false,
                    rest: None,
                    runs,
                }
            }
        }
    }
}

/// The contest between some servers; `None` when fewer than two can be used.
fn contest(
    directory: &Path,
    place: &[String],
    servers: Vec<Server>,
    left_out: &mut LeftOut,
) -> Option<Gathered> {
    let mut contenders = Vec::new();
    let mut runs = Vec::new();
    for server in servers {
        let shown = server.place.join("/");
        let mut variants = distinct_runs(server.runs.into_iter());
        let versions = |one: &Distinct| (one.evidence.product, one.evidence.version);
        if let [first, others @ ..] = variants.as_slice()
            && let Some(other) = others
                .iter()
                .find(|other| versions(other) != versions(first))
        {
            let reason = format!(
                "files of two servers, {} and {}; use a separate directory for each server's files",
                first.evidence.version_text, other.evidence.version_text
            );
            left_out.add(&shown, reason);
            continue;
        }
        // The settings of most runs come first and keep the server's name.
        variants.sort_by_key(|variant| std::cmp::Reverse(variant.places.len()));
        for (number, mut variant) in variants.into_iter().enumerate() {
            variant.evidence.name = match number {
                0 => server.name.clone(),
                _ => format!("{} ({})", server.name, variant.places[0]),
            };
            if let more @ 1.. = variant.places.len() - 1 {
                let source = &mut variant.evidence.source;
                *source = format!("{source}, and {more} more runs with these settings");
            }
            runs.push(variant.places.len());
            contenders.push(variant.evidence);
        }
    }
    match contenders.as_slice() {
        [] => None,
        [only] => {
            left_out.add(&only.name, NO_PARTNER.to_owned());
            None
        }
        _ => {
            let mut case = Case::of(contenders);
            case.stage = Stage::Results;
            let title = place
                .iter()
                .fold(directory.to_owned(), |path, name| path.join(name));
            Some(Gathered {
                title: title.display().to_string(),
                origin: Origin::Servers(vec![None; case.contenders.len()]),
                runs,
                alike: 0,
                case,
            })
        }
    }
}

/// True when two contests compare the same servers with the same settings, and neither has evidence of activity.
fn is_same(one: &Gathered, other: &Gathered) -> bool {
    let pairs = one.case.contenders.iter().zip(&other.case.contenders);
    let has_counters = |evidence: &ServerEvidence| {
        !evidence.status_before.is_empty() || !evidence.status_after.is_empty()
    };
    one.case.contenders.len() == other.case.contenders.len()
        && pairs.into_iter().all(|(one, other)| {
            one.name == other.name
                && is_set_alike(one, other)
                && !has_counters(one)
                && !has_counters(other)
        })
}
