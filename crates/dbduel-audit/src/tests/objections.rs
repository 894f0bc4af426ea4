//! The sixteen objections below the contest of 2014, and what raises each: the table of `docs/fairness.md`.

use super::contest_a::{contest, evidence};
use super::*;

/// What stands around the table in the page.
const BEGIN: &str = "<!-- The table is made by the tests of the audit; do not edit it here. -->\n";
const END: &str = "\n<!-- End of the table. -->";

/// How an objection is caught.
enum By {
    /// A finding of a rule or fact; its evidence has these values.
    Finding(&'static str, &'static [&'static str]),
    /// A finding whose claim says this.
    Claim(&'static str, &'static str),
    /// A fact that is shown for both sides, equal or not.
    Shown(&'static str),
}
use By::{Claim, Finding, Shown};

const OBJECTIONS: &[(&str, &[By])] = &[
    (
        "The size of the redo log is not stated.",
        &[Shown("redo.capacity")],
    ),
    (
        "Cores, sockets and hyper-threading are unclear.",
        &[Claim("R41", "hyper-threading")],
    ),
    (
        "Why `innodb_thread_concurrency` is 32, and not 0.",
        &[Finding("R5", &["innodb_thread_concurrency=32"])],
    ),
    (
        "Adaptive flushing is left on beside I/O tuned by hand.",
        &[Finding(
            "R12",
            &["innodb_adaptive_flushing=ON", "innodb_io_capacity=25000"],
        )],
    ),
    (
        "`innodb_flush_neighbors` wastes I/O on flash.",
        &[Shown("flush.neighbours")],
    ),
    (
        "16 buffer pool instances may have helped one side only.",
        &[Shown("pool.instances")],
    ),
    (
        "The old page checksum, not crc32.",
        &[Finding("R6", &["innodb_checksum_algorithm=INNODB"])],
    ),
    (
        "Instances and overflows of the table cache.",
        &[
            Shown("table_cache.instances"),
            Claim("R40", "SHOW GLOBAL STATUS"),
        ],
    ),
    (
        "No SHOW VARIABLES, SHOW GLOBAL STATUS, SHOW ENGINE INNODB STATUS.",
        &[Claim("R40", "SHOW ENGINE INNODB STATUS")],
    ),
    (
        "Prepared statements on or off, and equally so?",
        &[Claim("R42", "prepared")],
    ),
    (
        "16 flushing threads on one side, 1 on the other.",
        &[Finding(
            "flush.threads",
            &["innodb_use_mtflush=ON", "innodb_mtflush_threads=16"],
        )],
    ),
    (
        "`innodb_lru_scan_depth` is per instance: 25,000 × 16.",
        &[Finding(
            "R3",
            &[
                "innodb_lru_scan_depth=25000",
                "innodb_buffer_pool_instances=16",
            ],
        )],
    ),
    (
        "Performance Schema is compiled into one server only.",
        &[
            Shown("instrumentation.pfs_compiled"),
            Finding("instrumentation.pfs", &["performance_schema=ON"]),
        ],
    ),
    (
        "One kind of storage: servers, or atomic writes?",
        &[Claim("R36", "the device affects the result")],
    ),
    (
        "Nothing explains why the two differ.",
        &[Claim("R37", "Cause unknown")],
    ),
    (
        "Settings were not varied one by one.",
        &[Claim("R38", "flush.threads")],
    ),
];

/// The page's cells of one way of being caught; panics when it was not caught.
fn cells(audit: &Audit, by: &By) -> (String, String) {
    match by {
        Finding(rule, wanted) => {
            let finding = finding(audit, rule);
            let read = evidence(finding);
            for value in *wanted {
                assert!(
                    read.iter().any(|one| one == value),
                    "{rule}: no {value} in {read:?}"
                );
            }
            let values: Vec<String> = wanted.iter().map(|value| format!("`{value}`")).collect();
            (format!("{rule} ({})", severity(finding)), values.join(", "))
        }
        Claim(rule, words) => {
            let finding = finding(audit, rule);
            assert!(finding.claim.contains(words), "{rule}: {}", finding.claim);
            (
                format!("{rule} ({})", severity(finding)),
                format!("the claim names “{words}”"),
            )
        }
        Shown(fact) => {
            let compared = audit
                .comparisons
                .iter()
                .find(|one| one.fact == *fact)
                .unwrap();
            let [one, two] = [0, 1].map(|side| compared.sides[side].value.clone());
            let outcome = if compared.outcome == Outcome::Differs {
                "differs"
            } else {
                "equal"
            };
            (
                format!("{fact} ({outcome})"),
                format!("mysql {one}, mariadb {two}"),
            )
        }
    }
}

fn severity(finding: &crate::Finding) -> &'static str {
    match finding.severity {
        Severity::Void => "void",
        Severity::Doubt => "doubt",
        Severity::Note => "note",
    }
}

fn table_of_objections() -> String {
    let audit = audit(&contest("mysql-5.6.24"));
    let mut table =
        String::from("| | objection | raised by | evidence |\n| --- | --- | --- | --- |\n");
    for (number, (objection, ways)) in OBJECTIONS.iter().enumerate() {
        let (by, shown): (Vec<String>, Vec<String>) =
            ways.iter().map(|by| cells(&audit, by)).unzip();
        table.push_str(&format!(
            "| {} | {objection} | {} | {} |\n",
            number + 1,
            by.join(", "),
            shown.join("; ")
        ));
    }
    table
}

#[test]
fn the_page_on_fairness_has_the_table_of_objections() {
    assert_eq!(OBJECTIONS.len(), 16);
    let table = table_of_objections();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fairness.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once(BEGIN).unwrap();
    let (written, _) = rest.split_once(END).unwrap();
    assert!(
        written.trim() == table.trim(),
        "the table of docs/fairness.md is to be:\n{table}"
    );
}
