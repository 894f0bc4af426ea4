//! Contenders, machine, settings and progress of the run as text.

use std::collections::BTreeMap;

use dbduel_judge::Summary;
use dbduel_judge::summary::{ContenderFacts, SettingDifference};
use dbduel_record::event::LoadTime;
use dbduel_record::facts::{FileSize, Host, Size};
use dbduel_record::plan::{Parameters, TurnChoice, TurnReason};
use serde::Serialize;

use super::table::{Cell, Column, TEXT, Table};
use super::{Entry, entry};
use crate::words;

#[derive(Debug, Clone, Serialize)]
pub struct ContenderView {
    pub name: String,
    pub number: usize,
    pub is_baseline: bool,
    pub version: String,
    pub facts: Vec<Entry>,
    pub settings: Vec<Entry>,
}

pub(super) fn when(summary: &Summary) -> String {
    let run = &summary.run;
    let took = run
        .started_ms
        .zip(run.ended_ms)
        .map(|(start, end)| end.saturating_sub(start) as f64 / 1e3);
    match took {
        Some(took_s) => format!(
            "{}, {}",
            words::moment(run.started_ms),
            words::duration(took_s)
        ),
        None => format!("planned {}", summary.created),
    }
}

/// Load time of the tables: one observation, so it has no interval.
fn loading(load: &LoadTime) -> [Entry; 3] {
    let per_second = load.rows as f64 / load.rows_s.max(f64::EPSILON);
    let per_row_us = 1e6 * load.cpu_s / load.rows.max(1) as f64;
    let rows = format!(
        "{} rows in {}, {}/s, one observation; {}",
        words::count(load.rows),
        words::duration(load.rows_s),
        words::number(per_second),
        words::things(load.connections.into(), "connection"),
    );
    [
        entry("loading", rows),
        entry("building indexes", words::duration(load.finish_s)),
        entry(
            "CPU of the load process",
            format!("{per_row_us:.2} µs per row"),
        ),
    ]
}

/// Parameters of a workload, each with its value.
fn parameters(parameters: &Parameters) -> String {
    let texts: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    if texts.is_empty() {
        "none".to_owned()
    } else {
        texts.join(", ")
    }
}

/// Sizes of the data and of the other files of the data directory; of the whole directory where the record does not
/// separate them.
fn sizes(size: Size) -> Vec<Entry> {
    let change = |before: u64, after: u64| {
        format!(
            "{} before, {} after",
            words::bytes(before),
            words::bytes(after)
        )
    };
    // Compressed pages leave holes: files look as large as ever and take less room.
    let both = |label: &str, before: FileSize, after: FileSize| {
        let mut entries = vec![entry(label, change(before.bytes, after.bytes))];
        if after.allocated_bytes > 0 {
            let text = change(before.allocated_bytes, after.allocated_bytes);
            entries.push(entry("allocated on the device", text));
        }
        entries
    };
    let whole = |bytes, allocated_bytes| FileSize {
        bytes,
        allocated_bytes,
    };
    let (Some(before), Some(after)) = (size.before_files, size.after_files) else {
        return both(
            "data directory",
            whole(size.before_bytes, size.before_allocated_bytes),
            whole(size.after_bytes, size.after_allocated_bytes),
        );
    };
    let mut entries = both("data files", before.data, after.data);
    let others = [
        ("redo", after.redo),
        ("undo", after.undo),
        ("temporary", after.temporary),
        ("logs", after.logs),
        ("system", after.system),
    ];
    let others = others
        .iter()
        .map(|(name, size)| format!("{name} {}", words::bytes(size.allocated_bytes)));
    let others: Vec<String> = others.collect();
    entries.push(entry(
        "other files after",
        format!("{} on the device", others.join(", ")),
    ));
    entries
}

