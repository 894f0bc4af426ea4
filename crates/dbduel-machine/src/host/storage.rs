//! Storage under a directory: file system, mount options, and disk.

use std::fs;
use std::path::{Path, PathBuf};

use dbduel_record::facts::Host;

use super::files::{Files, chosen};

const BLOCK: &str = "/sys/class/block";

struct Mount {
    source: String,
    file_system: String,
    options: String,
}

/// Adds the facts of the storage under `place`.
pub(super) fn read(files: &Files, place: &Path, host: &mut Host) {
    let Some(mount) = mount_of(&files.text("/proc/self/mounts"), place) else {
        return;
    };
    let room = place
        .ancestors()
        .find_map(|path| nix::sys::statvfs::statvfs(path).ok());
    if let Some(room) = room {
        host.file_system_bytes = Some(room.blocks() * room.fragment_size());
        host.file_system_free_bytes = Some(room.blocks_available() * room.fragment_size());
    }
    if let Some(disk) = whole_disk(files, &mount.source) {
        of_disk(files, &disk, host);
        host.disk = Some(disk);
    }
    host.file_system = Some(mount.file_system);
    host.mount_options = Some(mount.options);
    host.block_device = Some(mount.source);
}

/// The directory of the whole disk under `place`.
pub(super) fn disk_of(files: &Files, place: &Path) -> Option<PathBuf> {
    let mount = mount_of(&files.text("/proc/self/mounts"), place)?;
    let disk = whole_disk(files, &mount.source)?;
    Some(Path::new(BLOCK).join(disk))
}

fn of_disk(files: &Files, disk: &str, host: &mut Host) {
    let queue = |file: &str| format!("{BLOCK}/{disk}/queue/{file}");
    host.disk_model = files
        .line(&format!("{BLOCK}/{disk}/device/model"))
        .or_else(|| files.line(&format!("{BLOCK}/{disk}/device/name")));
    host.rotational = files.line(&queue("rotational")).map(|value| value == "1");
    host.io_scheduler = files
        .line(&queue("scheduler"))
        .and_then(|schedulers| chosen(&schedulers).or(Some(schedulers)));
    host.write_cache = files.line(&queue("write_cache"));
    host.read_ahead_bytes = files
        .number::<u64>(&queue("read_ahead_kb"))
        .map(|kib| kib * 1024);
    host.queue_requests = files.number(&queue("nr_requests"));
    host.disk_firmware = ["device/firmware_rev", "device/rev"]
        .into_iter()
        .find_map(|file| files.line(&format!("{BLOCK}/{disk}/{file}")));
    let driver = files.path(&format!("{BLOCK}/{disk}/device/driver"));
    host.disk_driver = fs::canonicalize(driver)
        .ok()
        .and_then(|driver| Some(driver.file_name()?.to_string_lossy().into_owned()));
    host.disk_atomic_write_bytes = files.number(&queue("atomic_write_unit_max_bytes"));
    host.force_unit_access = files.line(&queue("fua")).map(|value| value == "1");
    host.discard = files
        .number::<u64>(&queue("discard_max_bytes"))
        .map(|bytes| bytes > 0);
    let block = |file: &str| files.number::<u64>(&queue(file));
    host.disk_block_bytes = block("logical_block_size")
        .zip(block("physical_block_size"))
        .map(|(logical, physical)| [logical, physical]);
}

/// The mount that holds `place`, or the nearest existing directory above it.
fn mount_of(mounts: &str, place: &Path) -> Option<Mount> {
    let existing = place
        .ancestors()
        .find_map(|path| fs::canonicalize(path).ok())?;
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

/// The kernel's name of the whole disk behind a device file.
fn whole_disk(files: &Files, source: &str) -> Option<String> {
    let device = fs::canonicalize(source).ok()?;
    let name = device.file_name()?.to_string_lossy().into_owned();
    let node = fs::canonicalize(files.path(&format!("{BLOCK}/{name}"))).ok()?;
    // A partition has no queue of its own; its parent does.
    let disk = node
        .ancestors()
        .take(2)
        .find(|path| path.join("queue").is_dir())?;
    Some(disk.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_and_latest_mount_counts() {
        let mounts = "/dev/a / ext4 rw 0 0\n/dev/b /proc\\040x xfs ro 0 0\nproc /proc proc rw,nosuid 0 0\nbroken\n";
        let mount = mount_of(mounts, Path::new("/proc/no/such/place")).unwrap();
        assert_eq!(
            (mount.source.as_str(), mount.options.as_str()),
            ("proc", "rw,nosuid")
        );
        assert_eq!(
            mount_of(mounts, Path::new("/")).unwrap().file_system,
            "ext4"
        );
        assert!(mount_of("", Path::new("/")).is_none());
    }

    #[test]
    fn a_disk_is_described_by_its_queue() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("sys/class/block/nvme0n1");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(disk.join("device")).unwrap();
        for (file, text) in [
            ("queue/rotational", "0\n"),
            ("queue/scheduler", "[none] mq-deadline\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/read_ahead_kb", "128\n"),
            ("queue/nr_requests", "1023\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/physical_block_size", "4096\n"),
            ("device/model", "Fast 1\n"),
            ("device/firmware_rev", "2B4QEXM7\n"),
            ("queue/fua", "1\n"),
            ("queue/discard_max_bytes", "0\n"),
            ("queue/atomic_write_unit_max_bytes", "16384\n"),
        ] {
            fs::write(disk.join(file), text).unwrap();
        }
        let mut host = Host::default();
        of_disk(&Files::below(root.path()), "nvme0n1", &mut host);
        assert_eq!(
            (host.rotational, host.io_scheduler.as_deref()),
            (Some(false), Some("none"))
        );
        assert_eq!(
            (host.disk_model.as_deref(), host.read_ahead_bytes),
            (Some("Fast 1"), Some(131_072))
        );
        assert_eq!(
            (host.disk_firmware.as_deref(), host.disk_atomic_write_bytes),
            (Some("2B4QEXM7"), Some(16384))
        );
        assert_eq!(
            (host.force_unit_access, host.discard),
            (Some(true), Some(false))
        );
        assert_eq!(
            (host.queue_requests, host.disk_block_bytes),
            (Some(1023), Some([512, 4096]))
        );
    }
}
