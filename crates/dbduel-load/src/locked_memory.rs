//! Memory that stays: a process that waits for pages of its own measures the system's memory and not a server.

use nix::libc::MCL_ONFAULT;
use nix::sys::mman::{MlockAllFlags, mlockall};

/// Keeps the pages that this process has, and will have once it has used them, in memory. Where the system does not allow that, which is
/// usual for processes without privileges, nothing changes.
pub fn keep_in_memory() {
    let used_pages = MlockAllFlags::from_bits_retain(MCL_ONFAULT);
    let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | used_pages);
}
