//! A whole file system at one moment. Copies share their pages.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use crate::content::Content;

/// Number of an inode.
pub type Ino = u64;

/// The root directory.
pub const ROOT: Ino = 1;

/// A file, directory or symbolic link.
#[derive(Debug, Clone)]
pub struct Inode {
    /// Type and content.
    pub node: Node,
    /// Permissions, without the type.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Number of names.
    pub links: u32,
    /// Time of the last change of the content.
    pub modified: SystemTime,
}

/// Type of an inode, with its content.
#[derive(Debug, Clone)]
pub enum Node {
    /// A regular file.
    File(Content),
    /// Names with their inodes.
    Directory(BTreeMap<OsString, Ino>),
    /// A symbolic link.
    Link(PathBuf),
}

/// All inodes of a file system.
#[derive(Debug, Clone)]
pub struct Image {
    inodes: HashMap<Ino, Arc<Inode>>,
}

impl Image {
    /// A file system with an empty root directory with this owner.
    #[must_use]
    pub fn empty(uid: u32, gid: u32) -> Self {
        let root = Inode {
            node: Node::Directory(BTreeMap::new()),
            mode: 0o700,
            uid,
            gid,
            links: 1,
            modified: SystemTime::UNIX_EPOCH,
        };
        Image {
            inodes: HashMap::from([(ROOT, Arc::new(root))]),
        }
    }

    /// The inode, if there is one.
    #[must_use]
    pub fn get(&self, ino: Ino) -> Option<&Inode> {
        self.inodes.get(&ino).map(Arc::as_ref)
    }

    /// The inode, mutable.
    pub fn get_mut(&mut self, ino: Ino) -> Option<&mut Inode> {
        self.inodes.get_mut(&ino).map(Arc::make_mut)
    }

    /// Content of a regular file.
    #[must_use]
    pub fn content(&self, ino: Ino) -> Option<&Content> {
        match &self.get(ino)?.node {
            Node::File(content) => Some(content),
            _ => None,
        }
    }

    /// Content of a regular file, mutable.
    pub fn content_mut(&mut self, ino: Ino) -> Option<&mut Content> {
        match &mut self.get_mut(ino)?.node {
            Node::File(content) => Some(content),
            _ => None,
        }
    }

    /// Entries of a directory.
    #[must_use]
    pub fn entries(&self, ino: Ino) -> Option<&BTreeMap<OsString, Ino>> {
        match &self.get(ino)?.node {
            Node::Directory(entries) => Some(entries),
            _ => None,
        }
    }

    /// The inode with a name in a directory.
    #[must_use]
    pub fn lookup(&self, parent: Ino, name: &OsStr) -> Option<Ino> {
        self.entries(parent)?.get(name).copied()
    }

    /// Adds an inode without a name.
    pub fn insert(&mut self, ino: Ino, inode: Inode) {
        self.inodes.insert(ino, Arc::new(inode));
    }

    /// Gives an inode a name; the inode that had the name loses it.
    pub fn enter(&mut self, parent: Ino, name: &OsStr, ino: Ino) {
        self.leave(parent, name);
        if let Some(Node::Directory(entries)) = self.get_mut(parent).map(|inode| &mut inode.node) {
            entries.insert(name.to_owned(), ino);
            if let Some(inode) = self.get_mut(ino) {
                inode.links += 1;
            }
        }
    }

    /// Removes a name; returns the inode that had it, which stays until [`Image::drop_unnamed`].
    pub fn leave(&mut self, parent: Ino, name: &OsStr) -> Option<Ino> {
        let Node::Directory(entries) = &mut self.get_mut(parent)?.node else {
            return None;
        };
        let ino = entries.remove(name)?;
        if let Some(inode) = self.get_mut(ino) {
            inode.links = inode.links.saturating_sub(1);
        }
        Some(ino)
    }

    /// Removes an inode without names.
    pub fn drop_unnamed(&mut self, ino: Ino) {
        if self.get(ino).is_some_and(|inode| inode.links == 0) {
            self.inodes.remove(&ino);
        }
    }

    /// The largest number in use.
    #[must_use]
    pub fn last_ino(&self) -> Ino {
        self.inodes.keys().copied().max().unwrap_or(ROOT)
    }

    /// Bytes of all pages that hold data, shared or not.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        let contents = self.inodes.values().map(|inode| match &inode.node {
            Node::File(content) => content.allocated(),
            _ => 0,
        });
        contents.sum()
    }

    /// The path below the root of every named inode; of several names the first.
    #[must_use]
    pub fn paths(&self) -> HashMap<Ino, PathBuf> {
        let mut paths = HashMap::from([(ROOT, PathBuf::new())]);
        let mut folders = vec![ROOT];
        while let Some(folder) = folders.pop() {
            let base = paths.get(&folder).cloned().unwrap_or_default();
            for (name, &ino) in self.entries(folder).into_iter().flatten() {
                paths.entry(ino).or_insert_with(|| base.join(name));
                if self.entries(ino).is_some() {
                    folders.push(ino);
                }
            }
        }
        paths
    }
}
