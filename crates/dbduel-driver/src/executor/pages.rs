//! Large pages for memory that a process uses in turns.
//!
//! The second-level TLB of a processor typically has 1,500 to 2,000 entries. Clients that have hundreds of kilobytes
//! each, of which an event touches a little here and there, presumably need more, so that the pages of each client
//! must be looked up again at its turn. That it is quicker on large pages was measured (figures in
//! `docs/load-path.md`); that the TLB is the reason was not.

use std::fs;

/// Bytes of a large page. A kernel with another size refuses the requests made here.
const LARGE: usize = 2 << 20;

/// Moves the memory that the whole process has allocated so far onto large pages. Takes about a millisecond for each;
/// only speed depends on it, so refusals of the kernel are ignored (before Linux 6.1 it refuses everything).
pub fn gather() {
    let mappings = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let pages = mappings
        .lines()
        .filter_map(allocated)
        .flat_map(|(begin, end)| {
            let first = begin.next_multiple_of(LARGE);
            (first..end)
                .step_by(LARGE)
                .take_while(move |at| end - at >= LARGE)
        });
    for at in pages {
        // SAFETY: the call moves the content of pages to other memory and changes nothing that the process sees. A range
        // that was given back meanwhile is refused.
        unsafe { libc::madvise(at as *mut libc::c_void, LARGE, libc::MADV_COLLAPSE) };
    }
}

/// Begin and end of a mapping that may hold allocated memory: anonymous and private to this process.
fn allocated(mapping: &str) -> Option<(usize, usize)> {
    let mut words = mapping.split_ascii_whitespace();
    let range = words.next()?;
    let is_private = words.next()? == "rw-p";
    // After offset and device comes the file's number, and its name.
    let is_anonymous = words.nth(2)? == "0";
    let holds_allocations = words
        .next()
        .is_none_or(|name| name == "[heap]" || name.starts_with("[anon"));
    let (begin, end) = range.split_once('-')?;
    let address = |digits| usize::from_str_radix(digits, 16).ok();
    let range = (address(begin)?, address(end)?);
    (is_private && is_anonymous && holds_allocations).then_some(range)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_memory_of_the_process_alone_is_gathered() {
        let heap =
            "55d0c0400000-55d0c0a00000 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(allocated(heap), Some((0x55d0_c040_0000, 0x55d0_c0a0_0000)));
        let unnamed = "7f5e34000000-7f5e34021000 rw-p 00000000 00:00 0 ";
        assert_eq!(
            allocated(unnamed),
            Some((0x7f5e_3400_0000, 0x7f5e_3402_1000))
        );
        for other in [
            "7f5e34021000-7f5e38000000 ---p 00000000 00:00 0 ",
            "7f5e34000000-7f5e34021000 rw-s 00000000 00:00 0 ",
            "7f5e3c1fa000-7f5e3c1fc000 rw-p 001fa000 fe:00 394 /usr/lib/libc.so.6",
            "7ffd8a5e3000-7ffd8a604000 rw-p 00000000 00:00 0                          [stack]",
            "",
        ] {
            assert_eq!(allocated(other), None, "{other}");
        }
    }

    /// Memory of this many large pages on small pages, isolated from neighbours that it could be merged with.
    struct Mapping {
        whole: *mut libc::c_void,
        begin: *mut u8,
    }

    const LARGE_PAGES: usize = 3;

    /// Size with room to begin at a multiple of a large page, and a margin at either end.
    const WHOLE: usize = (LARGE_PAGES + 3) * LARGE;

    impl Mapping {
        fn new() -> Self {
            // SAFETY: a new mapping, of which only its own part is made accessible, and advice about that part.
            unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let whole = libc::mmap(std::ptr::null_mut(), WHOLE, libc::PROT_NONE, flags, -1, 0);
                assert_ne!(whole, libc::MAP_FAILED);
                let begin = whole.byte_add(LARGE);
                let begin = begin.byte_add(begin.align_offset(LARGE));
                let length = LARGE_PAGES * LARGE;
                let access = libc::PROT_READ | libc::PROT_WRITE;
                assert_eq!(libc::mprotect(begin, length, access), 0);
                // Some kernels would put it onto large pages by themselves, and others never.
                assert_eq!(libc::madvise(begin, length, libc::MADV_NOHUGEPAGE), 0);
                let mut mapping = Mapping {
                    whole,
                    begin: begin.cast(),
                };
                for (place, byte) in mapping.bytes().iter_mut().enumerate() {
                    *byte = (place % 251) as u8;
                }
                assert_eq!(libc::madvise(begin, length, libc::MADV_HUGEPAGE), 0);
                mapping
            }
        }

        fn bytes(&mut self) -> &mut [u8] {
            // SAFETY: so many bytes are mapped, and no other pointer to them exists.
            unsafe { std::slice::from_raw_parts_mut(self.begin, LARGE_PAGES * LARGE) }
        }

        /// Bytes of it that the kernel reports on large pages.
        fn on_large_pages(&self) -> usize {
            let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
            let head = format!("\n{:x}-", self.begin.addr());
            let own = smaps.split_once(&head).unwrap().1;
            let kilobytes = own.split_once("AnonHugePages:").unwrap().1;
            let kilobytes = kilobytes.split_ascii_whitespace().next().unwrap();
            kilobytes.parse::<usize>().unwrap() << 10
        }

        /// Why the kernel refuses large pages when asked directly; `None` when it does not.
        fn refusal(&self) -> Option<std::io::Error> {
            let (begin, length) = (self.begin.cast(), LARGE_PAGES * LARGE);
            // SAFETY: as for the call in `gather`.
            let answer = unsafe { libc::madvise(begin, length, libc::MADV_COLLAPSE) };
            (answer != 0).then(std::io::Error::last_os_error)
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: no pointer into it is left.
            unsafe { libc::munmap(self.whole, WHOLE) };
        }
    }

    #[test]
    fn what_is_gathered_is_on_large_pages_and_stays_as_it_is() {
        let mut mapping = Mapping::new();
        // Other tests of the process may gather at the same time, and the kernel then refuses one of the two.
        let is_large = (0..10).any(|_| {
            gather();
            mapping.on_large_pages() == LARGE_PAGES * LARGE
        });
        let as_before = |(place, byte): (usize, &mut u8)| usize::from(*byte) == place % 251;
        assert!(mapping.bytes().iter_mut().enumerate().all(as_before));
        if is_large {
            return;
        }
        // A machine that refuses is distinguished from a fault by asking it for the same without looking at anything else.
        let refusal = mapping.refusal();
        assert!(
            refusal.is_some(),
            "nothing was gathered that the kernel would have taken"
        );
        let mut out = std::io::stderr();
        let _ = writeln!(out, "SKIPPED: the kernel makes no large pages: {refusal:?}");
    }
}
