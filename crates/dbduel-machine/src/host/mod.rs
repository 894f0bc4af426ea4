//! Facts about this machine, read from the kernel's files.
//!
//! Facts that the machine does not show are left out, and the report says so; nothing here can fail. Most of them are
//! in `/sys`, which `procfs` does not read, and tests read other machines' files below another root, which its types do
//! not permit.

mod confinement;
mod files;
mod processors;
mod storage;
mod system;

use std::path::{Path, PathBuf};

use dbduel_record::facts::Host;

pub use confinement::{find_processors, processors};
use files::Files;

/// Characters of a machine's identity.
const IDENTITY_CHARACTERS: usize = 16;

/// Reads the facts. `place` is the directory of the servers' data.
#[must_use]
pub fn read(place: &Path) -> Host {
    let files = Files::of_this_machine();
    let mut host = Host::default();
    processors::read(&files, &mut host);
    storage::read(&files, place, &mut host);
    system::read(&files, &mut host);
    // Some machines hide the folder of their processors.
    host.cpus = host.cpus.or_else(|| Some(cpus()));
    host.machine = Some(identity(&files, &host));
    host
}

/// An identity that distinguishes machines and reveals no name: a digest of the system's own identifier where it has
/// one, and of the processors and the memory.
fn identity(files: &Files, host: &Host) -> String {
    let text = format!(
        "{}|{:?}|{:?}|{:?}",
        files.line("/etc/machine-id").unwrap_or_default(),
        host.cpu_model,
        host.cpus,
        host.memory_bytes
    );
    let digest = blake3::hash(text.as_bytes()).to_hex();
    digest[..IDENTITY_CHARACTERS].to_owned()
}

/// The directory in `/sys` of the whole disk under `place`; `None` for a file system without one.
#[must_use]
pub fn disk_of(place: &Path) -> Option<PathBuf> {
    storage::disk_of(&Files::of_this_machine(), place)
}

/// Number of processors that the system schedules on; at least 1.
#[must_use]
pub fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Bytes that an unprivileged process may still write below `path`.
///
/// # Errors
/// When the file system cannot be queried.
pub fn free_disk_bytes(path: &Path) -> nix::Result<u64> {
    let facts = nix::sys::statvfs::statvfs(path)?;
    Ok(facts.blocks_available() * facts.fragment_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_processors_and_a_file_system() {
        let host = read(Path::new("/"));
        assert!(host.memory_bytes.unwrap() > 1 << 20);
        assert!(host.cpus.unwrap() >= 1);
        assert!(host.file_system.is_some());
        let again = read(Path::new("/"));
        assert!(host.machine.is_some() && host.machine == again.machine);
        assert!(free_disk_bytes(Path::new("/")).unwrap() > 0);
    }
}
