//! Checksums of all pages on disk, verified by the server's own program where its build has it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use dbduel_server::Tool;

use super::stand::Stand;

/// The checksum program of MySQL and MariaDB.
pub const PROGRAM: &str = "innochecksum";
/// Timeout for one file.
const DEADLINE: Duration = Duration::from_secs(300);

/// Output of the program on files with wrong pages, for at most `most` of them. Empty without the program.
///
/// # Errors
/// When the program cannot be run.
pub fn bad_pages(stand: &Stand<'_>, most: usize) -> Result<Vec<String>> {
    let Some(program) = stand.program(PROGRAM) else {
        return Ok(Vec::new());
    };
    let mut bad = Vec::new();
    for file in tablespaces(stand) {
        let command = stand.sandbox.build().command_of(&program);
        let tool = Tool::of(command, PROGRAM).with(|command| {
            command.arg(&file);
        });
        let finished = tool.run(DEADLINE)?;
        if !finished.status.success() && bad.len() < most {
            let said: Vec<&str> = finished.stderr.split_whitespace().take(40).collect();
            let name = file.strip_prefix(stand.data()).unwrap_or(&file);
            bad.push(format!("{}: {}", name.display(), said.join(" ")));
        }
    }
    Ok(bad)
}

/// The system tablespace and those of the workload's database.
fn tablespaces(stand: &Stand<'_>) -> Vec<PathBuf> {
    let data = stand.data();
    let mut files = vec![data.join("ibdata1")];
    let folder = data.join(dbduel_server::DATABASE);
    if let Ok(entries) = std::fs::read_dir(folder) {
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(paths.filter(|path| path.extension().is_some_and(|ext| ext == "ibd")));
    }
    files.retain(|file| file.is_file());
    files.sort();
    files
}
