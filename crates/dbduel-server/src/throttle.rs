//! Limits a server's reads and writes by its own control group (version 2 of the kernel's interface, `io.max`).
//!
//! A group can be created below that of this process when the latter has the io controller and is writable. Otherwise
//! the contest is refused with the reason: an ineffective limit would make every figure wrong.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail};
use dbduel_machine::host;
use dbduel_record::plan::IoLimit;

use super::process::ProcessIdentity;

/// Group that this process moves to when its own must hold no process.
const OWN_GROUP: &str = "dbduel-lab";
/// Name prefix of groups for servers.
const SERVER_GROUP: &str = "dbduel-server-";
/// Advice where no group can be created.
const REMEDY: &str = "run dbduel in its own control group with the controllers io and memory, for example `systemd-run --user --scope -p \
     Delegate=yes dbduel run …`, or omit `server_io`";

/// Distinguishes the groups of one process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A control group with a limit; dropping it removes it, once it has no process.
#[derive(Debug)]
pub struct Throttle {
    group: PathBuf,
}

impl Throttle {
    /// Creates a group with a limit for the disk under `place`.
    ///
    /// # Errors
    /// When this machine has no such groups, they are not writable, or `place` is on no disk.
    pub fn new(place: &Path, limit: IoLimit) -> Result<Self> {
        let attempt = || {
            let parent = own_group(
                &fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
                &fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
            )?;
            Self::below(&parent, &device(place)?, limit)
        };
        attempt().with_context(|| {
            format!(
                "the servers cannot be limited to {}; {REMEDY}",
                limit.label()
            )
        })
    }

    /// Creates the group below `parent`, for the device with these numbers.
    fn below(parent: &Path, device: &str, limit: IoLimit) -> Result<Self> {
        enable_controllers(parent)?;
        clear_abandoned(parent);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{SERVER_GROUP}{}-{number}", std::process::id());
        let group = parent.join(name);
        fs::create_dir(&group)
            .with_context(|| format!("could not create the control group `{}`", group.display()))?;
        let throttle = Self { group };
        let file = throttle.group.join("io.max");
        let line = io_max(device, limit);
        fs::write(&file, &line)
            .with_context(|| format!("could not write `{line}` to `{}`", file.display()))?;
        let now = fs::read_to_string(&file)
            .with_context(|| format!("could not read `{}`", file.display()))?;
        let is_of_device = |line: &str| line.split(' ').next() == Some(device);
        if !now.lines().any(is_of_device) {
            bail!(
                "`{}` accepted `{line}` but does not contain it",
                file.display()
            );
        }
        Ok(throttle)
    }

    /// A file that moves a process into the group when the process writes `0` to it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn entrance(&self) -> io::Result<File> {
        File::options()
            .write(true)
            .open(self.group.join("cgroup.procs"))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // While a server is still in it the kernel refuses; the next throttle removes it then.
        let _ = fs::remove_dir(&self.group);
    }
}

/// The line for `io.max`.
fn io_max(device: &str, limit: IoLimit) -> String {
    let amount = |value: Option<u64>| value.map_or_else(|| "max".to_owned(), |v| v.to_string());
    let (bytes, operations) = (amount(limit.bytes_per_s), amount(limit.operations_per_s));
    format!("{device} rbps={bytes} wbps={bytes} riops={operations} wiops={operations}")
}

/// The directory of this process's group, or of its parent if the process moved to a subgroup before.
fn own_group(mounts: &str, groups: &str) -> Result<PathBuf> {
    let own = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .context("this system has no control groups of version 2")?;
    let (root, point) = mounts
        .lines()
        .filter(|line| line.contains(" - cgroup2 "))
        .find_map(|line| {
            let mut words = line.split(' ').skip(3);
            Some((words.next()?, words.next()?))
        })
        .context("control groups of version 2 are not mounted")?;
    let below = Path::new(own)
        .strip_prefix(root)
        .unwrap_or_else(|_| Path::new(own.trim_start_matches('/')));
    let group = Path::new(point).join(below);
    Ok(match group.file_name() {
        Some(name) if name == OWN_GROUP => group.parent().unwrap_or(&group).to_owned(),
        _ => group,
    })
}

/// Controllers that a limit needs: the kernel charges page cache writes to a group only when it has both.
const CONTROLLERS: [&str; 2] = ["io", "memory"];

