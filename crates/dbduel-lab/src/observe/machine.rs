//! Samplers of the whole machine: processors, page cache, pressure.

use super::process::ticks_per_second;
use super::{Missing, Pace, Sampler, Subject, Value, Whose, read};

/// Processor time of all processes from `/proc/stat`.
pub const PROCESSORS: Sampler = Sampler {
    name: "processors",
    about: "Processor time of all processes on the machine, idle, waiting for the disk, and stolen by the hypervisor.",
    whose: Whose::Machine,
    pace: Pace::Second,
    look: processors,
};

fn processors(_subject: &Subject) -> Result<Vec<Value>, Missing> {
    let text = read("/proc/stat")?;
    let Some(line) = text.lines().find(|line| line.starts_with("cpu ")) else {
        return Err(Missing(
            "`/proc/stat` has no line for all processors".to_owned(),
        ));
    };
    let ticks = ticks_per_second();
    let fields: Vec<f64> = line
        .split_ascii_whitespace()
        .skip(1)
        .map_while(|field| field.parse::<f64>().ok())
        .map(|value| value / ticks)
        .collect();
    // user nice system idle iowait irq softirq steal
    let at = |index: usize| fields.get(index).copied().unwrap_or(0.0);
    Ok(vec![
        Value::counter("machine_busy_s", at(0) + at(1) + at(2) + at(5) + at(6)),
        Value::counter("machine_idle_s", at(3)),
        Value::counter("machine_disk_wait_s", at(4)),
        Value::counter("machine_stolen_s", at(7)),
    ])
}

/// Page cache and dirty pages from `/proc/meminfo`, paging from `/proc/vmstat`.
pub const PAGE_CACHE: Sampler = Sampler {
    name: "page-cache",
    about: "Page cache, pages that await writing, free memory and swapping of the machine.",
    whose: Whose::Machine,
    pace: Pace::Second,
    look: page_cache,
};

fn page_cache(_subject: &Subject) -> Result<Vec<Value>, Missing> {
    let memory = read("/proc/meminfo")?;
    let gauges = memory.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let metric = match name {
            "Cached" => "page_cache_bytes",
            "Dirty" => "dirty_bytes",
            "Writeback" => "writeback_bytes",
            "MemAvailable" => "available_memory_bytes",
            _ => return None,
        };
        let kib: f64 = value.split_ascii_whitespace().next()?.parse().ok()?;
        Some(Value::gauge(metric, kib * 1024.0))
    });
    let mut values: Vec<Value> = gauges.collect();
    // Containers may hide it; the gauges alone are worth having.
    let paging = read("/proc/vmstat").unwrap_or_default();
    values.extend(paging.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let metric = match name {
            "pswpin" => "swapped_in_pages_count",
            "pswpout" => "swapped_out_pages_count",
            "nr_written" => "written_back_pages_count",
            _ => return None,
        };
        Some(Value::counter(metric, value.parse().ok()?))
    }));
    Ok(values)
}

/// Time in which work waited for a resource, from `/proc/pressure`.
pub const PRESSURE: Sampler = Sampler {
    name: "pressure",
    about: "Time in which some or all work on the machine waited for a processor, the disk, or memory.",
    whose: Whose::Machine,
    pace: Pace::Second,
    look: pressure,
};

fn pressure(_subject: &Subject) -> Result<Vec<Value>, Missing> {
    let mut values = Vec::new();
    for (file, some, full) in [
        ("cpu", "pressure_cpu_some_s", "pressure_cpu_full_s"),
        ("io", "pressure_io_some_s", "pressure_io_full_s"),
        ("memory", "pressure_memory_some_s", "pressure_memory_full_s"),
    ] {
        let text = read(&format!("/proc/pressure/{file}"))?;
        for line in text.lines() {
            let total_us = line
                .rsplit_once("total=")
                .and_then(|(_, value)| value.trim().parse::<f64>().ok());
            let metric = if line.starts_with("some") { some } else { full };
            if let Some(total_us) = total_us {
                values.push(Value::counter(metric, total_us / 1e6));
            }
        }
    }
    Ok(values)
}
