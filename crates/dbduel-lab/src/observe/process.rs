//! Samplers of a process and its forked children in `/proc`: a server may use one process per session.

use super::processes::of_each;
use super::{Missing, Pace, Sampler, Subject, Value, Whose, device, read};

/// Processor time and page faults from `/proc/PID/stat`, of all threads and processes, including ended ones.
pub const CPU: Sampler = Sampler {
    name: "process-cpu",
    about: "Processor time, user and system, and page faults of a process.",
    whose: Whose::Process,
    pace: Pace::Second,
    look: cpu,
};

pub(super) fn cpu(subject: &Subject) -> Result<Vec<Value>, Missing> {
    let first = subject.pid;
    let processes = of_each(subject, |pid| {
        let path = format!("/proc/{pid}/stat");
        let stat = read(&path)?;
        let misread = || Missing(format!("`{path}` has an unknown format"));
        // The second field is the program's name in parentheses and may itself hold spaces.
        let (_, fields) = stat.rsplit_once(") ").ok_or_else(misread)?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // The first field after the name is number 3 in the kernel's counting.
        let number = |field: usize| -> Result<f64, Missing> {
            let text = fields.get(field - 3).ok_or_else(misread)?;
            text.parse().map_err(|_| misread())
        };
        // Of a field and of what processes that have ended leave to the one that forked them.
        let with_ended = |own: usize, ended: usize| -> Result<f64, Missing> {
            let ended = if Some(pid) == first {
                number(ended)?
            } else {
                0.0
            };
            Ok(number(own)? + ended)
        };
        Ok([
            with_ended(10, 11)?,
            with_ended(12, 13)?,
            with_ended(14, 16)?,
            with_ended(15, 17)?,
        ])
    })?;
    let total = |part: usize| processes.iter().map(|parts| parts[part]).sum::<f64>();
    let ticks = ticks_per_second();
    Ok(vec![
        Value::counter("minor_faults_count", total(0)),
        Value::counter("major_faults_count", total(1)),
        Value::counter("cpu_user_s", total(2) / ticks),
        Value::counter("cpu_system_s", total(3) / ticks),
    ])
}

/// Clock ticks of `/proc` per second.
pub(super) fn ticks_per_second() -> f64 {
    let ticks = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK);
    ticks.ok().flatten().map_or(100.0, |ticks| ticks as f64)
}

/// Calls and bytes from `/proc/PID/io`, of all processes, including ended ones; readable for processes of the same
/// user.
///
/// Where the kernel counts more than is written, the bytes written are those of the disk, which one contender uses at a
/// time; missing where the subject has no disk.
pub const IO: Sampler = Sampler {
    name: "process-io",
    about: "Read and write calls and bytes of a process, and the part that reaches the device.",
    whose: Whose::Process,
    pace: Pace::Second,
    look: io,
};

pub(super) fn io(subject: &Subject) -> Result<Vec<Value>, Missing> {
    const KNOWN: [(&str, &str); 6] = [
        ("syscr", "read_calls_count"),
        ("syscw", "write_calls_count"),
        // Sockets included: what clients say is part of it.
        ("rchar", "asked_to_read_bytes"),
        ("wchar", "asked_to_write_bytes"),
        ("read_bytes", "device_read_bytes"),
        ("write_bytes", "device_write_bytes"),
    ];
    let processes = of_each(subject, |pid| read(&format!("/proc/{pid}/io")))?;
    let mut values = Vec::new();
    for (name, metric) in KNOWN {
        if subject.overcounts_writes && name == "write_bytes" {
            values.extend(
                device::total(subject, device::WRITTEN).map(|total| Value::counter(metric, total)),
            );
            continue;
        }
        let numbers = processes
            .iter()
            .filter_map(|text| numbers(text).find(|(found, _)| *found == name));
        if let Some(total) = numbers.map(|(_, number)| number).reduce(|a, b| a + b) {
            values.push(Value::counter(metric, total));
        }
    }
    Ok(values)
}

/// The lines of a kernel file with a name, a colon and a number.
fn numbers(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let number = value.split_ascii_whitespace().next()?.parse().ok()?;
        Some((name, number))
    })
}

/// Memory from `/proc/PID/status`.
///
/// For several processes, the sum of their private memory, plus the largest shared memory and file memory of one of
/// them. Measured with 69 processes of PostgreSQL: 12 % more than the sum of proportional shares (PSS), for which the
/// kernel walks all page tables, 2 ms of processor time for each process.
pub const MEMORY: Sampler = Sampler {
    name: "process-memory",
    about: "Resident and swapped memory of a process, and its threads.",
    whose: Whose::Process,
    pace: Pace::Second,
    look: memory,
};

fn memory(subject: &Subject) -> Result<Vec<Value>, Missing> {
    let processes = of_each(subject, |pid| read(&format!("/proc/{pid}/status")))?;
    let of = |name: &'static str| {
        processes
            .iter()
            .filter_map(move |text| numbers(text).find(|(found, _)| *found == name))
            .map(|(_, number)| number)
    };
    let kilobytes = |metric, number: f64| Value::gauge(metric, number * 1024.0);
    let mut values = vec![
        kilobytes("swapped_bytes", of("VmSwap").sum()),
        Value::gauge("threads_count", of("Threads").sum()),
    ];
    if let [_] = processes.as_slice() {
        values.extend(of("VmRSS").map(|number| kilobytes("resident_bytes", number)));
        values.extend(of("VmHWM").map(|number| kilobytes("resident_peak_bytes", number)));
    } else {
        let shared = |name| of(name).fold(0.0, f64::max);
        let own: f64 = of("RssAnon").sum();
        let all = own + shared("RssShmem") + shared("RssFile");
        values.push(kilobytes("resident_bytes", all));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    fn value(sampler: &Sampler, subject: &Subject, metric: &str) -> f64 {
        let values = (sampler.look)(subject).unwrap();
        let found = values.iter().find(|value| value.metric == metric);
        found.map_or(0.0, |value| value.value)
    }

    #[test]
    fn what_a_forked_process_used_stays_in_the_sums_when_it_ends() {
        // A process that forks one which works and writes, waits for it, and says when it works and when it has ended.
        // What runs in the background has no input but the one that is kept for it.
        let script = "exec 3<&0; (dd if=/dev/zero of=/dev/null bs=64k count=20000 2>/dev/null; echo worked; read line <&3) & \
                      wait; echo ended; read line";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let subject = Subject {
            pid: Some(child.id()),
            ..Subject::default()
        };
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut look = || {
            let line = lines.next().unwrap().unwrap();
            let cpu = value(&CPU, &subject, "cpu_user_s") + value(&CPU, &subject, "cpu_system_s");
            (line, cpu, value(&IO, &subject, "asked_to_write_bytes"))
        };
        let working = look();
        let input = child.stdin.as_mut().unwrap();
        input.write_all(b"\n").unwrap();
        let ended = look();
        let input = child.stdin.as_mut().unwrap();
        input.write_all(b"\n").unwrap();
        child.wait().unwrap();
        assert_eq!((&*working.0, &*ended.0), ("worked", "ended"));
        // 20,000 blocks; `dd` had ended in both looks, the shell that waited for it only in the second.
        assert!(
            working.2 > 1.3e9 && ended.2 >= working.2,
            "{working:?} {ended:?}"
        );
        assert!(ended.1 >= working.1 - 0.011, "{working:?} {ended:?}");
    }
}
