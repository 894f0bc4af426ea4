//! Files that nobody ever sees half of.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// How the names of files end that are being written; they begin with a dot.
pub(crate) const UNFINISHED: &str = ".part";

/// Writes a file beside its final place, syncs it and renames it. A file of that name is replaced; `mode` is the
/// permission of the new one, before the process's mask.
///
/// # Errors
/// When the file cannot be written, synced or renamed; what was written beside is removed then.
pub fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let process = std::process::id();
    let beside = path.with_file_name(format!(".{name}.{process}{UNFINISHED}"));
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&beside)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // What is left of a failed attempt is of no use to anyone.
        let _ = fs::remove_file(&beside);
    }
    written
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
}
