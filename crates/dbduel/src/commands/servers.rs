//! `dbduel servers`: lists, installs and removes server builds.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use dbduel_driver::sqlite_version;
use dbduel_server::{Home, SOURCES, SQLITE, ServerName, install};

use crate::console::{self, Console};
use crate::exit::Exit;
use crate::home;

/// Verbs of `dbduel servers`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List known and installed servers.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch servers and unpack them privately; nothing is installed system-wide.
    Install {
        /// Names such as mariadb-10.11 or mysql-8.0.33.
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Remove unpacked servers.
    Remove {
        /// Names as `servers list` shows them.
        #[arg(required = true)]
        names: Vec<String>,
    },
}

/// Lists, installs or removes servers.
///
/// # Errors
/// When a name is unknown, or something cannot be fetched or removed.
pub fn servers(home: Option<PathBuf>, verb: Action) -> Result<Exit> {
    let home = home::find(home)?;
    let text = match verb {
        Action::List { json: true } => as_json(&home)?,
        Action::List { json: false } => as_text(&home)?,
        Action::Install { names } => fetch(&home, &names)?,
        Action::Remove { names } => remove(&home, &names)?,
    };
    console::print(&text)?;
    Ok(Exit::Done)
}

/// Columns of a list that a server's name takes.
const NAME: usize = 21;

fn as_text(home: &Home) -> Result<String> {
    let mut text = String::from(
        "Known by name (`dbduel servers install NAME`, or just name it in an experiment):\n",
    );
    let mut row = |name: &str, about: &str| writeln!(text, "  {name:<NAME$} {about}");
    for listed in install::known(home) {
        let known = listed.known;
        let from = match known.download_mb {
            Some(size) => format!("{size:>4} MB from {}", known.source),
            None => format!("image {}", known.locator),
        };
        let state = match known.download_mb {
            _ if listed.installed => ", installed",
            Some(_) => "",
            None => ", will be pulled",
        };
        row(known.id, &format!("{from}{state}"))?;
        if !known.note.is_empty() {
            row("", known.note)?;
        }
    }
    row(
        SQLITE,
        &format!("built in, {}, in the load process", sqlite_version()),
    )?;
    text.push_str("\nInstalled for dbduel:\n");
    let installed = install::installed(home)?;
    for server in &installed {
        let version = server
            .build
            .as_ref()
            .map_or("not understood; remove it and install it again", |build| {
                &build.version_text
            });
        writeln!(
            text,
            "  {:<NAME$} {:>4} MiB  {version}",
            server.id,
            server.size.allocated_bytes >> 20
        )?;
    }
    if installed.is_empty() {
        text.push_str("  none\n");
    }
    text.push_str("\nOther places:\n");
    for source in SOURCES {
        writeln!(text, "  {}\n      {}", source.example, source.about)?;
    }
    text.push_str(
        "  tcp://user@host:3306\n      A running server; dbduel neither starts, freezes nor stops it.\n",
    );
    Ok(text)
}

fn as_json(home: &Home) -> Result<String> {
    let known: Vec<serde_json::Value> = install::known(home)
        .iter()
        .map(|listed| {
            serde_json::json!({
                "id": listed.known.id,
                "product": listed.known.product,
                "version": listed.known.version,
                "source": listed.known.source,
                "locator": listed.known.locator,
                "download_mb": listed.known.download_mb,
                "note": listed.known.note,
                "installed": listed.installed,
            })
        })
        .collect();
    let installed: Vec<serde_json::Value> = install::installed(home)?
        .iter()
        .map(|server| serde_json::json!({ "id": server.id, "build": server.build, "size": server.size }))
        .collect();
    let both = serde_json::json!({
        "known": known,
        "built_in": [{ "id": SQLITE, "version": sqlite_version() }],
        "installed": installed,
    });
    Ok(console::json(&both)?)
}

fn fetch(home: &Home, names: &[String]) -> Result<String> {
    // All names are understood before the first download begins.
    let names = names
        .iter()
        .map(|name| ServerName::parse(name))
        .collect::<Result<Vec<_>, _>>()?;
    let console = Console::new();
    let mut text = String::new();
    for name in &names {
        let build = install::install(name, home, &console)?;
        writeln!(text, "{name}: {}", build.version_text)?;
    }
    console.finish();
    Ok(text)
}

fn remove(home: &Home, names: &[String]) -> Result<String> {
    let mut text = String::new();
    for name in names {
        let id = ServerName::parse(name).map_or_else(|_| name.clone(), |name| name.id());
        let removed = install::remove(&id, home)?;
        writeln!(
            text,
            "removed {} ({} MiB)",
            removed.id,
            removed.size.allocated_bytes >> 20
        )?;
    }
    Ok(text)
}
