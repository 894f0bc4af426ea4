//! Gathers evidence for an audit from dumps, option files, published directories, records and running servers. Starts
//! no server and judges nothing.
//!
//! Files may come from strangers: each is read with limits on size, lines and nesting, and an error names the file and
//! line.

pub mod dump;
pub mod facts;
mod includes;
pub mod live;
pub mod login;
pub mod option_file;
pub mod planned;
mod postgresql;
mod program_version;
pub mod published;
mod sqlite;
pub mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_audit::{
    Case, Machine, Product, ServerEvidence, Stage, Version, version_among, version_variable,
};
use dbduel_driver::address::ServerAddress;
use dbduel_driver::{ConnectOptions, SessionStart, TlsMode};
use dbduel_machine::host;
use dbduel_record::{Record, store};

use crate::login::PasswordSource;
use dump::Content;
use includes::Includes;
use text::TextError;

/// One side of an audit as the user names it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// A file, a directory or an address.
    pub target: String,
    /// Its name in the audit.
    pub name: String,
    /// Its product, where the files do not say it.
    pub product: Option<Product>,
    /// Its version, where the files do not say it.
    pub version: Option<Version>,
    /// File that holds the password of a running server.
    pub password_file: Option<PathBuf>,
    /// TLS mode for a running server.
    pub tls: TlsMode,
    /// The machine that an option file is for, as far as described.
    pub machine: Machine,
    /// Directory that option files may include from, besides their own.
    pub root: Option<PathBuf>,
}

/// A case, and its origin.
#[derive(Debug)]
pub struct Gathered {
    /// Title where there are several cases.
    pub title: String,
    /// The evidence.
    pub case: Case,
    /// Starting point of an equalised experiment.
    pub origin: Origin,
    /// Number of runs behind each contender of published results; empty otherwise.
    pub runs: Vec<usize>,
    /// Further published contests with the same servers and settings.
    pub alike: usize,
}

/// Starting point of an experiment in which the contenders are equal.
#[derive(Debug)]
pub enum Origin {
    /// An experiment file and its text.
    Experiment {
        /// The file.
        path: PathBuf,
        /// Its content.
        text: String,
    },
    /// Servers without an experiment; of each running one its address in the syntax of experiments.
    Servers(Vec<Option<String>>),
}

/// Makes the case of a record, with the verdicts on it.
pub type CaseOf = fn(&Record) -> Case;

impl Gathered {
    /// The case of a record, whose experiment is in it.
    #[must_use]
    pub fn of_record(record: &Record, title: String, case_of: CaseOf) -> Self {
        let path = record.dir.join(store::EXPERIMENT);
        let case = case_of(record);
        let origin = match text::whole(&path) {
            Ok(text) => Origin::Experiment { path, text },
            Err(_) => Origin::Servers(vec![None; case.contenders.len()]),
        };
        Gathered {
            title,
            case,
            origin,
            runs: Vec::new(),
            alike: 0,
        }
    }
}

/// The case of two subjects.
///
/// # Errors
/// When a subject cannot be read or its server is unknown.
pub fn pair(subjects: &[Subject; 2]) -> Result<Gathered> {
    let mut contenders = Vec::new();
    let mut is_published = false;
    for subject in subjects {
        let evidence =
            one(subject).with_context(|| format!("could not use `{}`", subject.target))?;
        is_published |= Path::new(&subject.target).is_dir();
        contenders.push(evidence);
    }
    if contenders[0].name == contenders[1].name {
        for (contender, letter) in contenders.iter_mut().zip(["a", "b"]) {
            contender.name = format!("{letter}: {}", contender.name);
        }
    }
    let mut case = Case::of(contenders);
    if is_published {
        case.stage = Stage::Results;
    }
    if subjects
        .iter()
        .all(|subject| is_on_this_machine(&subject.target))
    {
        let data = case.contenders[0]
            .variables
            .get("datadir")
            .map_or("/", String::as_str);
        case.host = Some(host::read(Path::new(data)));
    }
    let addresses = subjects
        .iter()
        .map(|subject| is_address(&subject.target).then(|| subject.target.clone()));
    Ok(Gathered {
        title: String::new(),
        case,
        origin: Origin::Servers(addresses.collect()),
        runs: Vec::new(),
        alike: 0,
    })
}

/// True when `target` is the address of a running server.
#[must_use]
pub fn is_address(target: &str) -> bool {
    ServerAddress::is_meant_by(target)
}

