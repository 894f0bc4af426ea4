//! Rules about InnoDB: redo, flushing, checksums, syncs.

use dbduel_record::event::Severity;
use dbduel_text::{counts, percent};

use super::{Contender, Hit};
use crate::evidence::ServerEvidence;
use crate::table::show_bytes;
use crate::value::{Value, option_value};
use crate::{Product, Version};

/// Share of the redo capacity that a server uses before it forces a checkpoint (measured 0.80 to 0.805).
const REDO_USABLE: f64 = 0.8;
/// A redo log that is full sooner than this is too small (a rule of thumb), seconds.
const TURNOVER_S_MIN: f64 = 300.0;
/// A checkpoint age above this share of the usable log is under pressure (a rule of thumb).
const CHECKPOINT_AGE_MAX: f64 = 0.75;
/// A scan budget up to this is never too much (a rule of thumb), pages per second.
const SCAN_BUDGET_FREE: f64 = 16_384.0;
/// A depth up to this is usual (a rule of thumb), pages per instance and second.
const SCAN_DEPTH_USUAL: f64 = 4096.0;
/// Fewer waits than this, in a whole run, are reported but are no bias (a rule of thumb): they come in bursts.
const WAITS_MIN: f64 = 500.0;

pub fn redo_too_small(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let usable = redo_usable(contender)?;
    let remedy = "Enlarge the redo log to hold the whole measured time, equally on all sides.";
    let written = redo_written(contender);
    if let (Some(written), Some(seconds)) = (
        written,
        server
            .active_s
            .or_else(|| server.delta("uptime"))
            .filter(|&seconds| seconds >= 1.0),
    ) {
        let turnover_s = usable / (written / seconds);
        if turnover_s < TURNOVER_S_MIN {
            let what = format!(
                "fills its usable redo log ({}) every {turnover_s:.0} s, less than {TURNOVER_S_MIN} s (a rule of thumb)",
                show_bytes(usable)
            );
            return Some(
                Hit::new(what, remedy)
                    .from(
                        contender,
                        &[
                            "innodb_log_file_size",
                            "innodb_log_files_in_group",
                            "innodb_redo_log_capacity",
                            "delta.uptime",
                        ],
                    )
                    .excess(TURNOVER_S_MIN / turnover_s),
            );
        }
    }
    let age = server.after("innodb_checkpoint_age");
    if let Some(age) = age.filter(|age| age / usable > CHECKPOINT_AGE_MAX) {
        let what = format!(
            "ended with a checkpoint age of {}, {} of its usable redo log, above {} (a rule of thumb)",
            show_bytes(age),
            percent::of(age / usable),
            percent::of(CHECKPOINT_AGE_MAX)
        );
        let hit = Hit::new(what, remedy).from(
            contender,
            &[
                "after.innodb_checkpoint_age",
                "after.innodb_checkpoint_max_age",
            ],
        );
        return Some(hit.gauge(age / usable / CHECKPOINT_AGE_MAX));
    }
    let waits = server
        .delta("innodb_log_waits")
        .filter(|&waits| waits > 0.0)?;
    let what = format!(
        "waited {} for room in the log buffer",
        counts::things(waits as u64, "time")
    );
    Some(
        Hit::new(what, "Enlarge innodb_log_buffer_size on all sides.")
            .from(
                contender,
                &["innodb_log_buffer_size", "delta.innodb_log_waits"],
            )
            .excess(waits / WAITS_MIN),
    )
}

/// Redo bytes that the run wrote, from sequence numbers: the byte counters mean other things on other products.
/// Redo after which the server has to write what it has put off, bytes.
pub(super) fn redo_usable(contender: &Contender<'_>) -> Option<f64> {
    let capacity = contender.number("redo.capacity");
    let server = contender.server();
    server
        .after("innodb_checkpoint_max_age")
        .or(capacity.map(|bytes| bytes * REDO_USABLE))
}

/// Redo of the run, bytes.
pub(super) fn redo_written(contender: &Contender<'_>) -> Option<f64> {
    let server = contender.server();
    let counted = server
        .delta("innodb_lsn_current")
        .or_else(|| server.delta("innodb_redo_log_current_lsn"));
    counted.or_else(|| {
        let before = sequence_number(server.engine_status_before.as_deref()?)?;
        let after = sequence_number(server.engine_status_after.as_deref()?)?;
        (after >= before).then_some(after - before)
    })
}

