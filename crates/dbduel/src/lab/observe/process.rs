//! Samplers over the files of one process in `/proc`.

use super::{Missing, Pace, Sampler, Subject, Value, Whose, pid_of, read};

/// Processor time and page faults from `/proc/PID/stat`, all threads, ended ones included.
pub struct Cpu;

impl Sampler for Cpu {
    fn name(&self) -> &'static str {
        "process-cpu"
    }

    fn about(&self) -> &'static str {
        "Processor time, user and system, and page faults of a process."
    }

    fn whose(&self) -> Whose {
        Whose::Process
    }

    fn pace(&self) -> Pace {
        Pace::Second
    }

    fn look(&self, subject: &Subject) -> Result<Vec<Value>, Missing> {
        let path = format!("/proc/{}/stat", pid_of(subject)?);
        let stat = read(&path)?;
        let misread = || Missing(format!("`{path}` is not understood"));
        // The second field is the program's name in parentheses and may itself hold spaces.
        let (_, fields) = stat.rsplit_once(") ").ok_or_else(misread)?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // The first field after the name is number 3 in the kernel's counting.
        let number = |field: usize| -> Result<f64, Missing> {
            let text = fields.get(field - 3).ok_or_else(misread)?;
            text.parse().map_err(|_| misread())
        };
        let ticks = ticks_per_second();
        Ok(vec![
            Value::counter("minor_faults_count", number(10)?),
            Value::counter("major_faults_count", number(12)?),
            Value::counter("cpu_user_s", number(14)? / ticks),
            Value::counter("cpu_system_s", number(15)? / ticks),
        ])
    }
}

/// Clock ticks of `/proc` per second.
pub(super) fn ticks_per_second() -> f64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    ticks.ok().flatten().map_or(100.0, |ticks| ticks as f64)
}

/// Calls and bytes from `/proc/PID/io`; readable for processes of the same user.
pub struct Io;

impl Sampler for Io {
    fn name(&self) -> &'static str {
        "process-io"
    }

    fn about(&self) -> &'static str {
        "Calls and bytes that a process reads and writes, and what of it concerns the device."
    }

    fn whose(&self) -> Whose {
        Whose::Process
    }

    fn pace(&self) -> Pace {
        Pace::Second
    }

    fn look(&self, subject: &Subject) -> Result<Vec<Value>, Missing> {
        let text = read(&format!("/proc/{}/io", pid_of(subject)?))?;
        let known = |name: &str| match name {
            "syscr" => Some("read_calls_count"),
            "syscw" => Some("write_calls_count"),
            // Sockets included: what clients say is part of it.
            "rchar" => Some("asked_to_read_bytes"),
            "wchar" => Some("asked_to_write_bytes"),
            "read_bytes" => Some("device_read_bytes"),
            "write_bytes" => Some("device_write_bytes"),
            _ => None,
        };
        let values = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some(Value::counter(known(name)?, value.trim().parse().ok()?))
        });
        Ok(values.collect())
    }
}

/// Memory from `/proc/PID/status`.
pub struct Memory;

impl Sampler for Memory {
    fn name(&self) -> &'static str {
        "process-memory"
    }

    fn about(&self) -> &'static str {
        "ContenderServer and swapped memory of a process, and its threads."
    }

    fn whose(&self) -> Whose {
        Whose::Process
    }

    fn pace(&self) -> Pace {
        Pace::Second
    }

    fn look(&self, subject: &Subject) -> Result<Vec<Value>, Missing> {
        let text = read(&format!("/proc/{}/status", pid_of(subject)?))?;
        let values = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let number: f64 = value.split_ascii_whitespace().next()?.parse().ok()?;
            match name {
                "VmRSS" => Some(Value::gauge("resident_bytes", number * 1024.0)),
                "VmHWM" => Some(Value::gauge("resident_peak_bytes", number * 1024.0)),
                "VmSwap" => Some(Value::gauge("swapped_bytes", number * 1024.0)),
                "Threads" => Some(Value::gauge("threads_count", number)),
                _ => None,
            }
        });
        Ok(values.collect())
    }
}
