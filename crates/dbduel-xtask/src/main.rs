//! `cargo xtask`: files generated from the program's definitions, for packages, shells and the documentation's site.

mod reference;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;
use clap_complete::Shell;

use dbduel_text::terminal;

/// Generate files from the definitions of dbduel's command line, workloads, facts and rules.
#[derive(Debug, Parser)]
#[command(name = "xtask")]
enum Action {
    /// Print the completions for a shell; for bash, put them into
    /// ~/.local/share/bash-completion/completions/dbduel.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write man pages, one per verb.
    Man {
        /// Folder for the pages; made where it is missing.
        dir: PathBuf,
    },
    /// Write the reference pages of the documentation's site.
    Reference {
        /// Folder for the pages; made where it is missing.
        dir: PathBuf,
    },
}

fn main() -> Result<()> {
    let mut command = dbduel::command();
    match Action::parse() {
        Action::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, "dbduel", &mut text);
            terminal::print(&String::from_utf8_lossy(&text))?;
        }
        Action::Reference { dir } => reference::write(command, &dir)?,
        Action::Man { dir } => write_man_pages(command, &dir)
            .with_context(|| format!("could not write man pages into `{}`", dir.display()))?,
    }
    Ok(())
}

fn write_man_pages(command: clap::Command, dir: &Path) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    clap_mangen::generate_to(command, dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_verb_has_a_man_page_and_is_completed() {
        let dir = tempfile::tempdir().unwrap();
        write_man_pages(dbduel::command(), dir.path()).unwrap();
        let mut text = Vec::new();
        clap_complete::generate(Shell::Bash, &mut dbduel::command(), "dbduel", &mut text);
        let completions = String::from_utf8(text).unwrap();
        let command = dbduel::command();
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        for verb in verbs.map(clap::Command::get_name) {
            let page = fs::read_to_string(dir.path().join(format!("dbduel-{verb}.1"))).unwrap();
            assert!(page.contains(".SH DESCRIPTION"), "{verb}: {page}");
            assert!(completions.contains(&format!("dbduel,{verb})")), "{verb}");
        }
        let page = fs::read_to_string(dir.path().join("dbduel.1")).unwrap();
        assert!(page.contains("Exit codes"), "{page}");
    }
}
