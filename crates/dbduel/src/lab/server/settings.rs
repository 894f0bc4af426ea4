//! Settings as a user asks for them, and whether the server took them.
//!
//! Knows how servers write names and values; reads no files and talks to nobody.

use std::collections::BTreeMap;

/// One setting of a contender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name as the user wrote it, with dashes or underscores.
    pub name: String,
    /// Value; `None` for an option that has none, such as `skip-log-bin`.
    pub value: Option<String>,
}

impl Setting {
    /// A setting.
    pub fn new(name: &str, value: Option<&str>) -> Self {
        Setting {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        }
    }

    /// The name as variables have it.
    pub fn normal_name(&self) -> String {
        normal_name(&self.name)
    }

    /// True when a switch is asked to be on.
    pub fn asks_for_on(&self) -> bool {
        self.value
            .as_deref()
            .is_none_or(|value| switch(value) == Some(true))
    }
}

/// A setting that the running server does not show as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTaken {
    /// Name as the user wrote it.
    pub name: String,
    /// What was asked for; empty for an option without value.
    pub asked: String,
    /// What the server shows; `None` when it has no such variable.
    pub got: Option<String>,
    /// The last line of the server's log that mentions it.
    pub log_line: Option<String>,
}

/// Options that only act at start and are not variables.
const NOT_VARIABLES: &[&str] = &["plugin_load", "plugin_load_add", "early_plugin_load"];

/// A name in the form that variables have: lower case, underscores.
pub fn normal_name(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

/// Compares what was asked with what the server shows. `variables` has names in lower case.
pub fn not_taken(
    settings: &[Setting],
    variables: &BTreeMap<String, String>,
    log: &str,
) -> Vec<NotTaken> {
    // The last of several settings of one name is the one that counts.
    let mut last: BTreeMap<String, &Setting> = BTreeMap::new();
    for setting in settings {
        last.insert(setting.normal_name(), setting);
    }
    let mut found = Vec::new();
    for setting in settings {
        let name = setting.normal_name();
        if NOT_VARIABLES.contains(&name.as_str())
            || !last
                .get(&name)
                .is_some_and(|counts| std::ptr::eq(*counts, setting))
        {
            continue;
        }
        let (variable, negated) = variable_of(&name, variables);
        let got = variable.and_then(|variable| variables.get(&variable));
        let asked = setting.value.clone().unwrap_or_default();
        let taken = got.is_some_and(|got| {
            if negated {
                switch(got) == Some(!setting.asks_for_on())
            } else {
                agrees(&name, setting, got)
            }
        });
        if !taken {
            found.push(NotTaken {
                name: setting.name.clone(),
                asked,
                got: got.cloned(),
                log_line: mention(&name, log),
            });
        }
    }
    found
}

/// The variable that shows a setting, and whether it shows the contrary: `skip-log-bin` is seen in `log_bin`.
fn variable_of(name: &str, variables: &BTreeMap<String, String>) -> (Option<String>, bool) {
    if variables.contains_key(name) {
        return (Some(name.to_owned()), false);
    }
    for prefix in ["skip_", "disable_"] {
        if let Some(rest) = name.strip_prefix(prefix)
            && variables.contains_key(rest)
        {
            return (Some(rest.to_owned()), true);
        }
    }
    let other = match name {
        "transaction_isolation" => "tx_isolation",
        "transaction_read_only" => "tx_read_only",
        _ => name.strip_prefix("enable_").unwrap_or(""),
    };
    (
        variables.contains_key(other).then(|| other.to_owned()),
        false,
    )
}

fn agrees(name: &str, setting: &Setting, got: &str) -> bool {
    let Some(asked) = &setting.value else {
        // An option without value turns something on; what it shows then may be a word of its own.
        return switch(got) != Some(false);
    };
    // The option takes a file name, the variable shows only whether there is a log.
    if name == "log_bin" && switch(asked).is_none() {
        return switch(got) == Some(true);
    }
    same_value(asked, got)
}

/// Whether two texts are one value: `1G` and `1073741824`, `ON` and `1`, `75` and `75.000000`, lists in any order.
pub fn same_value(asked: &str, got: &str) -> bool {
    let (asked, got) = (unquote(asked), unquote(got));
    if let (Some(asked), Some(got)) = (switch(asked), switch(got)) {
        return asked == got;
    }
    if let (Some(asked), Some(got)) = (number(asked), number(got)) {
        return (asked - got).abs() <= f64::EPSILON * asked.abs().max(got.abs());
    }
    let list = |text: &str| {
        let mut parts: Vec<String> = text
            .split(',')
            .map(|part| part.trim().to_ascii_lowercase())
            .collect();
        parts.sort();
        parts
    };
    list(asked) == list(got)
}

fn unquote(text: &str) -> &str {
    let text = text.trim();
    let inner = |quote: char| {
        text.strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
    };
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// What a switch says; `None` when the text is no switch.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Some(true),
        "off" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// A number with one of the suffixes that servers read.
fn number(text: &str) -> Option<f64> {
    let (digits, factor) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1u64 << 10),
        (at, 'm' | 'M') => (&text[..at], 1 << 20),
        (at, 'g' | 'G') => (&text[..at], 1 << 30),
        (at, 't' | 'T') => (&text[..at], 1 << 40),
        (at, 'p' | 'P') => (&text[..at], 1 << 50),
        (at, 'e' | 'E') => (&text[..at], 1 << 60),
        _ => (text, 1),
    };
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some(number * factor as f64)
}

