//! The sampler of every thread of a process: time on a processor, time in the run queue, switches.

use std::fs;

use super::processes::{of_each, title};
use super::{Kind, Missing, Pace, Sampler, Subject, Thread, Value, Whose, read};

/// Scheduling counters from `/proc/PID/task/TID/{schedstat,status}`.
///
/// Values are kept per thread, so that a thread that ends between two readings does not reduce a sum.
pub const THREADS: Sampler = Sampler {
    name: "threads",
    about: "Time on a processor, time in the run queue, and context switches of every thread of a process.",
    whose: Whose::Process,
    pace: Pace::Slice,
    look: threads,
};

fn threads(subject: &Subject) -> Result<Vec<Value>, Missing> {
    let processes = of_each(subject, |pid| {
        // The processes that a server forked have the name of its program; what each is for is in its title.
        let title = (Some(pid) != subject.pid).then(|| title(pid)).flatten();
        of_process(pid, title.as_deref())
    })?;
    Ok(processes.into_iter().flatten().collect())
}

fn of_process(pid: u32, title: Option<&str>) -> Result<Vec<Value>, Missing> {
    let folder = format!("/proc/{pid}/task");
    let tasks = fs::read_dir(&folder).map_err(|error| Missing(format!("`{folder}`: {error}")))?;
    let mut values = Vec::new();
    let mut refusal = None;
    for task in tasks.flatten() {
        let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A thread may end between the two looks into its folder; then it has no values.
        match of_thread(&folder, tid, title) {
            Ok(found) => values.extend(found),
            Err(missing) => refusal = Some(missing),
        }
    }
    match refusal {
        Some(missing) if values.is_empty() => Err(missing),
        _ => Ok(values),
    }
}

fn of_thread(folder: &str, tid: u32, title: Option<&str>) -> Result<Vec<Value>, Missing> {
    let schedstat = read(&format!("{folder}/{tid}/schedstat"))?;
    let status = read(&format!("{folder}/{tid}/status"))?;
    let mut nanoseconds = schedstat
        .split_ascii_whitespace()
        .map(|field| field.parse::<f64>().unwrap_or(0.0));
    let line = |name: &str| {
        status.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key == name).then(|| value.trim())
        })
    };
    let number = |name: &str| line(name).and_then(|value| value.parse::<f64>().ok());
    let thread = Thread {
        tid,
        name: title
            .or_else(|| line("Name"))
            .unwrap_or_default()
            .to_owned(),
    };
    let of = |metric, value| Value {
        metric,
        kind: Kind::Counter,
        value,
        thread: Some(thread.clone()),
    };
    let mut values = vec![
        of("on_cpu_s", nanoseconds.next().unwrap_or(0.0) / 1e9),
        of("run_queue_s", nanoseconds.next().unwrap_or(0.0) / 1e9),
    ];
    if let Some(switches) = number("voluntary_ctxt_switches") {
        values.push(of("voluntary_switches_count", switches));
    }
    if let Some(switches) = number("nonvoluntary_ctxt_switches") {
        values.push(of("involuntary_switches_count", switches));
    }
    Ok(values)
}