pub(super) fn contender(summary: &Summary, number: usize, facts: &ContenderFacts) -> ContenderView {
    let build = facts.build.as_ref();
    let mut entries = vec![entry("requested server", &facts.server)];
    if let Some(build) = build {
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        let known = [
            ("version comment", build.version_comment.clone()),
            ("origin", build.origin.clone()),
            ("program", optional(&build.daemon)),
            ("SHA-256", optional(&build.daemon_sha256)),
            ("machine", optional(&build.machine)),
            ("allocator", optional(&build.allocator)),
        ];
        entries.extend(
            known
                .into_iter()
                .filter(|(_, text)| !text.is_empty())
                .map(|(label, text)| entry(label, text)),
        );
        entries.push(entry(
            "started by dbduel",
            if build.managed { "yes" } else { "no" },
        ));
    }
    if !facts.tables.is_empty() {
        entries.push(entry("table parameters", parameters(&facts.tables)));
    }
    if let Some(load) = &facts.load {
        entries.extend(loading(load));
    }
    if let Some(size) = facts.size {
        entries.extend(sizes(size));
    }
    entries.push(entry("measured", words::duration(facts.active_s)));
    let settings = facts
        .settings
        .iter()
        .map(|setting| entry(&setting.name, &setting.value));
    ContenderView {
        name: facts.name.clone(),
        number,
        is_baseline: facts.name == summary.baseline,
        version: build.map_or_else(
            || "version not recorded".to_owned(),
            |build| {
                format!("{} {}", build.product, build.version)
                    .trim()
                    .to_owned()
            },
        ),
        facts: entries,
        settings: settings.collect(),
    }
}

/// Settings with their values on each contender; `None` where there are none.
pub(super) fn settings(summary: &Summary, differences: &[SettingDifference]) -> Option<Table> {
    let contenders = summary.contenders.iter().enumerate();
    let contenders = contenders.map(|(at, facts)| Column::of_contender(TEXT, at, &facts.name));
    let columns = [Column::from((TEXT, "setting"))]
        .into_iter()
        .chain(contenders);
    let rows = differences.iter().map(|difference| {
        let name = Cell {
            tag: if difference.is_asked_for {
                "requested"
            } else {
                ""
            },
            ..Cell::code(&difference.name)
        };
        let values = difference.values.iter();
        let values = values.map(|value| Cell::code(value.as_deref().unwrap_or("–")));
        [name].into_iter().chain(values).collect()
    });
    (!differences.is_empty()).then(|| Table::new(columns.collect(), rows))
}

pub(super) fn host(summary: &Summary) -> Vec<Entry> {
    let host = &summary.host;
    let each = host.server_hosts.iter();
    let each: Vec<(&str, Vec<Option<String>>)> = each
        .map(|one| {
            let facts = machine(&one.facts).into_iter();
            (one.name.as_str(), facts.map(|(_, text)| text).collect())
        })
        .collect();
    let absent = |text: Option<String>| text.unwrap_or_else(|| "not available".to_owned());
    let mut entries = Vec::new();
    for (number, (label, text)) in machine(host).into_iter().enumerate() {
        let is_one = each
            .windows(2)
            .all(|two| two[0].1[number] == two[1].1[number]);
        let text = match is_one {
            true => absent(text),
            false => {
                let texts = each
                    .iter()
                    .map(|(name, texts)| format!("{name}: {}", absent(texts[number].clone())));
                texts.collect::<Vec<String>>().join("; ")
            }
        };
        entries.push(entry(label, text));
    }
    let own = words::own_resolution(summary)
        .unwrap_or_else(|| "unknown; `dbduel selftest` measures it".to_owned());
    entries.push(entry("resolution of the lab", own));
    entries
}