/// True for the address of a running server whose machine is this one.
fn is_on_this_machine(target: &str) -> bool {
    ServerAddress::parse(target).is_ok_and(|address| address.place.is_on_this_machine())
}

/// The contests in a directory, which is a record or published results; the latter may contain records, of which
/// `case_of` makes cases. Also returns what was left out, and why. Option files in it include from it and from `root`.
///
/// # Errors
/// When it holds no contest.
pub fn directory(
    path: &Path,
    root: Option<&Path>,
    case_of: CaseOf,
) -> Result<(Vec<Gathered>, Vec<String>)> {
    if path.join(store::PLAN).is_file() {
        let record = Record::open(path)?;
        let only = Gathered::of_record(&record, String::new(), case_of);
        return Ok((vec![only], Vec::new()));
    }
    let published::Published {
        contests,
        left_out,
        refused,
    } = published::read(path, root, case_of)?;
    if contests.is_empty() {
        let found = match left_out.len() {
            0 => "no server's variables or settings",
            _ => "no two servers to compare",
        };
        let reasons: String = left_out
            .iter()
            .map(|reason| format!("\n  {reason}"))
            .collect();
        bail!(
            "found {found} in `{}`; use a separate directory for each server's files, or name both servers{}{reasons}",
            path.display(),
            published::besides(&refused)
        );
    }
    Ok((contests, left_out))
}

/// A file and its first line with content, for messages.
fn first_line(path: &Path) -> Result<String, TextError> {
    let lines = text::lines(path)?;
    let mut numbered = lines.iter().enumerate();
    let first = numbered.find(|(_, line)| !line.trim().is_empty());
    let shown = path.display();
    Ok(match first {
        Some((index, line)) => {
            let line: String = line.trim().chars().take(60).collect();
            format!("`{shown}`, from line {} (`{line}`) on,", index + 1)
        }
        None => format!("`{shown}`, an empty file,"),
    })
}

fn one(subject: &Subject) -> Result<ServerEvidence> {
    if is_address(&subject.target) {
        let address = ServerAddress::parse(&subject.target)?;
        let file = subject.password_file.as_deref();
        let credentials = login::credentials(&address, file, Some(&subject.name))?;
        let options = ConnectOptions {
            tls: subject.tls.clone(),
            // Its clients need not be ours.
            session: SessionStart::AsServer,
            ..ConnectOptions::default()
        };
        let source = PasswordSource::Options("--password-file-a, --password-file-b");
        return live::read(&subject.name, &address, &credentials, &options, source);
    }
    let path = Path::new(&subject.target);
    if path.is_dir() {
        return published::contender(path, subject);
    }
    let content = match dump::read(path) {
        // A file whose product is named is one of that product, though no setting in it is known.
        Err(TextError::Line { .. }) | Ok(Content::Other) if subject.product.is_some() => {
            Content::OptionFile
        }
        Ok(Content::Persisted(_)) if subject.product == Some(Product::PostgreSql) => {
            Content::OptionFile
        }
        content => content?,
    };
    let mut evidence = match content {
        Content::Variables(mut variables) => {
            if let (Some(product), Some(version)) = (subject.product, subject.version)
                && version_among(&variables).is_none()
            {
                variables.insert(version_variable(product).to_owned(), version.to_string());
            }
            ServerEvidence::of_variables(&subject.name, variables).with_context(|| {
                format!(
                    "`{}` has variables but no `version` (PostgreSQL: `server_version`, SQLite: `sqlite_version`), so its server is unknown; add the row, or give product and version, for example --product-a sqlite --version-a 3.46.1",
                    path.display()
                )
            })?
        }
        Content::OptionFile => {
            let includes = Includes::beside(path, subject.root.as_deref());
            let settings = option_file::read(path, subject.product, subject.version, &includes)?;
            let Subject {
                name,
                product,
                version,
                machine,
                ..
            } = subject;
            option_file::evidence(name, &settings, *product, *version, *machine)?
        }
        other => bail!(
            "{} is {}; give the output of SHOW GLOBAL VARIABLES, SHOW ALL or SQLite PRAGMAs, an option file (its product with --product-a or --product-b), a directory or an address",
            first_line(path)?,
            other.what()
        ),
    };
    if !evidence.is_predicted {
        evidence.source = path.display().to_string();
    }
    Ok(evidence)
}
