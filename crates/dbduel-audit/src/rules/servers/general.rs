//! Rules about the server around its engine: caches, connections, builds.

use dbduel_record::event::Severity;
use dbduel_text::{counts, percent};

use super::{Contender, Hit};
use crate::table::table;
use crate::value::Value;

/// Share of cache look-ups that may miss (a rule of thumb).
const MISS_SHARE_MAX: f64 = 0.01;
/// Fewer overflows than this, in a whole run, are reported but are no bias (a rule of thumb).
const OVERFLOWS_MIN: f64 = 100.0;
/// Share of connections that may need a new thread (a rule of thumb).
const NEW_THREAD_SHARE_MAX: f64 = 0.1;
/// Connections that administration needs beside the clients (a rule of thumb).
const CONNECTIONS_SPARE: f64 = 10.0;

pub fn table_cache(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let reads = [
        "table_open_cache",
        "table_open_cache_instances",
        "delta.table_open_cache_hits",
        "delta.table_open_cache_misses",
        "delta.table_open_cache_overflows",
        "delta.opened_tables",
    ];
    let remedy = "Enlarge table_open_cache: it holds a handle per table and connection that uses it, not per table.";
    let overflows = server.delta("table_open_cache_overflows");
    if let Some(overflows) = overflows.filter(|&overflows| overflows > 0.0) {
        let what = format!(
            "closed {} to open others (table cache overflows)",
            counts::things(overflows as u64, "table")
        );
        let hit = Hit::new(what, remedy).from(contender, &reads);
        return Some(hit.excess(overflows / OVERFLOWS_MIN));
    }
    if let Some((hits, misses)) = server
        .delta("table_open_cache_hits")
        .zip(server.delta("table_open_cache_misses"))
    {
        let share = misses / (hits + misses).max(1.0);
        // The first use of each table by each connection always misses.
        if share > MISS_SHARE_MAX && misses > 1000.0 {
            let what = format!(
                "missed its table cache in {} of look-ups, more than {} (a rule of thumb)",
                percent::of(share),
                percent::of(MISS_SHARE_MAX)
            );
            let hit = Hit::new(what, remedy).from(contender, &reads);
            return Some(hit.excess(share / MISS_SHARE_MAX));
        }
        return None;
    }
    // Older servers count openings only.
    let opened = server.delta("opened_tables")?;
    let held = server.number("table_open_cache")?;
    let clients = contender.case.clients.map_or(1.0, f64::from);
    let most = held.max(clients * 100.0);
    (opened > most).then(|| {
        let what = format!(
            "opened {} with a cache of {held}",
            counts::things(opened as u64, "table")
        );
        Hit::new(what, remedy)
            .from(contender, &reads)
            .excess(opened / most)
    })
}

pub fn connections(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let limit = server.number("max_connections")?;
    let reads = [
        "max_connections",
        "asked.max_connections",
        "delta.connection_errors_max_connections",
        "after.max_used_connections",
    ];
    let remedy = "Raise max_connections, and the limit of open files with it.";
    let refused = server
        .delta("connection_errors_max_connections")
        .filter(|&refused| refused > 0.0);
    if let Some(refused) = refused {
        return Some(
            Hit::new(
                format!(
                    "refused {}, its limit is {limit}",
                    counts::things(refused as u64, "connection")
                ),
                remedy,
            )
            .from(contender, &reads),
        );
    }
    if server
        .after("max_used_connections")
        .is_some_and(|used| used >= limit)
    {
        return Some(
            Hit::new(format!("reached its limit of {limit} connections"), remedy)
                .from(contender, &reads),
        );
    }
    let clients = f64::from(contender.case.clients?);
    (clients > limit - CONNECTIONS_SPARE).then(|| {
        let what = format!("allows {limit} connections for {clients} clients");
        Hit::new(what, remedy).from(contender, &reads).set(
            "max_connections",
            &(clients + 10.0 * CONNECTIONS_SPARE).to_string(),
        )
    })
}

pub fn open_files(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    if server.is_predicted {
        // The limit is the process's, and a file of settings does not know it.
        return None;
    }
    let limit = server
        .number("open_files_limit")
        .filter(|&limit| limit > 0.0)?;
    let needed =
        10.0 + server.number("max_connections")? + 2.0 * server.number("table_open_cache")?;
    (limit < needed).then(|| {
        let what = format!(
            "may open {limit} files and needs {needed} for its connections and table cache"
        );
        Hit::new(
            what,
            "Raise the limit of the process, the same for all sides.",
        )
        .from(
            contender,
            &["open_files_limit", "max_connections", "table_open_cache"],
        )
    })
}