/// Known facts of a machine, under their labels.
fn machine(host: &Host) -> Vec<(&'static str, Option<String>)> {
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let yes_no = |value: bool| if value { "yes" } else { "no" }.to_owned();
    let without_limit = |limit: Option<String>| {
        // A control group whose limits could be read and are not there sets none.
        limit.or_else(|| host.cgroup_version.map(|_| "none".to_owned()))
    };
    let listed = |named: &BTreeMap<String, String>| {
        let texts: Vec<String> = named
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    };
    vec![
        ("processor", host.cpu_model.clone()),
        ("microcode", host.microcode.clone()),
        ("processors", number(host.cpus)),
        ("sockets", number(host.sockets)),
        ("cores", number(host.cores)),
        ("threads per core", number(host.threads_per_core)),
        (
            "simultaneous multithreading",
            // As the kernel writes it, in one word.
            host.smt
                .as_ref()
                .map(|smt| smt.replace("notsupported", "not supported")),
        ),
        ("memory nodes (NUMA)", number(host.numa_nodes)),
        ("frequency governor", host.governor.clone()),
        ("turbo", host.turbo.clone()),
        ("mitigations", listed(&host.mitigations)),
        ("memory", host.memory_bytes.map(words::bytes)),
        ("swap", host.swap_bytes.map(words::bytes)),
        ("kernel", host.kernel.clone()),
        ("distribution", host.distribution.clone()),
        (
            "transparent huge pages",
            host.transparent_huge_pages.clone(),
        ),
        (
            "huge page defragmentation",
            host.transparent_huge_pages_defrag.clone(),
        ),
        ("kernel command line", host.kernel_command_line.clone()),
        ("clock source", host.clock_source.clone()),
        ("kernel settings", listed(&host.kernel_settings)),
        ("virtualisation", host.virtualisation.clone()),
        (
            "file system",
            host.file_system.as_ref().map(|kind| with_room(kind, host)),
        ),
        ("mount options", host.mount_options.clone()),
        ("block device", host.block_device.clone()),
        ("disk", host.disk.clone()),
        (
            "disk model",
            host.disk_model
                .as_ref()
                .map(|model| with_firmware(model, host)),
        ),
        (
            "disk blocks",
            host.disk_block_bytes
                .map(|[logical, physical]| format!("{logical} bytes logical, {physical} physical")),
        ),
        ("rotating", host.rotational.map(yes_no)),
        ("I/O scheduler", host.io_scheduler.clone()),
        (
            "write cache",
            host.write_cache
                .as_ref()
                .map(|cache| with_commands(cache, host)),
        ),
        ("read-ahead", host.read_ahead_bytes.map(words::bytes)),
        ("request queue", number(host.queue_requests)),
        ("open files limit", host.open_files_limit.map(words::count)),
        ("control groups", number(host.cgroup_version)),
        (
            "memory limit",
            without_limit(host.cgroup_memory_bytes.map(words::bytes)),
        ),
        (
            "processor limit",
            without_limit(host.cgroup_cpus.map(words::number)),
        ),
        ("allowed processors", host.allowed_cpus.clone()),
    ]
}

/// File system with its size and free space.
fn with_room(kind: &str, host: &Host) -> String {
    match (host.file_system_bytes, host.file_system_free_bytes) {
        (Some(all), Some(free)) => {
            format!(
                "{kind}, {} of {} free",
                words::bytes(free),
                words::bytes(all)
            )
        }
        _ => kind.to_owned(),
    }
}

/// A disk's model with its firmware and driver, as far as known.
fn with_firmware(model: &str, host: &Host) -> String {
    let named = |name: &str, value: &Option<String>| {
        let value = value.as_ref();
        value.map_or_else(String::new, |value| format!(", {name} {value}"))
    };
    let firmware = named("firmware", &host.disk_firmware);
    format!("{model}{firmware}{}", named("driver", &host.disk_driver))
}

/// A write cache with the disk's cache commands, as far as known.
fn with_commands(cache: &str, host: &Host) -> String {
    let listed = |can: Option<bool>, name: &str| match can {
        Some(true) => format!(", {name}"),
        Some(false) => format!(", no {name}"),
        None => String::new(),
    };
    let atomic = match host.disk_atomic_write_bytes {
        Some(0) => ", no atomic writes".to_owned(),
        Some(bytes) => format!(", atomic writes up to {}", words::bytes(bytes)),
        None => String::new(),
    };
    let forced = listed(host.force_unit_access, "forced unit access");
    format!("{cache}{forced}{}{atomic}", listed(host.discard, "discard"))
}

/// Whether load threads poll, as a part of a sentence.
fn polling(busy_poll_us: u32) -> String {
    match busy_poll_us {
        0 => String::new(),
        us => format!(
            "busy polling (up to {} per wait, not in client CPU), ",
            words::latency(us.into())
        ),
    }
}

