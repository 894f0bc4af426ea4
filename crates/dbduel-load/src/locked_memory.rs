//! Locked memory: a process that waits for its own pages measures the system's memory and not a server.

use nix::libc::MCL_ONFAULT;
use nix::sys::mman::{MlockAllFlags, mlockall};

/// Locks the pages of this process in memory, present and future ones as they are used. Where the system does not
/// allow that, as is usual for unprivileged processes, nothing changes.
pub fn keep_in_memory() {
    let used_pages = MlockAllFlags::from_bits_retain(MCL_ONFAULT);
    let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | used_pages);
}
