//! Facts about this machine, read from the kernel's files.
//!
//! What cannot be read is left out; nothing here can fail.

use std::fs;
use std::path::{Path, PathBuf};

use dbduel_record::facts::Host;

/// Reads the facts. `place` is where the servers' data will be.
#[must_use]
pub fn read(place: &Path) -> Host {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mount = mount_of(place);
    let device = mount.as_ref().and_then(|mount| block_device(&mount.source));
    let queue = device.as_ref().map(|device| device.join("queue"));
    let in_queue = |file: &str| queue.as_ref().and_then(|queue| line(&queue.join(file)));
    Host {
        cpu_model: field(&cpuinfo, "model name"),
        cpus: nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN)
            .ok()
            .flatten()
            .map(|n| n as u32),
        threads_per_core: line(Path::new(
            "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        ))
        .map(|list| count_of_list(&list)),
        sockets: Some(distinct(&cpuinfo, "physical id")).filter(|&count| count > 0),
        governor: line(Path::new(
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        )),
        memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
            let kib: u64 = field(&text, "MemTotal")?
                .strip_suffix(" kB")?
                .trim()
                .parse()
                .ok()?;
            Some(kib * 1024)
        }),
        kernel: line(Path::new("/proc/sys/kernel/osrelease")),
        distribution: fs::read_to_string("/etc/os-release").ok().and_then(|text| {
            let name = text
                .lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
            Some(name.trim_matches('"').to_owned())
        }),
        transparent_huge_pages: line(Path::new("/sys/kernel/mm/transparent_hugepage/enabled"))
            .and_then(|t| chosen(&t)),
        virtualisation: cpuinfo
            .lines()
            .any(|line| line.starts_with("flags") && line.contains(" hypervisor"))
            .then(|| {
                line(Path::new("/sys/class/dmi/id/sys_vendor"))
                    .unwrap_or_else(|| "hypervisor".to_owned())
            }),
        file_system: mount.as_ref().map(|mount| mount.file_system.clone()),
        mount_options: mount.as_ref().map(|mount| mount.options.clone()),
        block_device: mount.as_ref().map(|mount| mount.source.clone()),
        rotational: in_queue("rotational").map(|value| value == "1"),
        io_scheduler: in_queue("scheduler")
            .and_then(|schedulers| chosen(&schedulers).or(Some(schedulers))),
        write_cache: in_queue("write_cache"),
        open_files_limit: nix::sys::resource::getrlimit(
            nix::sys::resource::Resource::RLIMIT_NOFILE,
        )
        .ok()
        .map(|(_, hard)| hard),
        cgroup_memory_bytes: line(Path::new("/sys/fs/cgroup/memory.max"))
            .and_then(|value| value.parse().ok()),
        cgroup_cpus: line(Path::new("/sys/fs/cgroup/cpu.max")).and_then(|value| {
            let (quota, period) = value.split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
        }),
    }
}

/// The directory in `/sys` of the whole disk under `place`; `None` for a file system without one.
#[must_use]
pub fn disk_of(place: &Path) -> Option<PathBuf> {
    block_device(&mount_of(place)?.source)
}

/// Number of processors that the system schedules on; at least 1.
#[must_use]
pub fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

/// Bytes that an ordinary process may still write below `path`.
///
/// # Errors
/// When the file system cannot be asked.
pub fn free_disk_bytes(path: &Path) -> nix::Result<u64> {
    let facts = nix::sys::statvfs::statvfs(path)?;
    Ok(facts.blocks_available() * facts.fragment_size())
}

struct Mount {
    source: String,
    file_system: String,
    options: String,
}

/// The mount that holds `place`, or the nearest existing directory above it.
fn mount_of(place: &Path) -> Option<Mount> {
    let existing = place
        .ancestors()
        .find_map(|path| fs::canonicalize(path).ok())?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut best: Option<(usize, Mount)> = None;
    for entry in mounts.lines() {
        let mut words = entry.split(' ');
        let (Some(source), Some(point), Some(file_system), Some(options)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let point = point.replace("\\040", " ");
        // Later mounts cover earlier ones at the same point.
        if existing.starts_with(&point)
            && best
                .as_ref()
                .is_none_or(|(length, _)| point.len() >= *length)
        {
            let mount = Mount {
                source: source.to_owned(),
                file_system: file_system.to_owned(),
                options: options.to_owned(),
            };
            best = Some((point.len(), mount));
        }
    }
    best.map(|(_, mount)| mount)
}

/// The directory in `/sys` of the whole disk behind a device file.
fn block_device(source: &str) -> Option<PathBuf> {
    let name = fs::canonicalize(source)
        .ok()?
        .file_name()?
        .to_string_lossy()
        .into_owned();
    let device = fs::canonicalize(Path::new("/sys/class/block").join(name)).ok()?;
    // A partition has no queue of its own; its parent does.
    device
        .ancestors()
        .take(2)
        .find(|path| path.join("queue").is_dir())
        .map(Path::to_owned)
}

fn line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The value after `name :` in the style of `/proc` files.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn distinct(text: &str, name: &str) -> u32 {
    let values: std::collections::BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
        .collect();
    values.len() as u32
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, after) = text.split_once('[')?;
    Some(after.split_once(']')?.0.to_owned())
}

/// How many processors a list such as `0-1,4` names.
fn count_of_list(list: &str) -> u32 {
    list.split(',')
        .map(|part| match part.split_once('-') {
            Some((first, last)) => {
                let (first, last): (u32, u32) =
                    (first.parse().unwrap_or(0), last.parse().unwrap_or(0));
                last.saturating_sub(first) + 1
            }
            None => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_counted() {
        assert_eq!(count_of_list("0"), 1);
        assert_eq!(count_of_list("0-1"), 2);
        assert_eq!(count_of_list("0-3,8-11"), 8);
    }

    #[test]
    fn the_chosen_word_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn this_machine_has_memory_processors_and_a_file_system() {
        let host = read(Path::new("/"));
        assert!(host.memory_bytes.unwrap() > 1 << 20);
        assert!(host.cpus.unwrap() >= 1);
        assert!(host.file_system.is_some());
        assert!(free_disk_bytes(Path::new("/")).unwrap() > 0);
    }
}
