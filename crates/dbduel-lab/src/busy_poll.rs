//! Checks before a contest that busy polling leaves a processor to servers on this machine.

use std::collections::BTreeSet;

use dbduel_machine::host;
use dbduel_record::Plan;
use dbduel_record::event::{Notice, Severity};
use dbduel_record::plan::LoadProcess;
use dbduel_text::counts::things;

use dbduel_server::{Meaning, ServerName};

/// Notice when the polling threads of a plan take every processor that its servers may use on this machine.
#[must_use]
pub fn doubt(plan: &Plan) -> Option<Notice> {
    let is_here = |server: &str| match ServerName::parse(server).map(|name| name.meaning) {
        Ok(Meaning::Running(address)) => address.place.is_on_this_machine(),
        Ok(Meaning::Provided { .. } | Meaning::InProcess) => true,
        // Refused elsewhere.
        Err(_) => false,
    };
    let is_any_here = plan.contenders.iter().any(|one| is_here(&one.server));
    let clients = plan.levels.iter().map(|level| level.clients).max();
    let claim = is_any_here
        .then(|| claim(&plan.load, clients.unwrap_or_default(), &host::processors()))??;
    Some(Notice::new(
        "load.polls-everywhere",
        Severity::Doubt,
        &[],
        claim,
        "Remove `busy_poll` from [load], use fewer `threads`, or set `cores` and `server_cores` that do not overlap.",
    ))
}

/// The claim of [`doubt`]; `None` when servers on a machine with these processors have at least one without polling
/// threads. A thread without a client soon sleeps.
#[must_use]
pub fn claim(load: &LoadProcess, clients: u32, processors: &[u32]) -> Option<String> {
    let or_all = |cores: &[u32]| -> BTreeSet<u32> {
        let named = if cores.is_empty() { processors } else { cores };
        named.iter().copied().collect()
    };
    let (of_load, of_servers) = (or_all(&load.cores), or_all(&load.server_cores));
    let is_shared = of_servers.is_subset(&of_load);
    let threads = load.threads.min(clients);
    let are_taken = threads as usize >= of_load.len();
    (load.busy_poll_us > 0 && is_shared && are_taken).then(|| {
        format!(
            "Busy polling by {} on {} leaves no free processor for a server on this machine; the server competes with polling \
             threads and is slower.",
            things(threads.into(), "load thread"),
            things(of_load.len() as u64, "processor"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_with(
        threads: u32,
        clients: u32,
        busy_poll_us: u32,
        cores: [&[u32]; 2],
        is_told: bool,
    ) {
        let load = LoadProcess {
            threads,
            busy_poll_us,
            cores: cores[0].to_vec(),
            server_cores: cores[1].to_vec(),
            server_io: None,
        };
        let claim = claim(&load, clients, &[0, 1, 2, 3]);
        assert_eq!(claim.is_some(), is_told, "{load:?}, {clients} clients");
    }

    #[track_caller]
    fn check(threads: u32, busy_poll_us: u32, cores: [&[u32]; 2], is_told: bool) {
        check_with(threads, 16, busy_poll_us, cores, is_told);
    }

    #[test]
    fn a_server_needs_a_processor_that_no_thread_polls_on() {
        check(4, 2_000, [&[], &[]], true);
        check(5, 2_000, [&[], &[]], true);
        check(4, 0, [&[], &[]], false);
        check(3, 2_000, [&[], &[]], false);
        check(4, 2_000, [&[0, 1], &[]], false);
        check(4, 2_000, [&[0, 1], &[2, 3]], false);
        check(2, 2_000, [&[0, 1], &[1]], true);
        check(1, 2_000, [&[0, 0], &[0]], true);
        check(1, 2_000, [&[0, 1], &[0, 1]], false);
        check(3, 2_000, [&[], &[3]], false);
        check_with(4, 4, 2_000, [&[], &[]], true);
        check_with(4, 3, 2_000, [&[], &[]], false);
    }

    #[test]
    fn the_claim_counts() {
        let load = LoadProcess {
            threads: 1,
            busy_poll_us: 50,
            cores: vec![0],
            server_cores: vec![0],
            server_io: None,
        };
        let claim = claim(&load, 1, &[0, 1]).unwrap();
        assert!(
            claim.contains("by 1 load thread on 1 processor leaves"),
            "{claim}"
        );
    }
}
