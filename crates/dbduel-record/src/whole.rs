//! Files that are replaced atomically: no reader sees a partial one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{Change, FileSystem, LocalFiles, sync_parent};

/// Suffix of temporary files; their names begin with a dot.
const PART: &str = ".part";

/// Deepest nesting of folders in a record.
pub(crate) const DEPTH_MAX: usize = 8;

/// Writes a temporary file, syncs it, renames it and syncs the folder. A file of that name is replaced; `mode` is the
/// permission of the new one, before the process's umask.
///
/// # Errors
/// When the file cannot be written, synced or renamed; the temporary file is then removed.
pub fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    write_whole_on(&LocalFiles, path, bytes, mode)
}

/// As [`write_whole`], on another file system than the machine's own.
///
/// # Errors
/// As [`write_whole`].
pub fn write_whole_on(
    files: &dyn FileSystem,
    path: &Path,
    bytes: &[u8],
    mode: u32,
) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let process = std::process::id();
    let beside = path.with_file_name(format!(".{name}.{process}{PART}"));
    let written = files
        .apply(Change::Write {
            path: &beside,
            bytes,
            mode,
        })
        .and_then(|()| files.apply(Change::Sync { path: &beside }))
        .and_then(|()| {
            files.apply(Change::Rename {
                from: &beside,
                to: path,
            })
        })
        .and_then(|()| sync_parent(files, path));
    if written.is_err() {
        // What is left of a failed attempt is of no use to anyone.
        let _ = files.apply(Change::Remove { path: &beside });
    }
    written
}

/// True for the name of a temporary file of [`write_whole`]: a dot, the final name, the process id.
#[must_use]
pub fn is_half_written(name: &str) -> bool {
    writer(name).is_some()
}

/// The process id in the name of a temporary file.
fn writer(name: &str) -> Option<u32> {
    let (name, number) = name
        .strip_prefix('.')?
        .strip_suffix(PART)?
        .rsplit_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (!name.is_empty() && is_number).then(|| number.parse().ok())?
}

/// The temporary files below a folder, sorted. If their writer is gone, a killed process left them.
///
/// # Errors
/// When a folder cannot be listed.
pub fn half_written(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(folder, 0, &mut found)?;
    found.sort();
    Ok(found)
}

/// Removes the temporary files below a folder whose writers are gone. A process id that has been reused keeps a file
/// until that process is gone too.
///
/// # Errors
/// When a folder cannot be listed or a file cannot be removed.
pub fn remove_half_written(files: &dyn FileSystem, folder: &Path) -> io::Result<()> {
    let is_gone = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let process = name.and_then(|name| writer(&name));
        process.is_some_and(|number| !Path::new("/proc").join(number.to_string()).exists())
    };
    let left = half_written(folder)?;
    left.iter()
        .filter(|path| is_gone(path))
        .try_for_each(|path| match files.apply(Change::Remove { path }) {
            // Another process has cleared up at the same time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        })
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < DEPTH_MAX {
            walk(&entry.path(), depth + 1, found)?;
        } else if kind.is_file() && is_half_written(&entry.file_name().to_string_lossy()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_replaced_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_whole(&path, b"first", 0o644).unwrap();
        write_whole(&path, b"second", 0o600).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // A folder cannot be replaced by a file.
        assert!(write_whole(folder.path(), b"x", 0o600).is_err());
    }

    #[test]
    fn what_was_left_half_written_is_told_from_files_of_people() {
        let folder = tempfile::tempdir().unwrap();
        // No process has such a number: Linux counts to 4194304.
        let left = [".plan.json.4194305.part", "below/.size.json.4194306.part"];
        let living = format!(".report.html.{}.part", std::process::id());
        let kept = [
            "plan.json",
            ".notes.part",
            "x.4711.part",
            ".part",
            "below/y",
            &living,
        ];
        fs::create_dir(folder.path().join("below")).unwrap();
        for name in left.iter().chain(&kept) {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let there = |names: &[&str]| -> Vec<PathBuf> {
            names.iter().map(|name| folder.path().join(name)).collect()
        };
        assert_eq!(
            half_written(folder.path()).unwrap(),
            there(&[left[0], &living, left[1]])
        );
        remove_half_written(&LocalFiles, folder.path()).unwrap();
        assert!(kept.iter().all(|name| folder.path().join(name).is_file()));
        assert_eq!(half_written(folder.path()).unwrap(), there(&[&living]));
    }
}
