//! The kernel's queue for reads and writes of files (`io_submit`): the part that the test needs.
//!
//! Uses system calls, because the C library has no functions for them. Each pending request has its own buffer.

use std::ffi::{c_long, c_ulong};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;
use nix::libc;

use super::QUEUE_TIMEOUT;
use super::access::Buffer;
use super::files::FileError;

const READ: u16 = 0;
const WRITE: u16 = 1;
/// Number of requests per system call.
const ONE: c_long = 1;

/// `struct iocb` on little-endian machines.
#[repr(C)]
#[derive(Debug, Default)]
struct Request {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: i16,
    file: u32,
    address: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event_file: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    data: u64,
    request: u64,
    result: i64,
    more: i64,
}

/// A queue of one worker.
pub(super) struct Queue {
    context: c_ulong,
    slots: Vec<Slot>,
    free: Vec<usize>,
    events: Vec<Event>,
}

struct Slot {
    buffer: Buffer,
    bytes: u64,
}

impl Queue {
    pub(super) fn new(backlog: u32, buffer_bytes: u64) -> Result<Self, FileError> {
        let backlog = backlog.max(1);
        let mut context: c_ulong = 0;
        // SAFETY: the kernel writes one word into `context`, which lives through the call.
        let status =
            unsafe { libc::syscall(libc::SYS_io_setup, c_long::from(backlog), &raw mut context) };
        if status < 0 {
            return Err(FileError::Queue {
                backlog,
                source: io::Error::last_os_error(),
            });
        }
        let slots = (0..backlog).map(|_| Slot {
            buffer: Buffer::of_bytes(buffer_bytes),
            bytes: 0,
        });
        Ok(Queue {
            context,
            slots: slots.collect(),
            free: (0..backlog as usize).collect(),
            events: vec![Event::default(); backlog as usize],
        })
    }

    /// Queues a read; waits for room when the queue is full.
    pub(super) fn read(&mut self, file: &File, offset: u64, bytes: u64) -> io::Result<()> {
        self.submit(READ, file, offset, bytes, None)
    }

    /// Queues a write; waits for room when the queue is full.
    pub(super) fn write(&mut self, file: &File, offset: u64, content: &[u8]) -> io::Result<()> {
        self.submit(WRITE, file, offset, content.len() as u64, Some(content))
    }

    fn submit(
        &mut self,
        operation: u16,
        file: &File,
        offset: u64,
        bytes: u64,
        content: Option<&[u8]>,
    ) -> io::Result<()> {
        while self.free.is_empty() {
            self.reap()?;
        }
        let Some(number) = self.free.pop() else {
            return Err(io::Error::other("the queue has no room"));
        };
        let slot = &mut self.slots[number];
        slot.bytes = bytes;
        let buffer = slot.buffer.bytes(bytes);
        if let Some(content) = content {
            buffer.copy_from_slice(content);
        }
        let mut request = Request {
            data: number as u64,
            operation,
            file: file.as_raw_fd().unsigned_abs(),
            address: buffer.as_mut_ptr() as u64,
            bytes,
            offset: i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?,
            ..Request::default()
        };
        let mut list = [&raw mut request];
        // SAFETY: the kernel copies the request during the call. The buffer that it names belongs to a slot that is
        // not free and is not touched before its event has come; dropping the queue waits for all of them.
        let status =
            unsafe { libc::syscall(libc::SYS_io_submit, self.context, ONE, list.as_mut_ptr()) };
        if status == 1 {
            return Ok(());
        }
        self.free.push(number);
        Err(io::Error::last_os_error())
    }

    /// Waits for all requests.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        while self.free.len() < self.slots.len() {
            self.reap()?;
        }
        Ok(())
    }

    /// Waits for at least one request, and checks the results of those that are done.
    fn reap(&mut self) -> io::Result<()> {
        let timeout = libc::timespec {
            tv_sec: QUEUE_TIMEOUT.as_secs() as libc::time_t,
            tv_nsec: 0,
        };
        // SAFETY: the kernel writes at most as many events as there is room for, during the call.
        let count = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                ONE,
                self.events.len() as c_long,
                self.events.as_mut_ptr(),
                &raw const timeout,
            )
        };
        match count {
            0 => {
                let waited = QUEUE_TIMEOUT.as_secs();
                let why = format!("no request completed within {waited} s; is the device stuck?");
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            count if count < 0 => {
                return match Errno::last() {
                    Errno::EINTR => Ok(()),
                    error => Err(error.into()),
                };
            }
            _ => {}
        }
        let mut failed = None;
        for event in &self.events[..count as usize] {
            let number = event.data as usize;
            self.free.push(number);
            let wanted = self.slots[number].bytes;
            if event.result < 0 {
                let code = i32::try_from(-event.result).unwrap_or(libc::EIO);
                failed = Some(io::Error::from_raw_os_error(code));
            } else if event.result.unsigned_abs() < wanted {
                let why = format!("only {} of {wanted} bytes were transferred", event.result);
                failed = Some(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the context is ours and is not used afterwards. The kernel waits for the requests under way, so
        // none of them reaches a buffer that is gone.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
