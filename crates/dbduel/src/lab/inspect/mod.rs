//! Gathers evidence for an audit: from dumps, option files, published directories, records and running
//! servers. Starts nothing and judges nothing.
//!
//! Files are other people's: each is read with bounds on size, lines and nesting, and what is wrong
//! with one is an error with its file and line.

pub mod dump;
pub mod live;
pub mod option_file;
pub mod planned;
pub mod published;
pub mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_load::address::Address;
use dbduel_record::{Record, store};

use crate::judge::audit::{Case, Product, ServerEvidence, Stage, Version, case_of};
use crate::lab::host;
use dump::Content;

/// One side of an audit as a person names it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// A file, a directory or an address.
    pub target: String,
    /// What to call it.
    pub name: String,
    /// Its product, where nothing in the files says so.
    pub product: Option<Product>,
    /// Its version, where nothing in the files says so.
    pub version: Option<Version>,
    /// File that holds the password of a running server.
    pub password_file: Option<PathBuf>,
}

/// The case that two subjects make.
///
/// # Errors
/// When a subject cannot be read or does not say what server it is.
pub fn pair(subjects: &[Subject; 2]) -> Result<Case> {
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
    Ok(case)
}

/// True for the address of a running server whose machine is this one.
fn is_on_this_machine(target: &str) -> bool {
    match Address::parse_with_user(target) {
        Ok((Address::Unix { .. }, _)) => true,
        Ok((Address::Tcp { host, .. }, _)) => {
            matches!(host.as_str(), "127.0.0.1" | "::1" | "localhost")
        }
        Err(_) => false,
    }
}

/// The case that a directory makes by itself: a record, or somebody's published results.
///
/// # Errors
/// When it holds no two contenders.
pub fn directory(path: &Path) -> Result<Case> {
    if path.join(store::PLAN).is_file() {
        return Ok(case_of(&Record::open(path)?));
    }
    let published::Published {
        contenders,
        refused,
    } = published::read(path)?;
    if contenders.len() < 2 {
        let found = match contenders.first() {
            None => "no server's variables or settings".to_owned(),
            Some(only) => format!("only `{}`", only.name),
        };
        bail!(
            "found {found} in `{}`; an audit compares at least two: put the files of each server into a directory of \
             its own, or name both{}",
            path.display(),
            published::besides(&refused)
        );
    }
    let mut case = Case::of(contenders);
    case.stage = Stage::Results;
    Ok(case)
}

fn one(subject: &Subject) -> Result<ServerEvidence> {
    if subject.target.starts_with("tcp://") || subject.target.starts_with("unix:") {
        let (address, user) = Address::parse_with_user(&subject.target)?;
        return live::read(
            &subject.name,
            &address,
            user.as_deref(),
            subject.password_file.as_deref(),
        );
    }
    let path = Path::new(&subject.target);
    if path.is_dir() {
        return published::contender(path, subject);
    }
    let mut evidence = match dump::read(path)? {
        Content::Variables(variables) => ServerEvidence::of_variables(&subject.name, variables)
            .with_context(|| {
                format!(
                    "`{}` has variables but no `version`, so which server it is remains unknown",
                    path.display()
                )
            })?,
        Content::OptionFile => {
            let settings = option_file::read(path, subject.product, subject.version)?;
            option_file::evidence(&subject.name, &settings, subject.product, subject.version)?
        }
        other => bail!(
            "`{}` is {}; give SHOW GLOBAL VARIABLES, an option file, a directory or an address",
            path.display(),
            other.what()
        ),
    };
    if !evidence.is_predicted {
        evidence.source = path.display().to_string();
    }
    Ok(evidence)
}