/// The log sequence number in the engine's status text.
fn sequence_number(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.trim().strip_prefix("Log sequence number"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

pub fn waits_for_free_pages(contender: &Contender<'_>) -> Option<Hit> {
    let waits = contender
        .server()
        .delta("innodb_buffer_pool_wait_free")
        .filter(|&waits| waits > 0.0)?;
    let times = counts::things(waits as u64, "time");
    let what = format!("waited {times} for a free page of the buffer pool");
    Some(
        Hit::new(
            what,
            "Raise I/O capacity or the number of flushing threads, on all sides.",
        )
        .from(contender, &["delta.innodb_buffer_pool_wait_free"])
        .excess(waits / WAITS_MIN),
    )
}

pub fn scan_budget(contender: &Contender<'_>) -> Option<Hit> {
    let budget = contender.number("lru.budget")?;
    let instances = contender.number("pool.instances")?.max(1.0);
    let depth = budget / instances;
    let cap = SCAN_BUDGET_FREE.max(
        4.0 * contender
            .server()
            .number("innodb_io_capacity_max")
            .unwrap_or(0.0),
    );
    let page = contender.number("page.size").unwrap_or(16_384.0);
    let pool_pages = contender
        .number("pool.bytes")
        .map_or(f64::INFINITY, |bytes| bytes / page);
    let is_above_cap = budget > cap;
    let is_large_part = depth > SCAN_DEPTH_USUAL && budget > 0.1 * pool_pages;
    if !is_above_cap && !is_large_part {
        return None;
    }
    let what = format!(
        "scans up to {depth} × {instances} instances = {budget} LRU pages/s ({}/s); limit {cap} pages/s or a tenth of the pool (a rule of thumb)",
        show_bytes(budget * page)
    );
    let better = (cap.min(0.1 * pool_pages) / instances)
        .floor()
        .clamp(1024.0, 3000.0);
    Some(
        Hit::new(what, "The depth is per instance: 1024 to 3000 suffice.")
            .from(
                contender,
                &[
                    "innodb_lru_scan_depth",
                    "innodb_buffer_pool_instances",
                    "innodb_io_capacity",
                    "innodb_io_capacity_max",
                ],
            )
            .set("innodb_lru_scan_depth", &better.to_string()),
    )
}

pub fn admission(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let threads = contender
        .number("admission.concurrency")
        .filter(|&limit| limit > 0.0);
    let commits = contender
        .number("admission.commits")
        .filter(|&limit| limit > 0.0);
    let reads = [
        "innodb_thread_concurrency",
        "innodb_commit_concurrency",
        "asked.innodb_thread_concurrency",
    ];
    if let Some(limit) = threads {
        let cpus = contender.case.host.as_ref().and_then(|host| host.cpus);
        let beside = cpus.map_or_else(
            || "on an unknown number of processors".to_owned(),
            |cpus| format!("on {cpus} processors"),
        );
        let what = format!(
            "admits {limit} threads to InnoDB at once (innodb_thread_concurrency) {beside} and queues the others"
        );
        return Some(
            Hit::new(what, "Set it to 0: no limit.")
                .from(contender, &reads)
                .set("innodb_thread_concurrency", "0"),
        );
    }
    if let Some(limit) = commits {
        let what = format!("lets {limit} threads commit at once and queues the others");
        return Some(
            Hit::new(what, "Set it to 0: no limit.")
                .from(contender, &reads)
                .set("innodb_commit_concurrency", "0"),
        );
    }
    let asked = server
        .asked
        .get("innodb_thread_concurrency")
        .filter(|asked| asked.trim() != "0")?;
    if server.product != Product::MariaDb {
        return None;
    }
    let what = format!("ignores innodb_thread_concurrency = {asked}");
    Some(Hit::new(what, "Remove it, and set 0 on the other side.").from(contender, &reads))
}

pub fn software_checksum(contender: &Contender<'_>) -> Option<Hit> {
    let has_crc32 = contender.server().product == Product::MariaDb
        || contender.server().version
            >= Version {
                major: 5,
                minor: 6,
                patch: 0,
            };
    let is_software = contender.fact("page.checksum") == Some(Value::word("software"));
    (has_crc32 && is_software).then(|| {
        let what = "computes page checksums in software although crc32 is available".to_owned();
        Hit::new(
            what,
            "Set it before loading the data: pages keep their checksum algorithm.",
        )
        .from(
            contender,
            &["innodb_checksum_algorithm", "innodb_checksums"],
        )
        .set("innodb_checksum_algorithm", "crc32")
    })
}

pub fn starved_flushers(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let cleaners = server.number("innodb_page_cleaners")?;
    let instances = contender.number("pool.instances")?;
    let cpus = contender
        .case
        .host
        .as_ref()
        .and_then(|host| host.cpus)
        .map_or(f64::INFINITY, f64::from);
    let threads = contender.number("flush.threads")?;
    if threads * 2.0 >= instances.min(cpus) {
        return None;
    }
    let dirty = server
        .after("innodb_buffer_pool_pages_dirty")
        .zip(server.after("innodb_buffer_pool_pages_total"));
    let state = dirty.map_or_else(String::new, |(dirty, total)| {
        format!(
            "; {} of its pages were dirty at the end",
            percent::of(dirty / total.max(1.0))
        )
    });
    let what = format!(
        "has {} for {instances} buffer pool instances{state}",
        counts::things(cleaners as u64, "page cleaner")
    );
    Some(
        Hit::new(
            what,
            "Give each instance a page cleaner, up to the number of processors.",
        )
        .from(
            contender,
            &[
                "innodb_page_cleaners",
                "innodb_buffer_pool_instances",
                "innodb_buffer_pool_size",
            ],
        )
        .set("innodb_page_cleaners", &instances.min(cpus).to_string()),
    )
}

/// Default of `innodb_io_capacity` on every server but MySQL since 8.4.
const IO_CAPACITY_DEFAULT: f64 = 200.0;
const IO_CAPACITY_DEFAULT_SINCE_8_4: f64 = 10_000.0;

pub fn adaptive_flushing(contender: &Contender<'_>) -> Option<Hit> {
    let is_on = contender.switch("innodb_adaptive_flushing")?;
    let capacity = contender.server().number("innodb_io_capacity")?;
    let reads = [
        "innodb_adaptive_flushing",
        "innodb_adaptive_flushing_lwm",
        "innodb_io_capacity",
        "innodb_io_capacity_max",
    ];
    if !is_on {
        let what = "has adaptive flushing off".to_owned();
        let mut hit = Hit::new(what, "Set it equally on all sides.")
            .from(contender, &reads)
            .set("innodb_adaptive_flushing", "1");
        hit.severity = None;
        return Some(hit);
    }
    let is_set_by_hand =
        capacity != IO_CAPACITY_DEFAULT && capacity != IO_CAPACITY_DEFAULT_SINCE_8_4;
    let redo = contender.number("redo.capacity");
    is_set_by_hand.then(|| {
        let redo = redo.map_or_else(|| "of unknown size".to_owned(), show_bytes);
        let what = format!(
            "has innodb_io_capacity = {capacity} set explicitly and adaptive flushing on, which paces writes by the redo log age ({redo})"
        );
        let mut hit = Hit::new(what, "State which of the two is meant to pace writes; with a small redo log adaptive flushing dominates.").from(contender, &reads);
        hit.severity = Some(Severity::Note);
        hit
    })
}

/// The setting by which an engine's commits are durable, and the counter of its syncs; nothing of an engine without such
/// a counter, and of tables in several engines.
fn syncs_of(engine: &str) -> Option<(&'static str, &'static str)> {
    if engine.eq_ignore_ascii_case("innodb") {
        Some(("innodb_flush_log_at_trx_commit", "innodb_data_fsyncs"))
    } else if engine.eq_ignore_ascii_case("rocksdb") {
        Some(("rocksdb_flush_log_at_trx_commit", "rocksdb_wal_synced"))
    } else {
        None
    }
}

/// Rows of tables in this engine that were inserted, changed or deleted during the run; nothing without its counters.
fn rows_changed(engine: &str, server: &ServerEvidence) -> Option<f64> {
    let engine = engine.to_ascii_lowercase();
    ["inserted", "updated", "deleted"]
        .iter()
        .map(|change| server.delta(&format!("{engine}_rows_{change}")))
        .sum()
}

pub fn syncs_missing(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let engine = contender.fact("table.engine")?.to_string();
    let (setting, counter) = syncs_of(&engine)?;
    if contender.number("commit.level")? < 3.0 {
        return None;
    }
    // Writes that go through need no sync.
    let method = server
        .variables
        .get("innodb_flush_method")
        .map(|method| method.to_ascii_lowercase())
        .unwrap_or_default();
    if method.contains("dsync") || contender.switch("innodb_log_file_write_through") == Some(true) {
        return None;
    }
    let syncs = server.delta(counter)?;
    let writes: f64 = ["com_insert", "com_update", "com_delete", "com_replace"]
        .iter()
        .filter_map(|counter| server.delta(counter))
        .sum();
    // An UPDATE that finds the values that it sets changes no row and syncs nothing.
    let rows = rows_changed(&engine, server).unwrap_or(f64::INFINITY);
    let commits = server
        .delta("com_commit")
        .filter(|&commits| commits > 0.0)
        .map_or(writes, |commits| commits.min(writes))
        .min(rows);
    let clients = f64::from(contender.case.clients.unwrap_or(1)).max(1.0);
    // A group commit serves at most every client at once; half of that is left for chance.
    let expected = commits / clients * 0.5;
    if commits < 100.0 || syncs >= expected {
        return None;
    }
    let what = format!(
        "is set to one sync per commit but shows {syncs} syncs for {commits} commits of {clients} clients, fewer than {expected:.0} (a rule of thumb)"
    );
    Some(Hit::new(what, "Check for a library that ignores fsync, a memory file system, or a device without a flush.").from(contender, &[setting, "innodb_flush_method", &format!("delta.{counter}"), "delta.com_commit"]))
}

pub fn compression_missing(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let errors = server
        .delta("innodb_num_pages_page_compression_error")
        .filter(|&errors| errors > 0.0);
    if let Some(errors) = errors {
        let what = format!(
            "failed to compress {}",
            counts::things(errors as u64, "page")
        );
        return Some(
            Hit::new(
                what,
                "Read the error log; the algorithm may be unavailable.",
            )
            .from(contender, &["innodb_compression_algorithm"]),
        );
    }
    // A setting of "none" compares tables that are compressed with the same tables that are not.
    let is_refused = server
        .look_up("innodb_compression_algorithm")
        .is_some_and(|(algorithm, _)| algorithm.eq_ignore_ascii_case("none"));
    let is_asked = !is_refused
        && (contender
            .fact("table.compression")
            .is_some_and(|kind| kind.to_string().contains("pages"))
            || contender.switch("innodb_compression_default") == Some(true));
    let compressed = server.delta("innodb_num_pages_page_compressed")?;
    let written = server.delta("innodb_pages_written").unwrap_or(0.0);
    if is_asked && compressed == 0.0 && written > 0.0 {
        let what = format!(
            "wrote {written} pages and compressed none of them, though page compression is set"
        );
        return Some(
            Hit::new(
                what,
                "Check the algorithm and compare allocated blocks of the table files.",
            )
            .from(
                contender,
                &[
                    "innodb_compression_algorithm",
                    "delta.innodb_num_pages_page_compressed",
                ],
            ),
        );
    }
    let trim_asked = server
        .asked
        .get("innodb_use_trim")
        .is_some_and(|asked| Value::read(&option_value(asked)).switch() == Some(true));
    if trim_asked && contender.switch("innodb_use_trim") == Some(false) && !server.is_predicted {
        let what = "has switched off hole punching (innodb_use_trim = ON was set)".to_owned();
        return Some(
            Hit::new(
                what,
                "The file system or device does not support it; compare allocated blocks of the table files.",
            )
            .from(contender, &["innodb_use_trim"]),
        );
    }
    None
}
