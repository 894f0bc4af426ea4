//! Processors: number, topology, and frequency settings.

use std::collections::BTreeSet;

use dbduel_record::facts::Host;

use super::files::{Files, count_of_list, distinct, field};

const CPU: &str = "/sys/devices/system/cpu";

/// Adds the facts of the processors.
pub(super) fn read(files: &Files, host: &mut Host) {
    let cpuinfo = files.text("/proc/cpuinfo");
    let online = files.line(&format!("{CPU}/online"));
    host.cpu_model = field(&cpuinfo, "model name");
    host.cpus = online.as_deref().map(count_of_list);
    host.threads_per_core = files
        .line(&format!("{CPU}/cpu0/topology/thread_siblings_list"))
        .map(|list| count_of_list(&list));
    host.sockets = Some(distinct(&cpuinfo, "physical id")).filter(|&count| count > 0);
    host.cores = cores(files);
    host.smt = files.line(&format!("{CPU}/smt/control"));
    host.microcode = field(&cpuinfo, "microcode");
    host.governor = files.line(&format!("{CPU}/cpu0/cpufreq/scaling_governor"));
    host.turbo = turbo(files);
    host.mitigations = mitigations(files);
    host.numa_nodes = files
        .line("/sys/devices/system/node/online")
        .map(|list| count_of_list(&list));
    let is_virtual = cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "hypervisor"));
    host.virtualisation = is_virtual.then(|| {
        files
            .line("/sys/class/dmi/id/sys_vendor")
            .unwrap_or_else(|| "hypervisor".to_owned())
    });
}

/// Number of cores of the online processors: distinct pairs of socket and core.
fn cores(files: &Files) -> Option<u32> {
    let names = files.names(CPU);
    let numbered = names.iter().filter(|name| {
        name.strip_prefix("cpu")
            .is_some_and(|rest| rest.parse::<u32>().is_ok())
    });
    let cores: BTreeSet<(String, String)> = numbered
        .filter_map(|name| {
            let of = |file: &str| files.line(&format!("{CPU}/{name}/topology/{file}"));
            Some((of("physical_package_id")?, of("core_id")?))
        })
        .collect();
    (!cores.is_empty()).then_some(cores.len() as u32)
}

/// State of turbo, `on` or `off`. Two drivers report it, one of them inverted.
fn turbo(files: &Files) -> Option<String> {
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    let forbidden = files.number::<u32>(&format!("{CPU}/intel_pstate/no_turbo"));
    let allowed = files.number::<u32>(&format!("{CPU}/cpufreq/boost"));
    forbidden
        .map(|no| word(no == 0))
        .or_else(|| allowed.map(|yes| word(yes != 0)))
}

fn mitigations(files: &Files) -> std::collections::BTreeMap<String, String> {
    let folder = format!("{CPU}/vulnerabilities");
    let names = files.names(&folder).into_iter();
    names
        .filter_map(|name| {
            let answer = files.line(&format!("{folder}/{name}"))?;
            Some((name, answer))
        })
        .collect()
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
    fn two_sockets_with_hyper_threading_are_told_apart() {
        let cpuinfo = "model name\t: Xeon\nmicrocode\t: 0x1\nphysical id\t: 0\nflags\t\t: fpu sse hypervisor\n\
                       model name\t: Xeon\nphysical id\t: 1\n";
        let mut contents = vec![
            ("/proc/cpuinfo".to_owned(), cpuinfo),
            (format!("{CPU}/online"), "0-3\n"),
            (format!("{CPU}/smt/control"), "on\n"),
            (format!("{CPU}/intel_pstate/no_turbo"), "1\n"),
            (
                format!("{CPU}/vulnerabilities/meltdown"),
                "Mitigation: PTI\n",
            ),
            (format!("{CPU}/cpu0/topology/thread_siblings_list"), "0,2\n"),
            ("/sys/devices/system/node/online".to_owned(), "0-1\n"),
        ];
        for (cpu, package) in [
            ("cpu0", "0\n"),
            ("cpu1", "1\n"),
            ("cpu2", "0\n"),
            ("cpu3", "1\n"),
        ] {
            contents.push((format!("{CPU}/{cpu}/topology/physical_package_id"), package));
            contents.push((format!("{CPU}/{cpu}/topology/core_id"), "0\n"));
        }
        let contents: Vec<(&str, &str)> = contents
            .iter()
            .map(|(file, text)| (file.as_str(), *text))
            .collect();
        let host = machine(&contents);
        assert_eq!(
            (host.cpus, host.cores, host.sockets),
            (Some(4), Some(2), Some(2))
        );
        assert_eq!((host.threads_per_core, host.numa_nodes), (Some(2), Some(2)));
        assert_eq!(host.turbo.as_deref(), Some("off"));
        assert_eq!(host.mitigations["meltdown"], "Mitigation: PTI");
        assert_eq!(host.virtualisation.as_deref(), Some("hypervisor"));
    }

    #[test]
    fn what_a_machine_does_not_show_is_absent() {
        assert_eq!(machine(&[]), Host::default());
    }
}
