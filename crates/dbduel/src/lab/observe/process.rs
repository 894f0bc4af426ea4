//! Samplers over `/proc/PID`.

use std::fs;

use super::Sampler;

/// Processor time from `/proc/PID/stat`, all threads, ended ones included.
pub struct Cpu;

impl Sampler for Cpu {
    fn look(&self, pid: u32) -> Vec<(&'static str, f64)> {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            return Vec::new();
        };
        // The second field is the program's name in parentheses and may itself hold spaces.
        let Some((_, fields)) = stat.rsplit_once(") ") else {
            return Vec::new();
        };
        let fields: Vec<&str> = fields.split(' ').collect();
        let seconds =
            |index: usize| Some(fields.get(index)?.parse::<f64>().ok()? / ticks_per_second());
        // Fields 14 and 15 of the file; the first one after the name is number 3.
        match (seconds(11), seconds(12)) {
            (Some(user), Some(system)) => vec![("cpu_user_s", user), ("cpu_system_s", system)],
            _ => Vec::new(),
        }
    }
}

fn ticks_per_second() -> f64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    ticks.ok().flatten().map_or(100.0, |ticks| ticks as f64)
}

/// Calls and bytes from `/proc/PID/io`; readable for processes of the same user.
pub struct Io;

impl Sampler for Io {
    fn look(&self, pid: u32) -> Vec<(&'static str, f64)> {
        named(&format!("/proc/{pid}/io"), |name| match name {
            "syscr" => Some("read_calls_count"),
            "syscw" => Some("write_calls_count"),
            "read_bytes" => Some("device_read_bytes"),
            "write_bytes" => Some("device_write_bytes"),
            _ => None,
        })
    }
}

/// Context switches of the main thread's group from `/proc/PID/status`.
pub struct Switches;

impl Sampler for Switches {
    fn look(&self, pid: u32) -> Vec<(&'static str, f64)> {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            return Vec::new();
        };
        let (mut voluntary, mut involuntary) = (0.0, 0.0);
        for task in tasks.flatten() {
            let path = task.path().join("status");
            for (name, value) in named(&path.to_string_lossy(), |name| match name {
                "voluntary_ctxt_switches" => Some("voluntary"),
                "nonvoluntary_ctxt_switches" => Some("involuntary"),
                _ => None,
            }) {
                if name == "voluntary" {
                    voluntary += value;
                } else {
                    involuntary += value;
                }
            }
        }
        vec![
            ("voluntary_switches_count", voluntary),
            ("involuntary_switches_count", involuntary),
        ]
    }
}

/// `name: number` lines of a file, under the names that `rename` gives them.
fn named(path: &str, rename: impl Fn(&str) -> Option<&'static str>) -> Vec<(&'static str, f64)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((rename(name)?, value.trim().parse().ok()?))
        })
        .collect()
}