/// Enables the controllers for the groups below `parent`.
fn enable_controllers(parent: &Path) -> Result<()> {
    let words = |file: &str| -> Result<Vec<String>> {
        let path = parent.join(file);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("could not read `{}`", path.display()))?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    };
    let lacks = |words: &[String]| {
        CONTROLLERS
            .into_iter()
            .find(|needed| words.iter().all(|word| word != needed))
    };
    if lacks(&words("cgroup.subtree_control")?).is_none() {
        return Ok(());
    }
    let controllers = words("cgroup.controllers")?;
    if let Some(missing) = lacks(&controllers) {
        bail!(
            "the control group `{}` has no {missing} controller ({})",
            parent.display(),
            match controllers.as_slice() {
                [] => "it has none at all".to_owned(),
                some => format!("it has {}", some.join(", ")),
            }
        );
    }
    let file = parent.join("cgroup.subtree_control");
    let controllers = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
    let enable = || {
        File::options()
            .write(true)
            .open(&file)?
            .write_all(controllers.as_bytes())
    };
    if enable().is_ok() {
        return Ok(());
    }
    // A group with processes of its own hands no controller down, so we leave it for one below.
    let aside = parent.join(OWN_GROUP);
    fs::create_dir_all(&aside)
        .and_then(|()| fs::write(aside.join("cgroup.procs"), std::process::id().to_string()))
        .and_then(|()| enable())
        .with_context(|| {
            format!(
                "could not enable the controllers below `{}`",
                parent.display()
            )
        })
}

/// Removes the groups of processes that were killed.
fn clear_abandoned(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        if is_abandoned(&entry.file_name().to_string_lossy()) {
            // The kernel refuses while there is a process in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// True for the name of a group whose creator is gone.
fn is_abandoned(name: &str) -> bool {
    let maker = name
        .strip_prefix(SERVER_GROUP)
        .and_then(|rest| rest.split('-').next()?.parse().ok());
    maker.is_some_and(|pid| ProcessIdentity::of(pid).is_none())
}

/// The numbers of the whole disk under `place`, as `MAJOR:MINOR`.
fn device(place: &Path) -> Result<String> {
    let Some(disk) = host::disk_of(place) else {
        bail!(
            "`{}` is on a file system without its own disk; move dbduel's home to one with a disk",
            place.display()
        );
    };
    let file = disk.join("dev");
    let numbers = fs::read_to_string(&file)
        .with_context(|| format!("could not read `{}`", file.display()))?;
    Ok(numbers.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: IoLimit = IoLimit {
        bytes_per_s: Some(20 << 20),
        operations_per_s: None,
    };

    /// A directory that has the files of a control group; new groups below it get theirs as real ones do.
    fn group(controllers: &str, handed_down: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(dir.path().join("cgroup.subtree_control"), handed_down).unwrap();
        dir
    }

    #[test]
    fn the_own_group_is_found_where_it_is_mounted() {
        let mounts = "25 1 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
        let found = |groups: &str| own_group(mounts, groups).map_err(|error| error.to_string());
        assert_eq!(
            found("0::/user.slice/a.scope\n").unwrap(),
            Path::new("/sys/fs/cgroup/user.slice/a.scope")
        );
        assert_eq!(
            found("0::/a.scope/dbduel-lab\n").unwrap(),
            Path::new("/sys/fs/cgroup/a.scope")
        );
        assert!(
            found("9:cpu:/\n")
                .unwrap_err()
                .contains("no control groups")
        );
        assert!(
            own_group("", "0::/\n")
                .unwrap_err()
                .to_string()
                .contains("not mounted")
        );
    }

    #[test]
    fn a_limit_holds_for_reading_and_for_writing() {
        assert_eq!(
            io_max("8:0", LIMIT),
            "8:0 rbps=20971520 wbps=20971520 riops=max wiops=max"
        );
        let dir = group("cpu io memory", "io memory");
        let throttle = Throttle::below(dir.path(), "8:0", LIMIT).unwrap();
        let written = fs::read_to_string(throttle.group.join("io.max")).unwrap();
        assert_eq!(written, io_max("8:0", LIMIT));
    }

    #[test]
    fn groups_without_the_controller_are_refused_with_the_reason() {
        for (controllers, reason) in [
            ("cpu memory", "no io controller (it has cpu, memory)"),
            ("io", "no memory controller (it has io)"),
            ("", "none at all"),
        ] {
            let dir = group(controllers, "");
            let refused = Throttle::below(dir.path(), "8:0", LIMIT).unwrap_err();
            assert!(refused.to_string().contains(reason), "{refused}");
        }
    }

    #[test]
    fn the_controller_is_handed_down_where_it_is_not_yet() {
        let dir = group("io memory", "io");
        enable_controllers(dir.path()).unwrap();
        let written = fs::read_to_string(dir.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(written, "+io +memory");
    }

    #[test]
    fn the_group_of_a_living_process_is_left_for_its_server() {
        let dir = group("", "");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let of = |pid: u32| format!("{SERVER_GROUP}{pid}-0");
        let (ours, dead) = (of(std::process::id()), of(child.id()));
        for name in [&ours, &dead] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        clear_abandoned(dir.path());
        assert!(dir.path().join(ours).exists() && !dir.path().join(dead).exists());
    }
}
