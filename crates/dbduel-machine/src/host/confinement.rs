//! The processors that processes can be confined to.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::cpus;

/// A processor that does not exist or is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no processor {number} here; there are {count}, from {first} to {last}")]
pub struct MissingProcessor {
    number: u32,
    count: usize,
    first: u32,
    last: u32,
}

/// Numbers of the processors that processes may be confined to, ascending; not limited to this process's own affinity.
#[must_use]
pub fn processors() -> Vec<u32> {
    // The kernel reduces the request to what is allowed. On a thread of its own, because a thread keeps its affinity.
    let asked = std::thread::spawn(|| {
        let mut all = CpuSet::new();
        for number in 0..CpuSet::count() {
            all.set(number)?;
        }
        sched_setaffinity(Pid::from_raw(0), &all)?;
        sched_getaffinity(Pid::from_raw(0))
    });
    let Ok(Ok(set)) = asked.join() else {
        return (0..cpus()).collect();
    };
    let numbers = 0..CpuSet::count();
    numbers
        .filter(|number| set.is_set(*number).unwrap_or(false))
        .map(|number| number as u32)
        .collect()
}

/// Checks that all of `wanted` are among `processors`.
///
/// # Errors
/// The first missing one.
pub fn find_processors(wanted: &[u32], processors: &[u32]) -> Result<(), MissingProcessor> {
    let missing = wanted.iter().find(|number| !processors.contains(number));
    missing.map_or(Ok(()), |&number| {
        Err(MissingProcessor {
            number,
            count: processors.len(),
            first: processors.first().copied().unwrap_or_default(),
            last: processors.last().copied().unwrap_or_default(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_confined_to_every_processor_and_to_no_other() {
        let processors = processors();
        assert!(processors.len() >= cpus() as usize, "{processors:?}");
        let confine = |number: u32| {
            let thread = std::thread::spawn(move || {
                let mut set = CpuSet::new();
                set.set(number as usize)?;
                sched_setaffinity(Pid::from_raw(0), &set)
            });
            thread.join().unwrap()
        };
        for &number in &processors {
            assert_eq!(confine(number), Ok(()));
        }
        let beyond = processors.last().unwrap() + 1;
        assert!(confine(beyond).is_err());
        assert_eq!(find_processors(&processors, &processors), Ok(()));
        let missing = find_processors(&[processors[0], beyond], &processors);
        let said = missing.unwrap_err().to_string();
        assert!(
            said.contains(&format!("no processor {beyond} here")),
            "{said}"
        );
    }
}
