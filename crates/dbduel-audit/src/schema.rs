//! Properties of the workload's tables from `SHOW CREATE TABLE`.
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
        "collation" => collations(schema)?,
        "compression" => compression(schema),
        "unlogged" => {
            let count = schema.matches("CREATE UNLOGGED TABLE").count();
            return Some((format!("{count} UNLOGGED"), Value::Number(count as f64)));
        }
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

/// The collations of all tables. Servers leave out the one that a character set has anyway: MySQL 8.0 says
/// `CHARSET=latin1` where MariaDB 10.11 says `CHARSET=latin1 COLLATE=latin1_swedish_ci`.
fn collations(schema: &str) -> Option<String> {
    let lower = schema.to_ascii_lowercase();
    let mut found: Vec<String> = lower
        .split("create table")
        .skip(1)
        .filter_map(|table| {
            let said = option_values(table, "collate").pop();
            said.or_else(|| {
                let charset = option_values(table, "charset").pop()?;
                default_collation(&charset).map(str::to_owned)
            })
        })
        .map(|collation| match collation.strip_prefix("utf8_") {
            Some(rest) => format!("utf8mb3_{rest}"),
            None => collation,
        })
        .collect();
    found.sort();
    found.dedup();
    (!found.is_empty()).then(|| found.join(","))
}

/// The default collation of the character sets that benchmarks use. MySQL from 8.0 and MariaDB from 10.6 always name
/// the one of utf8mb4, which differs between them.
fn default_collation(charset: &str) -> Option<&'static str> {
    Some(match charset {
        "latin1" => "latin1_swedish_ci",
        "utf8" | "utf8mb3" => "utf8mb3_general_ci",
        "utf8mb4" => "utf8mb4_general_ci",
        "ascii" => "ascii_general_ci",
        "binary" => "binary",
        _ => return None,
    })
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
    fn a_collation_that_goes_without_saying_is_the_same_as_one_that_is_said() {
        let collation = |options: &str| {
            let schema = format!("CREATE TABLE `a` (`b` int) ENGINE=InnoDB {options};\n");
            look_up(&schema, "collation").map(|found| found.0)
        };
        let same = [
            ("CHARSET=latin1", "CHARSET=latin1 COLLATE=latin1_swedish_ci"),
            ("CHARSET=utf8", "CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci"),
            ("CHARSET=utf8mb3", "CHARSET=utf8 COLLATE=utf8_general_ci"),
        ];
        for (silent, said) in same {
            assert!(collation(silent).is_some());
            assert_eq!(collation(silent), collation(said));
        }
        assert_ne!(
            collation("CHARSET=latin1"),
            collation("CHARSET=latin1 COLLATE=latin1_bin")
        );
        assert_eq!(collation(""), None);
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
