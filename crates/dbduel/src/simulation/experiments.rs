//! Experiments of all kinds, drawn from a seed.

use std::fmt::Write as _;

use dbduel_stats::random::RandomStream;

use crate::commands::fail_if::FailIf;

const KINDS: usize = 9;
const SWEEP: usize = 8;

/// Draws one without a budget.
pub fn draw(random: &mut RandomStream) -> String {
    let kind = match random.below(KINDS) {
        // Takes the most time.
        SWEEP if random.below(3) > 0 => 0,
        kind => kind,
    };
    let names: &[&str] = match kind {
        1 => &["a", "b", "c"],
        _ => &["a", "b"],
    };
    let horizon = [2, 5, 25][random.below(3)];
    let seed = random.below(1_000_000);
    let mut text = format!("horizon = \"{horizon} %\"\nseed = {seed}\n");
    for name in names {
        let _ = writeln!(text, "[contenders.{name}]\nserver = \"sqlite\"");
        if kind == 2 && *name == "b" {
            text.push_str("variants = { cache_size = [-2000, -4000] }\n");
        }
    }
    let workload = match kind {
        SWEEP => "tables = 1\n",
        _ => "tables = 1\ntable_size = 20\n",
    };
    match kind {
        3 => {
            let _ = write!(text, "[workload]\n{workload}");
        }
        _ => {
            let _ = write!(text, "[workload]\nname = \"oltp-read-only\"\n{workload}");
        }
    }
    match kind {
        4 => text.push_str("[load]\nclients = [1, 4]\n"),
        5 => text.push_str(
            "[load]\nclients = 4\narrival = \"poisson\"\nrate = \"search\"\nobjective = \"p95 < 20 ms\"\n[search]\nrates = 4\n",
        ),
        _ => text.push_str("[load]\nclients = 2\n"),
    }
    let slice_ms = 200 + 100 * random.below(10);
    match kind {
        // The pilot chooses.
        0 | 4 if random.below(2) == 0 => text.push_str("[schedule]\nwarm_up = \"2 s\"\n"),
        6 => {
            let _ = write!(
                text,
                "[schedule]\nslice = \"{slice_ms} ms\"\nguard = \"50 ms\"\nwarm_up = \"1 s\"\nepochs = 3\n"
            );
        }
        5 => text.push_str("[schedule]\nwarm_up = \"1 s\"\n"),
        _ => {
            let _ = write!(
                text,
                "[schedule]\nslice = \"{slice_ms} ms\"\nguard = \"50 ms\"\nwarm_up = \"1 s\"\n"
            );
        }
    }
    if kind == 3 {
        text.push_str("[suite]\nsettle = \"1 s\"\n");
        for (name, workload, group) in [
            ("point", "oltp-point-select", "read"),
            ("update", "oltp-update-index", "write"),
            ("insert", "oltp-insert", "write"),
        ] {
            let _ = write!(
                text,
                "[[suite.workload]]\nname = \"{name}\"\nworkload = \"{workload}\"\ngroup = \"{group}\"\n"
            );
        }
    }
    if kind == SWEEP {
        text.push_str("[sweep]\ntable_size = [10, 20]\n");
    }
    // Disks are no concern of most of these, and memory is small.
    text.push_str("[limits]\nfree_disk = \"1 KiB\"\n");
    text
}

/// Draws rules of `--fail-if`: mostly none.
pub fn draw_rules(random: &mut RandomStream) -> Vec<FailIf> {
    let count = [0, 0, 1, 2][random.below(4)];
    let one = |random: &mut RandomStream| {
        let what = ["slower", "faster", "p50 higher", "p95 lower", "cpu higher"][random.below(5)];
        let limit = [0, 3, 10, 40][random.below(4)];
        let text = format!("{what} than {limit} %");
        text.parse().expect("a rule as it is documented")
    };
    (0..count).map(|_| one(random)).collect()
}
