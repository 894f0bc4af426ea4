//! `[data] server`: the dump of a running server's database, taken before the contest is planned. From then on the experiment names the
//! dump, so a record never asks the server again.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use dbduel_driver::address::ServerAddress;
use dbduel_driver::{ConnectOptions, Credentials};
use dbduel_dump::Target;
use dbduel_dump::from_server::{self, DumpClient, ServerDumpError, Source};
use dbduel_experiment::document::{Trouble, Troubles};
use dbduel_experiment::{DataServer, DataSource, Experiment, ExperimentFile};
use dbduel_inspect::login::{self, PasswordSource};
use dbduel_machine::interrupt;
use dbduel_record::names::file_name;
use dbduel_record::store::read_plan;
use dbduel_server::{
    Home, Progress as _, ProgressUnit, clear_unfinished, create_private_dir, orphans, tree_size,
    unfinished,
};
use dbduel_workloads::captured::DUMP;
use serde_json::Value;
use toml_edit::{DocumentMut, Item, value};

use crate::console::{self, Console};

/// Folder of the home for dumps, one folder each.
const DUMPS: &str = "dumps";
/// Environment variables with the password end with this name, as those of contenders do with theirs.
const PASSWORD_OF: &str = "data";
/// Keys of `[data]` that `dump` replaces.
const OF_SERVER: [&str; 3] = ["server", "database", "password_file"];

/// A dump in the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptDump {
    /// Its folder below the home, by which `dbduel datasets` names it.
    pub id: String,
    /// The dump.
    pub path: PathBuf,
    /// Allocated on the device, bytes.
    pub bytes: u64,
}

/// A dump that a contest needs.
#[derive(Debug, thiserror::Error)]
#[error(
    "the dump `{id}` is needed by `{}`, which is not finished: finish it with `dbduel run`, or remove that record first", record.display()
)]
struct Needed {
    id: String,
    record: PathBuf,
}

/// The dumps in a home, by name.
///
/// # Errors
/// When their folder cannot be read.
pub fn kept(home: &Home) -> Result<Vec<KeptDump>> {
    let dumps = home.root().join(DUMPS);
    clear_unfinished(&dumps);
    let entries = match fs::read_dir(&dumps) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("could not read `{}`", dumps.display()));
        }
    };
    let mut found = Vec::new();
    for entry in entries {
        let folder = entry?.path();
        let Some(name) = folder.file_name().and_then(OsStr::to_str) else {
            continue;
        };
        let file = fs::read_dir(&folder)
            .ok()
            .and_then(|mut files| files.next());
        // The folder of a dump that is being taken begins with a point.
        if let (Some(Ok(file)), false) = (file, name.starts_with('.')) {
            found.push(KeptDump {
                id: format!("{DUMPS}/{name}"),
                path: file.path(),
                bytes: tree_size(&folder)?.allocated_bytes,
            });
        }
    }
    found.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(found)
}

/// Removes a dump from its home.
///
/// # Errors
/// When a contest that is not finished needs it, or it cannot be removed.
pub fn remove(home: &Home, dump: &KeptDump) -> Result<()> {
    let needs = |record: &PathBuf| {
        let plan = read_plan(record).ok();
        plan.is_some_and(|plan| {
            let mut all = plan.workloads();
            all.any(|one| one.parameters.get(DUMP).and_then(Value::as_str) == dump.path.to_str())
        })
    };
    let records = orphans::resumable_records(home);
    if let Some(record) = records.into_iter().find(needs) {
        let id = dump.id.clone();
        return Err(Needed { id, record }.into());
    }
    let folder = home.root().join(&dump.id);
    fs::remove_dir_all(&folder).with_context(|| format!("could not remove `{}`", folder.display()))
}

/// The server that an experiment's tables are dumped from.
pub fn server_of(experiment: &Experiment) -> Option<&DataServer> {
    match &experiment.data.as_ref()?.source {
        DataSource::Server(server) => Some(server),
        DataSource::Dump(_) => None,
    }
}

/// What a run does first, for its plan.
pub fn step(home: &Home, server: &DataServer) -> String {
    format!(
        "First `dbduel run` dumps the database `{}` of `{}` into a folder of `{}` with the server's own dump client. Reading all rows in one \
         transaction loads that server and delays its purge or vacuum. The rows are planned, loaded and digested then. The dump stays: \
         `dbduel datasets list` has it, `dbduel datasets remove` removes it.",
        server.database,
        server.written.value,
        home.root().join(DUMPS).display()
    )
}

/// The text of an experiment with a dump, taken now, in place of the server that its tables are on; `None` where they are on none.
///
/// # Errors
/// When no client is installed, the server refuses the login or has no such database, the client fails, or the user interrupts.
pub fn dumped(
    home: &Home,
    ExperimentFile {
        path,
        text,
        experiment,
    }: &ExperimentFile<'_>,
) -> Result<Option<String>> {
    let Some(server) = server_of(experiment) else {
        return Ok(None);
    };
    let dump = taken(home, path, server).with_context(|| {
        format!(
            "could not dump the database `{}` of `{}`, which [data] names",
            server.database, server.written.value
        )
    })?;
    replaced(text, &dump).map(Some)
}

