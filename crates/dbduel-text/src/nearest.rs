//! Suggestions for misspelt names.

/// Letters from which on the beginning of a name stands for it.
const ABBREVIATED_MIN: usize = 4;

/// The candidate that `name` probably means: the one with the smallest edit distance (Damerau 1964), if that is at most a
/// third of the length of `name`, or 1 for shorter names; else the shortest that begins with `name`, of four letters or more.
/// Case does not count, nor does `-` against `_`.
#[must_use]
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let name = plain(name);
    let length = name.chars().count();
    let limit = (length / 3).max(1);
    let (mut similar, mut longer): (Option<(usize, &str)>, Option<(usize, &str)>) = (None, None);
    for candidate in candidates {
        let plain = plain(candidate);
        let distance = strsim::damerau_levenshtein(&name, &plain);
        if distance <= limit && similar.is_none_or(|best| (distance, candidate) < best) {
            similar = Some((distance, candidate));
        }
        let is_longer = length >= ABBREVIATED_MIN && plain.starts_with(&name);
        if is_longer && longer.is_none_or(|best| (plain.len(), candidate) < best) {
            longer = Some((plain.len(), candidate));
        }
    }
    similar.or(longer).map(|(_, candidate)| candidate)
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        let known = ["isolation_level", "table_size", "tables", "threads", "time"];
        for (written, meant) in [
            ("tabel_size", Some("table_size")),
            ("Table-Size", Some("table_size")),
            ("thread", Some("threads")),
            ("tmie", Some("time")),
            ("table", Some("tables")),
            ("isolation", Some("isolation_level")),
            ("iso", None),
            ("events", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
    }
}
