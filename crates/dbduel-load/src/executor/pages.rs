//! Large pages for what a process works on in turns.
//!
//! A processor keeps the places of a limited number of pages: its second-level TLB has typically 1,500 to 2,000 entries.
//! Clients that have hundreds of kilobytes each, of which an event touches a little here and there, presumably need more of
//! them, so that with every client that has its turn the places must be looked up again. That it is quicker on large pages
//! was measured (figures in `docs/load-path.md`); that this is the reason was not. Knows nothing of who has allocated what.

use std::fs;

/// Bytes of a large page. Where a kernel has them in another size, it refuses what is asked for here.
const LARGE: usize = 2 << 20;

/// Puts the memory that the whole process has allocated so far, all its threads, onto large pages and returns their
/// number. Takes about a millisecond for each; nothing but speed depends on it, so what the kernel refuses stays as it is
/// (before Linux 6.1 that is everything).
pub fn gather() -> usize {
    let Ok(mappings) = fs::read_to_string("/proc/self/maps") else {
        return 0;
    };
    mappings
        .lines()
        .filter_map(allocated)
        .flat_map(|(begin, end)| {
            let first = begin.next_multiple_of(LARGE);
            (first..end)
                .step_by(LARGE)
                .take_while(move |at| end - at >= LARGE)
        })
        .filter(|&at| {
            // SAFETY: the call moves the content of pages to other memory and changes nothing that the process sees. A
            // range that was given back meanwhile is refused.
            unsafe { libc::madvise(at as *mut libc::c_void, LARGE, libc::MADV_COLLAPSE) == 0 }
        })
        .count()
}

/// Begin and end of a mapping that may hold what was allocated: anonymous memory of this process alone.
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

    #[test]
    fn what_is_gathered_stays_as_it_is() {
        let bytes: Vec<u8> = (0..4 * LARGE).map(|place| (place % 251) as u8).collect();
        let pages = gather();
        // How many there are is up to the kernel.
        assert!(pages <= 4096, "{pages}");
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(place, &byte)| byte == (place % 251) as u8)
        );
    }
}