/// The last line of a log that mentions a setting by name, with dashes or underscores.
fn mention(name: &str, log: &str) -> Option<String> {
    log.lines()
        .rev()
        .find(|line| normal_name(line).contains(name))
        .map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(asked: &str, got: &str, expected: bool) {
        assert_eq!(
            same_value(asked, got),
            expected,
            "asked `{asked}`, got `{got}`"
        );
    }

    #[test]
    fn one_value_has_many_spellings() {
        same("1G", "1073741824", true);
        same("1g", "1073741823", false);
        same("ON", "1", true);
        same("false", "OFF", true);
        same("75", "75.000000", true);
        same("0.001", "0.001000", true);
        same("row", "ROW", true);
        same("'O_DIRECT'", "O_DIRECT", true);
        same(
            "NO_ENGINE_SUBSTITUTION,STRICT_TRANS_TABLES",
            "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
            true,
        );
        same("2", "ON", false);
        same("", "", true);
        same("M", "0", false);
        same("128M", "128", false);
    }

    fn shows(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[track_caller]
    fn check(setting: Setting, variables: &[(&str, &str)], got: Option<Option<&str>>) {
        let found = not_taken(&[setting], &shows(variables), "");
        assert_eq!(
            found.first().map(|lost| lost.got.as_deref()),
            got,
            "{found:?}"
        );
    }

    #[test]
    fn a_clamped_setting_is_found() {
        let log = "a\n2026 [Warning] option 'table-open-cache': adjusted to 400\nb\n";
        let settings = [Setting::new("table-open-cache", Some("4000"))];
        let found = not_taken(&settings, &shows(&[("table_open_cache", "400")]), log);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].asked.as_str(), found[0].got.as_deref()),
            ("4000", Some("400"))
        );
        assert!(found[0].log_line.as_deref().unwrap().contains("adjusted"));
    }

    #[test]
    fn a_setting_without_variable_is_absent() {
        check(
            Setting::new("innodb_page_cleaners", Some("4")),
            &[("innodb_lru_scan_depth", "1")],
            Some(None),
        );
    }

    #[test]
    fn options_that_have_no_variable_of_their_name() {
        check(
            Setting::new("skip-log-bin", None),
            &[("log_bin", "OFF")],
            None,
        );
        check(
            Setting::new("skip-log-bin", None),
            &[("log_bin", "ON")],
            Some(Some("ON")),
        );
        check(
            Setting::new("skip-log-bin", Some("0")),
            &[("log_bin", "ON")],
            None,
        );
        check(
            Setting::new("log-bin", Some("binlog")),
            &[("log_bin", "ON")],
            None,
        );
        check(
            Setting::new("log-bin", None),
            &[("log_bin", "OFF")],
            Some(Some("OFF")),
        );
        check(
            Setting::new("skip_name_resolve", None),
            &[("skip_name_resolve", "ON")],
            None,
        );
        check(
            Setting::new("transaction-isolation", Some("READ-COMMITTED")),
            &[("tx_isolation", "READ-COMMITTED")],
            None,
        );
        check(
            Setting::new("plugin_load_add", Some("ha_rocksdb")),
            &[],
            None,
        );
    }

    #[test]
    fn the_last_of_two_counts() {
        let settings = [
            Setting::new("sync_binlog", Some("1")),
            Setting::new("sync-binlog", Some("0")),
        ];
        assert!(not_taken(&settings, &shows(&[("sync_binlog", "0")]), "").is_empty());
        assert_eq!(
            not_taken(&settings, &shows(&[("sync_binlog", "1")]), "").len(),
            1
        );
    }
}
