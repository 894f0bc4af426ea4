//! The operating system: kernel, memory, settings that affect databases, and the limits of this process.

use dbduel_record::facts::Host;

use super::files::{Files, chosen, field};

/// Recorded kernel settings.
const SETTINGS: &[&str] = &[
    "vm.swappiness",
    "vm.dirty_ratio",
    "vm.dirty_bytes",
    "vm.dirty_background_ratio",
    "vm.dirty_background_bytes",
    "vm.overcommit_memory",
    "vm.nr_hugepages",
    "kernel.numa_balancing",
    "kernel.sched_autogroup_enabled",
    "kernel.io_uring_disabled",
    "fs.aio-max-nr",
    "fs.aio-nr",
];

/// Prefixes of the recorded kernel parameters.
const PARAMETERS: &[&str] = &[
    "mitigations",
    "nosmt",
    "nopti",
    "pti",
    "nospectre",
    "spectre",
    "spec_",
    "l1tf",
    "mds",
    "retbleed",
    "tsx",
    "isolcpus",
    "nohz",
    "rcu_nocb",
    "maxcpus",
    "nr_cpus",
    "mem",
    "numa",
    "transparent_hugepage",
    "hugepages",
    "default_hugepagesz",
    "hugepagesz",
    "intel_pstate",
    "amd_pstate",
    "intel_idle",
    "processor.",
    "idle",
    "cpuidle",
    "clocksource",
    "tsc",
    "elevator",
    "preempt",
    "psi",
    "cgroup",
    "nvme",
];

/// Limit of the nesting of control groups.
const GROUP_DEPTH_MAX: usize = 32;

/// Adds the facts of the system.
pub(super) fn read(files: &Files, host: &mut Host) {
    let memory = files.text("/proc/meminfo");
    let kib = |name: &str| {
        let text = field(&memory, name)?;
        let kib: u64 = text.strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    host.memory_bytes = kib("MemTotal");
    host.swap_bytes = kib("SwapTotal");
    host.kernel = files.line("/proc/sys/kernel/osrelease");
    host.kernel_command_line = files.line("/proc/cmdline").map(|line| relevant(&line));
    host.clock_source =
        files.line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    host.distribution = files.text("/etc/os-release").lines().find_map(|line| {
        let name = line.strip_prefix("PRETTY_NAME=")?;
        Some(name.trim_matches('"').to_owned())
    });
    let huge =
        |file: &str| chosen(&files.line(&format!("/sys/kernel/mm/transparent_hugepage/{file}"))?);
    host.transparent_huge_pages = huge("enabled");
    host.transparent_huge_pages_defrag = huge("defrag");
    for name in SETTINGS {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        if let Some(value) = files.line(&file) {
            host.kernel_settings.insert((*name).to_owned(), value);
        }
    }
    limits(files, host);
}

/// The parameters that affect databases. The others describe how the machine boots and may contain secrets.
fn relevant(line: &str) -> String {
    let is_relevant = |parameter: &&str| {
        let name = parameter
            .split_once('=')
            .map_or(*parameter, |(name, _)| name);
        PARAMETERS.iter().any(|known| name.starts_with(known))
    };
    let kept: Vec<&str> = line.split(' ').filter(is_relevant).collect();
    if kept.is_empty() {
        "nothing that moves databases".to_owned()
    } else {
        kept.join(" ")
    }
}

fn limits(files: &Files, host: &mut Host) {
    let of_process = files.text("/proc/self/limits");
    host.open_files_limit = of_process.lines().find_map(|line| {
        let rest = line.strip_prefix("Max open files")?;
        rest.split_ascii_whitespace().nth(1)?.parse().ok()
    });
    host.allowed_cpus = field(&files.text("/proc/self/status"), "Cpus_allowed_list");
    let groups = files.text("/proc/self/cgroup");
    if let Some(path) = groups.lines().find_map(|line| line.strip_prefix("0::"))
        && files.path("/sys/fs/cgroup/cgroup.controllers").is_file()
    {
        version_2(files, path, host);
    } else if groups.lines().any(|line| line.contains(":memory:")) {
        version_1(files, &groups, host);
    }
}

/// The tightest limit of all groups from this process's to the root.
fn version_2(files: &Files, path: &str, host: &mut Host) {
    host.cgroup_version = Some(2);
    let mut group = path.trim_end_matches('/');
    for _ in 0..GROUP_DEPTH_MAX {
        let of = |file: &str| files.line(&format!("/sys/fs/cgroup{group}/{file}"));
        let memory = of("memory.max").and_then(|value| value.parse::<u64>().ok());
        let cpus = of("cpu.max").and_then(|value| {
            let (quota, period) = value.split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
        });
        tighten(host, memory, cpus);
        match group.rsplit_once('/') {
            Some((above, _)) => group = above,
            None => break,
        }
    }
}

fn version_1(files: &Files, groups: &str, host: &mut Host) {
    host.cgroup_version = Some(1);
    let of = |controller: &str, file: &str| {
        let path = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let names = parts.nth(1)?;
            let is_it = names.split(',').any(|name| name == controller);
            parts.next().filter(|_| is_it)
        })?;
        // Inside a container the path is that of the host, and the group itself is the root.
        [path, ""].into_iter().find_map(|path| {
            let folder = format!("/sys/fs/cgroup/{controller}{}", path.trim_end_matches('/'));
            files.number::<i64>(&format!("{folder}/{file}"))
        })
    };
    // Without a limit stands the largest number of pages.
    let memory =
        of("memory", "memory.limit_in_bytes").filter(|&bytes| bytes > 0 && bytes < i64::MAX / 2);
    let quota = of("cpu", "cpu.cfs_quota_us").filter(|&quota| quota > 0);
    let period = of("cpu", "cpu.cfs_period_us").filter(|&period| period > 0);
    let cpus = quota
        .zip(period)
        .map(|(quota, period)| quota as f64 / period as f64);
    tighten(host, memory.map(i64::unsigned_abs), cpus);
}