pub fn query_cache(contender: &Contender<'_>) -> Option<Hit> {
    let is_on = contender.fact("query_cache.on") == Some(Value::Switch(true));
    let used = contender.server().delta("qcache_hits").unwrap_or(0.0)
        + contender.server().delta("qcache_inserts").unwrap_or(0.0);
    (is_on || used > 0.0).then(|| {
        let what = if used > 0.0 {
            format!(
                "used its query cache {}",
                counts::things(used as u64, "time")
            )
        } else {
            "has its query cache on".to_owned()
        };
        Hit::new(
            what,
            "Switch it off at start; switching it off at run time keeps its lock.",
        )
        .from(
            contender,
            &["query_cache_type", "query_cache_size", "delta.qcache_hits"],
        )
        .set("query_cache_type", "0")
        .set("query_cache_size", "0")
    })
}

pub fn build(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let version = server.version_text.to_ascii_lowercase();
    let special = ["-debug", "-valgrind", "asan", "-gcov"]
        .into_iter()
        .find(|mark| version.contains(mark));
    let reads = ["version", "version_compile_machine", "debug"];
    if let Some(mark) = special.or(server.variables.contains_key("debug").then_some("debug")) {
        let what = format!(
            "is a special build ({}): {}",
            mark.trim_start_matches('-'),
            server.version_text
        );
        return Some(Hit::new(what, "Compare release builds.").from(contender, &reads));
    }
    let is_32_bit = contender.number("build.bits") == Some(32.0)
        && server.variables.contains_key("version_compile_machine");
    is_32_bit.then(|| {
        let machine = &server.variables["version_compile_machine"];
        Hit::new(
            format!("is a 32-bit build ({machine})"),
            "Use the 64-bit build of this version.",
        )
        .from(contender, &reads)
    })
}

pub fn pool_size(contender: &Contender<'_>) -> Option<Hit> {
    let size = contender
        .number("threads.pool_size")
        .filter(|&size| size > 0.0)?;
    let cpus = f64::from(contender.case.host.as_ref()?.cpus?);
    (size != cpus).then(|| {
        let what = format!("has a thread pool of {size} groups on {cpus} processors");
        Hit::new(what, "Set it to the number of processors of the server.")
            .from(contender, &["thread_handling", "thread_pool_size"])
            .set("thread_pool_size", &cpus.to_string())
    })
}

pub fn thread_cache(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let connections = server
        .delta("connections")
        .filter(|&connections| connections > 1000.0)?;
    let created = server.delta("threads_created")?;
    (created / connections > NEW_THREAD_SHARE_MAX).then(|| {
        let what = format!(
            "created {created} threads for {connections} connections, more than {} (a rule of thumb)",
            percent::of(NEW_THREAD_SHARE_MAX)
        );
        Hit::new(what, "Enlarge thread_cache_size on all sides.")
            .from(
                contender,
                &[
                    "thread_cache_size",
                    "delta.threads_created",
                    "delta.connections",
                ],
            )
            .set("thread_cache_size", "100")
            .excess(created / connections / NEW_THREAD_SHARE_MAX)
    })
}

/// Plugins that look at every statement.
const WATCHING: &[&str] = &[
    "server_audit",
    "audit_log",
    "audit_log_filter",
    "query_response_time",
    "query_response_time_audit",
];

pub fn watching_plugins(contender: &Contender<'_>) -> Option<Hit> {
    let is_watching = |name: &&String| {
        WATCHING
            .iter()
            .any(|watching| name.eq_ignore_ascii_case(watching))
    };
    let names: Vec<&str> = contender
        .server()
        .plugins
        .iter()
        .filter(is_watching)
        .map(String::as_str)
        .collect();
    (!names.is_empty()).then(|| {
        let what = format!("has the plugin {} active", names.join(", "));
        Hit::new(what, "Unload it, or load it on all sides.")
    })
}

pub fn counters_lost(contender: &Contender<'_>) -> Option<Hit> {
    let lost = contender.server().stints_lost;
    (lost > 0).then(|| {
        let what = match lost {
            1 => "lost the counters of one stint when it ended; rates cover the other stints"
                .to_owned(),
            many => format!(
                "lost the counters of {many} stints when they ended; rates cover the other stints"
            ),
        };
        let mut hit = Hit::new(
            what,
            "None for the audit; the crash has a finding of its own.",
        );
        hit.severity = Some(Severity::Note);
        hit
    })
}

/// Variables that show what the engine adapts by itself, not the configured value.
const ADAPTED: &[&str] = &["innodb_thread_sleep_delay"];

pub fn changed(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    let counts = |name: &str| !ADAPTED.contains(&name) && table().why_ignored(name).is_none();
    let changed: Vec<String> = server
        .variables_after
        .iter()
        .filter(|(name, _)| counts(name))
        .filter_map(|(name, after)| {
            let before = server.variables.get(name)?;
            (!Value::read(before).is_same(&Value::read(after)))
                .then(|| format!("{name} from {before} to {after}"))
        })
        .collect();
    (!changed.is_empty()).then(|| {
        let what = format!("changed during the run: {}", changed.join(", "));
        Hit::new(what, "Set it before the run and do not change it.")
    })
}
