//! Suggestions for misspelt names.

/// Most edits between a name and a suggestion: a name further off is another word.
const EDITS_MAX: usize = 5;
/// Least length of a part that stands for a whole name.
const PART_MIN: usize = 4;
/// With more names that have the same part, none of them is meant more than the others.
const WHOLES_MAX: usize = 3;

/// The candidate that `name` probably means. In this order: a slip of one edit (Damerau 1964); a candidate that begins with
/// `name`, ends with its words, or whose words begin it, if few do; one within a third of the length of `name` in edits, five at most.
/// Case does not count, nor does `-` against `_`.
#[must_use]
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let name = plain(name);
    let length = name.chars().count();
    let limit = (length / 3).clamp(1, EDITS_MAX);
    let mut similar: Option<(usize, &str)> = None;
    let mut wholes: Vec<&str> = Vec::new();
    for candidate in candidates {
        let known = plain(candidate);
        // At least so many edits as the lengths differ; those of a long text take seconds to count.
        if known.chars().count().abs_diff(length) <= limit {
            let edits = strsim::damerau_levenshtein(&name, &known);
            if edits <= limit && similar.is_none_or(|best| (edits, candidate) < best) {
                similar = Some((edits, candidate));
            }
        }
        if begins(&known, &name) || ends(&known, &name) || begins(&name, &format!("{known}_")) {
            wholes.push(candidate);
        }
    }
    let slip = similar.filter(|(edits, _)| *edits <= 1);
    let whole = wholes.iter().filter(|_| wholes.len() <= WHOLES_MAX);
    let whole = whole.min_by_key(|whole| (whole.len(), **whole)).copied();
    slip.map(|(_, candidate)| candidate)
        .or(whole)
        .or(similar.map(|(_, candidate)| candidate))
}

/// True when `name` begins with `part` and has more.
fn begins(name: &str, part: &str) -> bool {
    part.len() >= PART_MIN && name.len() > part.len() && name.starts_with(part)
}

/// True when `name` ends with `part`, a word or several of them.
fn ends(name: &str, part: &str) -> bool {
    let before = name.strip_suffix(part);
    part.len() >= PART_MIN && before.is_some_and(|before| before.ends_with('_'))
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_parts_are_recognised_and_other_names_are_not() {
        let known = [
            "isolation_level",
            "log_duration",
            "log_min_duration_statement",
            "oltp-read-only",
            "oltp-read-write",
            "oltp-update-index",
            "oltp-update-non-index",
            "slice",
            "table_size",
            "tables",
            "threads",
            "time",
        ];
        for (written, meant) in [
            ("tabel_size", Some("table_size")),
            ("Table-Size", Some("table_size")),
            ("thread", Some("threads")),
            ("tmie", Some("time")),
            ("isolation", Some("isolation_level")),
            ("isol", Some("isolation_level")),
            ("iso", None),
            ("slice_length", Some("slice")),
            ("read-write", Some("oltp-read-write")),
            ("oltp-update", Some("oltp-update-index")),
            ("oltp", None),
            ("log_min_duration", Some("log_min_duration_statement")),
            ("performance_schema_max_everything", None),
            ("events", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
    }
}