/// Length chosen by a pilot, and why.
fn turns_chosen(choice: &TurnChoice) -> String {
    let reason = match choice.reason {
        TurnReason::Scatter => "their interval is predicted to narrow fastest",
        TurnReason::Shortest => {
            "shorter ones hold too few transactions, or too little time relative to their guard"
        }
        TurnReason::Longest => "longer ones would leave too few blocks in the budget",
        TurnReason::Continuity => {
            "in shorter ones the throughput of a contender differs from that without a switch"
        }
        TurnReason::TooLittleData => "the pilot had too little data to predict the scatter",
    };
    let predicted = choice.lengths.iter().map(|length| {
        format!(
            "{} ±{}",
            words::duration(length.turn_s),
            words::share(length.half_width_per_minute)
        )
    });
    let predicted: Vec<String> = predicted.collect();
    let predicted = match predicted.is_empty() {
        true => String::new(),
        false => format!(" (95 % interval after a minute: {})", predicted.join(", ")),
    };
    format!(
        "{}, guard {}: {reason}{predicted}; {} between turns; transient after a switch {}; up to {}; \
         the pilot took {} of load",
        words::duration(choice.turn_s),
        words::duration(choice.guard_s),
        words::duration(choice.switch_s),
        words::duration(choice.transient_s),
        words::things(u64::from(choice.blocks_max), "block"),
        words::duration(choice.seconds)
    )
}

pub(super) fn reproduce(summary: &Summary) -> Vec<Entry> {
    let load = &summary.load;
    let cores = |cores: &[u32]| match cores {
        [] => "not confined".to_owned(),
        cores => format!(
            "on processors {}",
            cores
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    let run = &summary.run;
    let digest = summary
        .record_digest
        .clone()
        .unwrap_or_else(|| "none: no run has ended".to_owned());
    let mut entries = vec![
        entry("digest of the record", digest),
        entry("experiment", "experiment.toml of the record, an exact copy"),
        entry(
            "plan",
            match summary.schedule.pilot {
                None => "plan.json of the record: all defaults resolved, all blocks drawn",
                Some(_) => {
                    "plan.json of the record: all defaults resolved; blocks of chosen turns in events.jsonl"
                }
            },
        ),
        entry("workload", &summary.workload.name),
        entry(
            "workload parameters",
            parameters(&summary.workload.parameters),
        ),
        entry("seed", summary.seed.to_string()),
        entry("planned by", format!("dbduel {}", summary.planned_by)),
        entry("judged by", format!("dbduel {}", summary.judged_by)),
        entry(
            "load process",
            format!(
                "{}, {}{}",
                words::things(load.threads as u64, "thread"),
                polling(load.busy_poll_us),
                cores(&load.cores)
            ),
        ),
        entry(
            "servers",
            match &load.server_io {
                None => cores(&load.server_cores),
                Some(limit) => format!(
                    "{}; limit of each: read {}, and the same for writes",
                    cores(&load.server_cores),
                    limit.label()
                ),
            },
        ),
        entry(
            "time",
            format!(
                "budget {}, {}",
                words::duration(summary.schedule.budget_s),
                match summary.schedule.pilot {
                    Some(_) => "turns chosen by a pilot".to_owned(),
                    None => format!(
                        "slices of {} ± {}, guard {}",
                        words::duration(summary.schedule.slice_s),
                        words::share(summary.schedule.jitter),
                        words::duration(summary.schedule.guard_s)
                    ),
                }
            ),
        ),
        entry(
            "progress",
            format!(
                "{} of every server; slices: {} finished, {} lost; blocks: {} complete, {} incomplete",
                words::things(run.epochs.into(), "start"),
                run.slices_finished,
                run.slices_lost,
                run.blocks_complete,
                run.blocks_incomplete
            ),
        ),
    ];
    let turns = summary.duels.iter().filter_map(|duel| {
        let turns = duel.turns.as_ref()?;
        let label = format!("turns at {}", duel.label);
        Some(entry(&label, turns_chosen(turns)))
    });
    entries.extend(turns);
    entries
}