fn tighten(host: &mut Host, memory: Option<u64>, cpus: Option<f64>) {
    host.cgroup_memory_bytes = host.cgroup_memory_bytes.into_iter().chain(memory).min();
    host.cgroup_cpus = match (host.cgroup_cpus, cpus) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(contents: &[(&str, &str)]) -> Host {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in contents {
            let path = root.path().join(file.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut host = Host::default();
        read(&Files::below(root.path()), &mut host);
        host
    }

    #[test]
    fn the_tightest_group_on_the_way_up_limits() {
        let host = machine(&[
            ("/proc/self/cgroup", "0::/slice/service\n"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
            ("/sys/fs/cgroup/slice/service/memory.max", "max\n"),
            ("/sys/fs/cgroup/slice/service/cpu.max", "400000 100000\n"),
            ("/sys/fs/cgroup/slice/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/slice/cpu.max", "150000 100000\n"),
        ]);
        assert_eq!(
            (host.cgroup_version, host.cgroup_memory_bytes),
            (Some(2), Some(1 << 30))
        );
        assert_eq!(host.cgroup_cpus, Some(1.5));
    }

    #[test]
    fn older_control_groups_say_no_limit_with_a_huge_number() {
        let groups = "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n";
        let host = machine(&[
            ("/proc/self/cgroup", groups),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(
            (host.cgroup_version, host.cgroup_memory_bytes),
            (Some(1), None)
        );
        assert_eq!(host.cgroup_cpus, Some(0.5));
    }

    #[test]
    fn limits_and_settings_are_read_and_nothing_is_made_up() {
        let host = machine(&[
            (
                "/proc/self/limits",
                "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 4096                 files\n",
            ),
            ("/proc/sys/vm/swappiness", "10\n"),
            (
                "/proc/cmdline",
                "root=/dev/sda1 token=x mitigations=off nosmt\n",
            ),
            ("/proc/meminfo", "MemTotal:  1024 kB\nSwapTotal: 0 kB\n"),
            (
                "/sys/kernel/mm/transparent_hugepage/defrag",
                "always [never]\n",
            ),
        ]);
        assert_eq!(
            (host.open_files_limit, host.memory_bytes, host.swap_bytes),
            (Some(4096), Some(1 << 20), Some(0))
        );
        assert_eq!(host.kernel_settings["vm.swappiness"], "10");
        assert_eq!(host.transparent_huge_pages_defrag.as_deref(), Some("never"));
        assert_eq!(
            host.kernel_command_line.as_deref(),
            Some("mitigations=off nosmt")
        );
        assert_eq!((host.kernel, host.cgroup_version), (None, None));
    }
}
