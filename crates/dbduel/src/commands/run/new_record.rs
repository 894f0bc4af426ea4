//! The directory of a new record: its place, and its files before anything runs.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use dbduel_experiment::ExperimentFile;
use dbduel_lab::contest;
use dbduel_machine::host;
use dbduel_record::store::SELFTEST;
use dbduel_record::{Plan, RecordWriter};
use dbduel_server::{Home, create_folder};
use dbduel_workloads::script;

use crate::commands::selftest::store;

/// Most runs of one experiment that can begin within a second.
const PLACES_MAX: u32 = 100;

/// Folder of the record for the text of workload scripts.
const SCRIPTS: &str = "scripts";

/// Makes the directory of a new record below `results`.
///
/// # Errors
/// When it cannot be written.
pub fn create(
    home: &Home,
    results: &Path,
    file: &ExperimentFile<'_>,
    plan: &Plan,
) -> Result<PathBuf> {
    let record = new_place(results, file.path)?;
    create_at(home, &record, file.text, plan)?;
    Ok(record)
}

/// Creates the directory for a run of the experiment at `path` that begins now. Further runs within the same second get
/// a numbered one.
///
/// # Errors
/// When it cannot be made.
pub fn new_place(results: &Path, path: &Path) -> Result<PathBuf> {
    let stem = path
        .file_stem()
        .map_or_else(|| "duel".into(), |stem| stem.to_string_lossy().into_owned());
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let name = format!("{stamp}-{}", dbduel_record::names::file_name(&stem));
    let failed = |dir: &Path| {
        format!(
            "could not create `{}`; `--results` names another place for records",
            dir.display()
        )
    };
    create_folder(results).with_context(|| failed(results))?;
    let mut dir = results.join(&name);
    for number in 2..=PLACES_MAX {
        match fs::create_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                dir = results.join(format!("{name}-{number}"));
            }
            made => return made.map(|()| dir.clone()).with_context(|| failed(&dir)),
        }
    }
    bail!(
        "{PLACES_MAX} runs of `{}` began in this second; `--results` names another place for records",
        path.display()
    )
}

/// Makes a new record in the directory `record`.
///
/// # Errors
/// When it cannot be written.
pub fn create_at(home: &Home, record: &Path, text: &str, plan: &Plan) -> Result<()> {
    create_folder(home.root())
        .with_context(|| format!("could not create `{}`", home.root().display()))?;
    let host = host::read(home.root());
    let writer = RecordWriter::create_on(
        Arc::clone(home.files()),
        record,
        text.as_bytes(),
        plan,
        &host,
        contest::now_ms(),
    )
    .with_context(|| {
        format!(
            "could not begin the record `{}`; `--results` names another place for records",
            record.display()
        )
    })?;
    keep_script(&writer, plan)?;
    // That of this machine says nothing of others.
    if let Some(self_test) = store::of_this_host(home).filter(|_| !plan.has_server_hosts()) {
        writer.replace(Path::new(SELFTEST), &serde_json::to_vec_pretty(&self_test)?)?;
    }
    Ok(())
}

/// Stores the text of workload scripts and of all files that they require, each under its digest.
fn keep_script(writer: &RecordWriter, plan: &Plan) -> Result<()> {
    let mut files = Vec::new();
    for workload in plan
        .workloads()
        .chain([&plan.workload])
        .filter(|workload| workload.name == script::NAME)
    {
        for file in script::files(&workload.parameters)? {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    if files.is_empty() {
        return Ok(());
    }
    writer.create_dir(Path::new(SCRIPTS))?;
    let mut list = Vec::new();
    for file in files {
        let digest = blake3::hash(&file.text).to_hex().to_string();
        writer.replace(
            &Path::new(SCRIPTS).join(format!("{digest}.lua")),
            &file.text,
        )?;
        list.push(serde_json::json!({ "path": file.path, "blake3": digest }));
    }
    let list = serde_json::to_vec_pretty(&list)?;
    writer.replace(&Path::new(SCRIPTS).join("list.json"), &list)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_within_one_second_have_places_of_their_own() {
        let results = tempfile::tempdir().unwrap();
        let place = |()| new_place(results.path(), Path::new("duel.toml")).unwrap();
        let places = [(); 5].map(place);
        for (number, place) in places.iter().enumerate() {
            assert!(
                place.is_dir() && !places[..number].contains(place),
                "{places:?}"
            );
        }
    }
}
