//! Suggestions for misspelt names.

/// The candidate that `name` probably means: the one with the smallest edit distance (Damerau 1964), if that is at most a
/// third of the length of `name`, or 1 for shorter names. Case does not count, nor does `-` against `_`.
#[must_use]
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let name = plain(name);
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&name, &plain(candidate));
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        let known = ["table_size", "tables", "threads", "time"];
        for (written, meant) in [
            ("tabel_size", Some("table_size")),
            ("Table-Size", Some("table_size")),
            ("thread", Some("threads")),
            ("tmie", Some("time")),
            ("events", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
    }
}
