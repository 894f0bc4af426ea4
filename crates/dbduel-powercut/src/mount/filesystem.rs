//! The kernel's requests, mapped to operations of a volume.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use nix::libc;

use crate::change::NewNode;
use crate::image::{Inode, Node};
use crate::volume::{Volume, WriteMode};

/// How long the kernel may cache names and attributes: it makes all changes itself.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Sizes that `statfs` reports, blocks of 4 KiB: 1 TiB, all of it free.
const BLOCKS: u64 = 1 << 28;
const BLOCK: u32 = 4096;

pub struct Server {
    volume: Arc<Volume>,
}

impl Server {
    pub fn new(volume: Arc<Volume>) -> Self {
        Server { volume }
    }

    fn attributes(&self, ino: INodeNo) -> Result<FileAttr, Errno> {
        let attributes = self.volume.with(ino.0, |inode| attributes(ino, inode));
        attributes.map_err(code)
    }

    fn entry(&self, ino: Result<u64, nix::errno::Errno>, reply: ReplyEntry) {
        let found = ino
            .map_err(code)
            .and_then(|ino| self.attributes(INodeNo(ino)));
        match found {
            Ok(attributes) => reply.entry(&REMEMBERED, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }
}

fn code(error: nix::errno::Errno) -> Errno {
    Errno::from_i32(error as i32)
}

fn empty(result: Result<(), nix::errno::Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(code(error)),
    }
}

fn attributes(ino: INodeNo, inode: &Inode) -> FileAttr {
    let (size, allocated, kind, links) = match &inode.node {
        Node::File(content) => (
            content.size(),
            content.allocated(),
            FileType::RegularFile,
            inode.links,
        ),
        Node::Directory(_) => (4096, 4096, FileType::Directory, 2),
        Node::Link(target) => {
            let length = target.as_os_str().len() as u64;
            (length, 0, FileType::Symlink, inode.links)
        }
    };
    FileAttr {
        ino,
        size,
        blocks: allocated / 512,
        atime: inode.modified,
        mtime: inode.modified,
        ctime: inode.modified,
        crtime: UNIX_EPOCH,
        kind,
        perm: inode.mode as u16,
        nlink: links,
        uid: inode.uid,
        gid: inode.gid,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

impl Filesystem for Server {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Where the kernel lacks them it does the same work in another way. Not asked for: a cache that holds writes back.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(self.volume.lookup(parent.0, name), reply);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Ok(attributes) => reply.attr(&REMEMBERED, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _change: Option<SystemTime>,
        _backup: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = || {
            if mode.is_some() || uid.is_some() || gid.is_some() {
                self.volume.set_attributes(ino.0, mode, uid, gid)?;
            }
            if let Some(size) = size {
                self.volume.set_size(ino.0, size)?;
            }
            match modified {
                Some(TimeOrNow::SpecificTime(time)) => self.volume.set_modified(ino.0, time),
                Some(TimeOrNow::Now) => self.volume.set_modified(ino.0, SystemTime::now()),
                None => Ok(()),
            }
        };
        match change().map_err(code).and_then(|()| self.attributes(ino)) {
            Ok(attributes) => reply.attr(&REMEMBERED, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        match self.volume.target(ino.0) {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(error) => reply.error(code(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        let owner = (request.uid(), request.gid());
        match mode & libc::S_IFMT {
            libc::S_IFREG | 0 => {
                let mode = mode & !umask;
                let made = self
                    .volume
                    .create(parent.0, name, NewNode::File, mode, owner);
                self.entry(made, reply);
            }
            // Pipes, sockets and devices are no data.
            _ => reply.error(Errno::EPERM),
        }
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let owner = (request.uid(), request.gid());
        let node = NewNode::Directory;
        let made = self
            .volume
            .create(parent.0, name, node, mode & !umask, owner);
        self.entry(made, reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.volume.unlink(parent.0, name, false), reply);
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.volume.unlink(parent.0, name, true), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let owner = (request.uid(), request.gid());
        let node = NewNode::Link(target.to_owned());
        self.entry(
            self.volume.create(parent.0, name, node, 0o777, owner),
            reply,
        );
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return reply.error(Errno::EINVAL);
        }
        let may_replace = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        let (from, to) = ((parent.0, name), (new_parent.0, new_name));
        empty(self.volume.rename(from, to, may_replace), reply);
    }

    fn link(
        &self,
        _request: &Request,
        ino: INodeNo,
        parent: INodeNo,
        name: &OsStr,
        reply: ReplyEntry,
    ) {
        let linked = self.volume.link(ino.0, parent.0, name);
        self.entry(linked.map(|()| ino.0), reply);
    }

    fn open(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.volume.opened(ino.0);
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.volume.read(ino.0, offset, u64::from(size)) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(code(error)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mode = WriteMode {
            is_direct: flags.0 & libc::O_DIRECT != 0,
            is_durable: flags.0 & libc::O_DSYNC != 0,
        };
        match self.volume.write(ino.0, offset, data, mode) {
            // The kernel sends less than 4 GiB at once.
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(code(error)),
        }
    }

    /// Called when a file is closed, which makes nothing durable.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.volume.closed(ino.0);
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        empty(self.volume.sync(ino.0, data_only), reply);
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = match self.volume.names(ino.0) {
            Ok(names) => names,
            Err(error) => return reply.error(code(error)),
        };
        // Positions are inode numbers, not places in the list, so that a name that vanishes meanwhile hides no other.
        let dots = [(".".into(), ino.0, 1), ("..".into(), ino.0, 2)];
        let named = names.into_iter().map(|(name, ino)| (name, ino, ino + 2));
        let mut entries: Vec<(OsString, u64, u64)> = dots.into_iter().chain(named).collect();
        entries.sort_by_key(|(_, _, place)| *place);
        for (name, ino, place) in entries {
            let Ok(attributes) = self.attributes(INodeNo(ino)) else {
                continue;
            };
            if place > offset && reply.add(INodeNo(ino), place, attributes.kind, &name) {
                break;
            }
        }
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        empty(self.volume.sync(ino.0, data_only), reply);
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCKS, BLOCK, 255, BLOCK);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let owner = (request.uid(), request.gid());
        let node = NewNode::File;
        let made = self
            .volume
            .create(parent.0, name, node, mode & !umask, owner);
        let found = made
            .map_err(code)
            .and_then(|ino| self.attributes(INodeNo(ino)));
        match found {
            Ok(attributes) => {
                self.volume.opened(attributes.ino.0);
                let (handle, flags) = (FileHandle(0), FopenFlags::empty());
                reply.created(&REMEMBERED, &attributes, Generation(0), handle, flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let keeps_size = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        let zeroes = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        let known =
            libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !known != 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let end = offset.saturating_add(length);
        let allocate = || {
            if zeroes {
                self.volume.zero(ino.0, offset..end)?;
            }
            match keeps_size {
                true => Ok(()),
                false => self.volume.extend(ino.0, end),
            }
        };
        empty(allocate(), reply);
    }
}
