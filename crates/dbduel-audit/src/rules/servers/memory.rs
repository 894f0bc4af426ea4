//! Rules about memory.

use dbduel_text::percent;

use super::{Contender, Hit};
use crate::durability_summary::FULLY_DURABLE;
use crate::table::show_bytes;
use crate::value::Value;

/// Largest share of the machine's memory that a buffer pool usually gets (a rule of thumb).
const POOL_SHARE_MAX: f64 = 0.85;
/// Largest log buffer that makes sense (a rule of thumb), bytes.
const LOG_BUFFER_MAX: f64 = 1_073_741_824.0;

pub fn huge_pages(contender: &Contender<'_>) -> Option<Hit> {
    let setting = contender
        .case
        .host
        .as_ref()?
        .transparent_huge_pages
        .as_deref()?;
    let Some(Value::Word(allocator)) = contender.fact("memory.allocator") else {
        return None;
    };
    (setting == "always" && allocator != "system").then(|| {
        let what = format!("runs on {allocator} with transparent huge pages always on");
        Hit::new(
            what,
            "Set transparent huge pages to madvise, or use the same allocator on all sides.",
        )
    })
}

pub fn envelope(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let pool = contender.number("pool.bytes");
    let memory = contender
        .case
        .host
        .as_ref()
        .and_then(|host| host.memory_bytes)
        .map(|bytes| bytes as f64);
    if let (Some(pool), Some(memory)) = (pool, memory)
        && pool > POOL_SHARE_MAX * memory
    {
        let what = format!(
            "has a buffer pool of {} on a machine of {}, more than {} (a rule of thumb)",
            show_bytes(pool),
            show_bytes(memory),
            percent::of(POOL_SHARE_MAX)
        );
        return Some(
            Hit::new(what, "Check the unit.").from(contender, &["innodb_buffer_pool_size"]),
        );
    }
    let log_buffer = server
        .number("innodb_log_buffer_size")
        .filter(|&bytes| bytes > LOG_BUFFER_MAX);
    if let Some(bytes) = log_buffer {
        let what = format!(
            "has a log buffer of {}, more than 1 GiB (a rule of thumb)",
            show_bytes(bytes)
        );
        return Some(
            Hit::new(what, "Check the unit.").from(contender, &["innodb_log_buffer_size"]),
        );
    }
    // It is of no effect while every commit is synced.
    let is_synced = contender
        .number("commit.level")
        .is_some_and(|level| level >= FULLY_DURABLE);
    let timeout = server
        .number("innodb_flush_log_at_timeout")
        .filter(|&seconds| seconds > 1.0 && !is_synced)?;
    let what = format!("flushes its log in the background only every {timeout} s");
    Some(
        Hit::new(what, "Set it to 1.")
            .from(contender, &["innodb_flush_log_at_timeout"])
            .set("innodb_flush_log_at_timeout", "1"),
    )
}
