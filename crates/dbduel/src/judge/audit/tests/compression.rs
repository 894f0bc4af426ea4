//! Page compression that was asked for and did not happen.

use super::*;

/// Both servers write pages and compress none of them; `b` has this algorithm.
fn raised_with(algorithm: &str) -> bool {
    let asked = ("innodb_compression_default", "ON");
    let mut case = two(
        "mariadb-10.11.5",
        &[asked, ("innodb_compression_algorithm", "none")],
        &[asked, ("innodb_compression_algorithm", algorithm)],
    );
    case.stage = Stage::Results;
    for contender in &mut case.contenders {
        let status = |pages: &str| {
            [
                ("innodb_pages_written", pages),
                ("innodb_num_pages_page_compressed", "0"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
        };
        contender.status_before = status("0");
        contender.status_after = status("5000");
    }
    audit(&case)
        .findings
        .iter()
        .any(|finding| finding.rule == "R30")
}

#[test]
fn it_is_told_unless_the_algorithm_says_that_none_is_wanted() {
    assert!(raised_with("zlib"));
    assert!(!raised_with("none"));
}
