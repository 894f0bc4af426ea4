//! What `SHOW CREATE TABLE` says about the workload's tables.
//!
//! Reads the options that differ between servers and nothing else of SQL.

use super::value::Value;

/// A property of all tables: the values found, each once, joined by commas.
pub fn look_up(schema: &str, key: &str) -> Option<(String, Value)> {
    let option = |names: &[&str]| {
        let mut found: Vec<String> = names
            .iter()
            .flat_map(|name| option_values(schema, name))
            .collect();
        found.sort();
        found.dedup();
        (!found.is_empty()).then(|| found.join(","))
    };
    let text = match key {
        "engine" => option(&["engine"])?,
        "row_format" => option(&["row_format"])?,
        "charset" => {
            let charset = option(&["charset", "character set"])?;
            if charset == "utf8" {
                "utf8mb3".to_owned()
            } else {
                charset
            }
        }
        "collation" => option(&["collate"])?,
        "compression" => compression(schema),
        "foreign_keys" => {
            let count = schema.to_ascii_lowercase().matches("foreign key").count();
            return Some((
                format!("{count} in the schema"),
                Value::Number(count as f64),
            ));
        }
        _ => return None,
    };
    Some((text.clone(), Value::Word(text)))
}

/// Whether tables are stored compressed, and how.
fn compression(schema: &str) -> String {
    let on = |value: &String| !["0", "off", "none", "no"].contains(&value.as_str());
    let mut kinds = Vec::new();
    if option_values(schema, "row_format")
        .iter()
        .any(|format| format == "compressed")
    {
        kinds.push("rows");
    }
    let by_page = [
        option_values(schema, "page_compressed"),
        option_values(schema, "compression"),
    ]
    .concat();
    if by_page.iter().any(on) {
        kinds.push("pages");
    }
    if kinds.is_empty() {
        "none".to_owned()
    } else {
        kinds.join(",")
    }
}

/// Values of `NAME=value`, with or without quotes and back quotes around either, in lower case.
fn option_values(schema: &str, name: &str) -> Vec<String> {
    let lower = schema.to_ascii_lowercase();
    let mut values = Vec::new();
    let mut rest = lower.as_str();
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back();
        let after = rest[at + name.len()..].trim_start_matches('`').trim_start();
        rest = &rest[at + name.len()..];
        if before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let value = after
            .strip_prefix('=')
            .unwrap_or("")
            .trim_start()
            .trim_start_matches(['\'', '"', '`']);
        let end = value
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(value.len());
        if end > 0 {
            values.push(value[..end].to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "CREATE TABLE `a` (`id` int, `engine` int, CONSTRAINT `c` FOREIGN KEY (`id`) REFERENCES `b` (`id`)) \
        ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin `PAGE_COMPRESSED`='ON';\n\
        CREATE TABLE `b` (`id` int) ENGINE=RocksDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;";

    #[track_caller]
    fn check(key: &str, expected: &str) {
        assert_eq!(
            look_up(SCHEMA, key).unwrap().1.to_string(),
            expected,
            "{key}"
        );
    }

    #[test]
    fn the_options_of_all_tables_are_found() {
        check("engine", "innodb,rocksdb");
        check("charset", "utf8mb4");
        check("collation", "utf8mb4_bin");
        check("compression", "pages");
        check("foreign_keys", "1");
        assert_eq!(look_up(SCHEMA, "row_format"), None);
    }

    #[test]
    fn compression_that_is_switched_off_is_none() {
        assert_eq!(
            look_up("CREATE TABLE a (b int) COMPRESSION='none'", "compression")
                .unwrap()
                .0,
            "none"
        );
        assert_eq!(
            look_up(
                "CREATE TABLE a (b int) ROW_FORMAT=COMPRESSED",
                "compression"
            )
            .unwrap()
            .0,
            "rows"
        );
    }
}
