//! Power cuts for servers: a file system in memory that records every change and every sync, and from that record the
//! images that a disk may hold after the power failed.
//!
//! [`Volume`] is the file system while a server runs on it, `mount::Mount` mounts it. [`Replay`] replays its [`Trace`] up
//! to the moment of a cut; a [`Selection`] names the unsynced writes that reached the disk, and [`Replay::image`] is the
//! disk afterwards: an [`Image`] that can be mounted again.
//!
//! # Guarantees of a sync
//!
//! * `fsync`, `fdatasync` and `msync` make all earlier writes to the file durable, with its size. Writes through a descriptor
//!   with `O_DSYNC` or `O_SYNC` are durable when they return. `O_DIRECT` alone promises nothing: disks have caches.
//! * Changes of names, sizes and holes form a journal. A cut leaves a beginning of it, as on ext4 and XFS. Syncing a file or
//!   directory makes the journal durable up to the last change of that file or directory.
//! * Anything else may be lost, and may survive without what was written before it ([`CutModel`]).

mod change;
mod content;
mod cut;
mod image;
mod minimise;
pub mod mount;
mod replay;
mod trace;
mod tree;
mod volume;

#[cfg(test)]
mod reference;

pub use change::{Change, NewNode};
pub use content::Content;
pub use cut::{CutModel, Selection, positions};
pub use image::{Image, Ino, Inode, Node, ROOT};
pub use minimise::minimise;
pub use replay::{Fragment, PendingWrite, Replay};
pub use trace::{Entry, Event, Trace};
pub use tree::{read_tree, write_tree};
pub use volume::Volume;
