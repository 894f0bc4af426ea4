//! Checks whether the bytes that the kernel counts as written by a process equal those written to the device.
//!
//! Pages of a file are kept in folios. Where a file system has large folios (XFS from Linux 5.18 on, ext4 from 6.16
//! on), a small buffered write marks a whole folio dirty, and the kernel adds its full size to `write_bytes` in
//! `/proc/PID/io`; only the changed part is written. A log that is synced after every commit is then counted many
//! times. With ext4 of Linux 6.18, 4 MB in synced writes of 8 KiB were counted as 524 MB; the device received 4.2 MB.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// The file is written in one piece, so that its folios are as large as possible.
const FILE_BYTES: usize = 4 << 20;
const WRITE_BYTES: usize = 4096;
const WRITES: usize = 16;
/// Limit of counted ÷ written bytes: metadata may be counted with the data, but not as much again.
const EXCESS_MAX: u64 = 2;

/// True when the kernel counts more than was written for small synced writes to a file in `folder`.
///
/// # Errors
/// When the file cannot be written, or the kernel does not count.
pub fn overcounts(folder: &Path) -> io::Result<bool> {
    let path = folder.join(format!(".write-accounting-{}", std::process::id()));
    let file = File::create(&path)?;
    // The file goes when it is closed.
    fs::remove_file(&path)?;
    file.write_all_at(&vec![0; FILE_BYTES], 0)?;
    file.sync_all()?;
    let before = written_by_this_thread()?;
    for number in 0..WRITES {
        let place = number * (FILE_BYTES / WRITES);
        file.write_all_at(&[1; WRITE_BYTES], place as u64)?;
        file.sync_data()?;
    }
    let counted = written_by_this_thread()?.saturating_sub(before);
    Ok(counted > EXCESS_MAX * (WRITES * WRITE_BYTES) as u64)
}

fn written_by_this_thread() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/io")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes:"));
    line.and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_in_memory_counts_nothing_and_a_missing_folder_is_an_error() {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            assert!(!overcounts(memory).unwrap());
        }
        let folder = tempfile::tempdir().unwrap();
        let first = overcounts(folder.path()).unwrap();
        assert_eq!(overcounts(folder.path()).unwrap(), first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(overcounts(&folder.path().join("none")).is_err());
    }
}
