//! One change of a file system, in the form in which it is recorded and applied.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use bytes::Bytes;

use crate::content::Content;
use crate::image::{Image, Ino, Inode, Node};

/// A change. Applying one to an image without the inode or name does nothing.
#[derive(Debug, Clone)]
pub enum Change {
    /// A new inode with its first name.
    Create {
        /// The new inode.
        ino: Ino,
        /// Directory and name.
        name: (Ino, OsString),
        /// Type of the inode.
        node: NewNode,
        /// Permissions.
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
    },
    /// An additional name.
    Link {
        /// The inode.
        ino: Ino,
        /// Directory and name.
        name: (Ino, OsString),
    },
    /// A name is removed.
    Unlink {
        /// The inode that loses it.
        ino: Ino,
        /// Directory and name.
        name: (Ino, OsString),
    },
    /// A name is moved; the inode that had the new name loses it.
    Rename {
        /// The inode that is moved.
        ino: Ino,
        /// Old directory and name.
        from: (Ino, OsString),
        /// New directory and name.
        to: (Ino, OsString),
    },
    /// A file is truncated or extended by zeros.
    SetSize {
        /// The file.
        ino: Ino,
        /// New length, bytes.
        size: u64,
    },
    /// A hole, or a range of zeros.
    Zero {
        /// The file.
        ino: Ino,
        /// The bytes.
        range: Range<u64>,
    },
    /// Permissions and owners.
    SetAttributes {
        /// The inode.
        ino: Ino,
        /// New permissions.
        mode: Option<u32>,
        /// New owner.
        uid: Option<u32>,
        /// New group.
        gid: Option<u32>,
    },
    /// Data.
    Write {
        /// The file.
        ino: Ino,
        /// Offset, bytes.
        offset: u64,
        /// The bytes.
        data: Bytes,
        /// Bypasses the page cache (`O_DIRECT`): neighbouring data in the same page are not written along.
        is_direct: bool,
    },
}

/// Type of a new inode.
#[derive(Debug, Clone)]
pub enum NewNode {
    /// A regular file without content.
    File,
    /// An empty directory.
    Directory,
    /// A symbolic link.
    Link(PathBuf),
}

impl Change {
    /// True for everything but data.
    #[must_use]
    pub fn is_metadata(&self) -> bool {
        !matches!(self, Change::Write { .. })
    }

    /// True when syncing the inode makes this change durable; `fdatasync` leaves attributes out.
    #[must_use]
    pub fn concerns(&self, which: Ino, data_only: bool) -> bool {
        match self {
            Change::Create { ino, name, .. }
            | Change::Link { ino, name }
            | Change::Unlink { ino, name } => *ino == which || name.0 == which,
            Change::Rename { ino, from, to } => [*ino, from.0, to.0].contains(&which),
            Change::SetAttributes { ino, .. } => *ino == which && !data_only,
            Change::SetSize { ino, .. } | Change::Zero { ino, .. } | Change::Write { ino, .. } => {
                *ino == which
            }
        }
    }

    /// Applies the change to the image.
    pub fn apply(&self, image: &mut Image) {
        match self {
            Change::Create {
                ino,
                name,
                node,
                mode,
                uid,
                gid,
            } => {
                if image.entries(name.0).is_none() {
                    return;
                }
                let node = match node {
                    NewNode::File => Node::File(Content::default()),
                    NewNode::Directory => Node::Directory(Default::default()),
                    NewNode::Link(target) => Node::Link(target.clone()),
                };
                let inode = Inode {
                    node,
                    mode: *mode,
                    uid: *uid,
                    gid: *gid,
                    links: 0,
                    modified: SystemTime::now(),
                };
                image.insert(*ino, inode);
                image.enter(name.0, &name.1, *ino);
            }
            Change::Link { ino, name } => {
                if image.get(*ino).is_some() {
                    image.enter(name.0, &name.1, *ino);
                }
            }
            Change::Unlink { name, .. } => {
                image.leave(name.0, &name.1);
            }
            Change::Rename { from, to, .. } => {
                if let Some(ino) = image.lookup(from.0, &from.1)
                    && image.entries(to.0).is_some()
                    && image.lookup(to.0, &to.1) != Some(ino)
                {
                    image.enter(to.0, &to.1, ino);
                    image.leave(from.0, &from.1);
                }
            }
            Change::SetSize { ino, size } => {
                if let Some(content) = image.content_mut(*ino) {
                    content.set_size(*size);
                }
            }
            Change::Zero { ino, range } => {
                if let Some(content) = image.content_mut(*ino) {
                    content.zero(range.clone());
                }
            }
            Change::SetAttributes {
                ino,
                mode,
                uid,
                gid,
            } => {
                if let Some(inode) = image.get_mut(*ino) {
                    inode.mode = mode.unwrap_or(inode.mode);
                    inode.uid = uid.unwrap_or(inode.uid);
                    inode.gid = gid.unwrap_or(inode.gid);
                }
            }
            Change::Write {
                ino, offset, data, ..
            } => {
                if let Some(content) = image.content_mut(*ino) {
                    content.write(*offset, data);
                }
            }
        }
    }
}
