//! Disclosure items about the machine.

use dbduel_record::store;

use super::List;

impl List<'_> {
    /// Hardware, storage and operating system.
    pub(super) fn machine(&mut self) {
        let host = self.record.host.clone();
        let hardware = [
            ("processor model", host.cpu_model.is_some()),
            ("sockets", host.sockets.is_some()),
            (
                "cores and processors",
                host.cpus.is_some() && host.cores.is_some(),
            ),
            (
                "whether simultaneous multithreading (hyper-threading) is on",
                host.smt.is_some() || host.threads_per_core.is_some(),
            ),
            ("memory nodes (NUMA)", host.numa_nodes.is_some()),
            ("frequency governor", host.governor.is_some()),
            ("turbo", host.turbo.is_some()),
            ("microcode", host.microcode.is_some()),
            ("mitigations", !host.mitigations.is_empty()),
            ("memory", host.memory_bytes.is_some()),
            ("memory speed", false),
            // A machine that shows its processor's flags and none of a hypervisor is a real one.
            (
                "virtualisation",
                host.virtualisation.is_some() || host.cpu_model.is_some(),
            ),
        ];
        self.add_host("hardware", &hardware);
        let storage = [
            ("block device", host.block_device.is_some()),
            ("disk model", host.disk_model.is_some()),
            ("firmware", host.disk_firmware.is_some()),
            ("driver", host.disk_driver.is_some()),
            ("rotating or not", host.rotational.is_some()),
            (
                "write cache and forced unit access",
                host.write_cache.is_some() && host.force_unit_access.is_some(),
            ),
            ("discard (TRIM)", host.discard.is_some()),
            ("atomic writes", host.disk_atomic_write_bytes.is_some()),
            ("I/O scheduler", host.io_scheduler.is_some()),
            ("block sizes", host.disk_block_bytes.is_some()),
            (
                "read-ahead and request queue",
                host.read_ahead_bytes.is_some() && host.queue_requests.is_some(),
            ),
            ("file system", host.file_system.is_some()),
            ("mount options", host.mount_options.is_some()),
            ("free space", host.file_system_free_bytes.is_some()),
            // Facts that are not collected are named all the same, for the reader.
            ("measured speed of the bare device", false),
        ];
        self.add_host("storage", &storage);
        let system = [
            ("distribution", host.distribution.is_some()),
            ("kernel", host.kernel.is_some()),
            ("kernel command line", host.kernel_command_line.is_some()),
            (
                "kernel settings (swappiness, dirty pages, asynchronous I/O)",
                !host.kernel_settings.is_empty(),
            ),
            (
                "transparent huge pages",
                host.transparent_huge_pages.is_some(),
            ),
            ("clock source", host.clock_source.is_some()),
            ("swap space", host.swap_bytes.is_some()),
            ("open file limit", host.open_files_limit.is_some()),
            ("control group limits", host.cgroup_version.is_some()),
        ];
        self.add_host("operating system", &system);
    }

    fn add_host(&mut self, section: &'static str, items: &[(&'static str, bool)]) {
        for (item, present) in items {
            self.add(section, item, *present, store::HOST);
        }
    }
}
