//! Names of variables: to distinguish them from abbreviations, and to suggest corrections.

use dbduel_text::nearest;

use super::settings::normal_name;

/// One name a line, followed by the products that have it; lines with `#` are notes.
const NAMES: &str = include_str!("../data/variables.txt");

/// True when some version of some product has a variable of exactly this name, given as in [`normal_name`].
pub fn is_variable(name: &str) -> bool {
    NAMES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .any(|line| line.split_ascii_whitespace().next() == Some(name))
}

/// The name of a variable of `product` most similar to `name`; `None` if `name` is one itself or nothing is similar.
pub fn nearest_variable(name: &str, product: &str) -> Option<&'static str> {
    let name = normal_name(name);
    let candidates = NAMES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let variable = words.next()?;
            words.any(|word| word == product).then_some(variable)
        });
    nearest(&name, candidates).filter(|near| *near != name)
}

#[cfg(test)]
mod tests {
    use super::super::products;
    use super::*;

    #[test]
    fn the_list_is_sorted_unique_and_knows_only_our_products() {
        let lines: Vec<&str> = NAMES
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert!(lines.len() > 1000);
        for pair in lines.windows(2) {
            assert!(pair[0] < pair[1], "`{}` before `{}`", pair[0], pair[1]);
        }
        for line in lines {
            let mut words = line.split(' ');
            let name = words.next().unwrap();
            assert_eq!(name, normal_name(name));
            assert!(
                words.clone().count() > 0 && words.all(|word| products::by_name(word).is_some()),
                "{line}"
            );
        }
    }

    #[test]
    fn a_variable_is_told_from_an_abbreviation() {
        assert!(is_variable("lc_messages") && !is_variable("lc_messages_d"));
        assert!(!is_variable("") && !is_variable("#"));
    }

    #[test]
    fn slips_find_their_variable() {
        assert_eq!(
            nearest_variable("innodb_bufer_pool_size", "mariadb"),
            Some("innodb_buffer_pool_size")
        );
        assert_eq!(
            nearest_variable("innodb-flush-log-at-trx-comit", "mysql"),
            Some("innodb_flush_log_at_trx_commit")
        );
        assert_eq!(
            nearest_variable("innodb_buffer_pool_size", "mariadb"),
            None,
            "it is right as it is"
        );
        assert_eq!(nearest_variable("shared_buffers", "mysql"), None);
        assert_eq!(nearest_variable("x", "mysql"), None);
    }

    #[test]
    fn a_variable_of_the_other_product_is_not_suggested() {
        assert_ne!(
            nearest_variable("innodb_use_mtflus", "mysql"),
            Some("innodb_use_mtflush")
        );
        assert_eq!(
            nearest_variable("innodb_use_mtflus", "mariadb"),
            Some("innodb_use_mtflush")
        );
    }
}