/// Refuses an experiment whose tables are on a running server, for a verb that would dump it again and again.
///
/// # Errors
/// With the place of the server.
pub fn refuse(
    ExperimentFile {
        path,
        text,
        experiment,
    }: &ExperimentFile<'_>,
    why: &str,
) -> Result<(), Troubles> {
    let Some(server) = server_of(experiment) else {
        return Ok(());
    };
    let message = format!(
        "{why}; dump `{}` once, with mysqldump, mariadb-dump or pg_dump, and name the file as `dump`",
        server.database
    );
    Err(Troubles {
        path: path.to_path_buf(),
        list: vec![Trouble::at(text, server.written.span.start, message)],
    })
}

/// Dumps the database into a new folder of the home.
fn taken(home: &Home, path: &Path, server: &DataServer) -> Result<PathBuf> {
    interrupt::install().context("could not install the handler of SIGINT, SIGTERM and SIGHUP")?;
    let credentials = credentials(path, server)?;
    let target = asked(server, &credentials)?;
    let client = DumpClient::find(&target)?;
    if client.product != target.product {
        console::status_line(&format!(
            "no dump client of {}'s own product was found; {} may not know all of its definitions",
            target.name(),
            client.name()
        ));
    }
    let dumps = home.root().join(DUMPS);
    create_private_dir(home.files().as_ref(), &dumps)?;
    clear_unfinished(&dumps);
    let database = file_name(&server.database);
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    let name = format!("{database}-{stamp}-{}", std::process::id());
    let unfinished = unfinished(&dumps, &name);
    create_private_dir(home.files().as_ref(), &unfinished)?;
    let file = format!("{database}.sql.gz");
    let ServerAddress { place, .. } = &server.address;
    let source = Source {
        place,
        credentials: &credentials,
        database: &server.database,
    };
    let console = Console::new();
    console.stage(&format!(
        "dumping `{}` with {}",
        server.database,
        client.name()
    ));
    let mut go_on = |bytes| {
        console.advance(bytes, None, ProgressUnit::Bytes);
        interrupt::check().is_ok()
    };
    let dumped = from_server::dump(&client, &source, &unfinished.join(&file), &mut go_on);
    console.finish();
    if let Err(error) = dumped {
        // Empty but for an incomplete dump; the next dump removes what stays.
        let _ = fs::remove_dir_all(&unfinished);
        return match error {
            ServerDumpError::Cancelled => {
                interrupt::check()?;
                Err(error.into())
            }
            error => Err(error.into()),
        };
    }
    let folder = dumps.join(&name);
    fs::rename(&unfinished, &folder)
        .with_context(|| format!("could not rename `{}`", unfinished.display()))?;
    let dump = folder.join(file);
    console::status_line(&format!(
        "dumped `{}` of `{}` with {}: `{}`. It holds the data; `dbduel datasets remove {DUMPS}/{name}` removes it when no contest needs it",
        server.database,
        server.written.value,
        client.name(),
        dump.display()
    ));
    Ok(dump)
}

fn credentials(path: &Path, server: &DataServer) -> Result<Credentials> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = server.password_file.as_ref();
    let file = file.map(|file| folder.join(&file.value));
    login::credentials(&server.address, file.as_deref(), Some(PASSWORD_OF))
}

/// Product and version of the server; refused logins and missing databases show here with the server's own words.
fn asked(server: &DataServer, credentials: &Credentials) -> Result<Target> {
    let options = ConnectOptions {
        dialect: server.address.dialect,
        database: Some(server.database.clone()),
        ..ConnectOptions::default()
    };
    let place = &server.address.place;
    let connection = login::connect(place, credentials, &options, PasswordSource::Data)?;
    Target::of(&connection).with_context(|| {
        format!(
            "the server's version `{}` is not understood",
            connection.server_version()
        )
    })
}

/// The text with the dump in place of the server.
fn replaced(text: &str, dump: &Path) -> Result<String> {
    let mut document: DocumentMut = text
        .parse()
        .context("could not read the experiment again")?;
    let data = document.get_mut("data").and_then(Item::as_table_like_mut);
    let data = data.context("the experiment has no [data]")?;
    for key in OF_SERVER {
        data.remove(key);
    }
    let dump = dump
        .to_str()
        .with_context(|| format!("the path of the dump is not UTF-8: `{}`", dump.display()))?;
    data.insert("dump", value(dump));
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dump_takes_the_place_of_the_server() {
        for written in [
            "[data]\nserver = \"tcp://u@db/shop\"\npassword_file = \"p\"\n",
            "[data]\ndatabase = \"shop\" # ours\nserver = \"unix:/s\"\n",
            "data = { server = \"tcp://u@db/shop\", password_file = \"p\" }\n",
        ] {
            let text = format!(
                "horizon = \"5 %\"\n{written}[workload]\nname = \"captured\"\ncapture = \"c\"\n"
            );
            let text = replaced(&text, Path::new("/home/dumps/a b/shop.sql.gz")).unwrap();
            assert!(text.contains("\"/home/dumps/a b/shop.sql.gz\""), "{text}");
            for gone in ["server", "database", "password_file", "tcp:", "unix:"] {
                assert!(!text.contains(gone), "{gone}: {text}");
            }
            assert!(
                text.contains("name = \"captured\"") && text.contains("5 %"),
                "{text}"
            );
        }
    }
}
