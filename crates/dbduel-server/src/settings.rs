//! Settings as requested by a user.
//!
//! Reads no files and opens no connections.

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

    /// A setting from a plan, where an option without a value has an empty one.
    pub fn of_plan(setting: &dbduel_record::plan::Setting) -> Self {
        let value = (!setting.value.is_empty()).then_some(setting.value.as_str());
        Setting::new(&setting.name, value)
    }

    /// The name in the form of variables.
    pub fn normal_name(&self) -> String {
        normal_name(&self.name)
    }

    /// True when a switch is set to on.
    pub fn asks_for_on(&self) -> bool {
        self.value
            .as_deref()
            .is_none_or(|value| switch(value) == Some(true))
    }

    /// True when a switch is set to off.
    pub fn asks_for_off(&self) -> bool {
        self.value
            .as_deref()
            .is_some_and(|value| switch(value) == Some(false))
    }
}

/// The settings of the lab that a contender does not set itself.
pub fn unless_written<'s>(
    needed: Vec<(&'static str, u32)>,
    own: &'s [dbduel_record::plan::Setting],
) -> impl Iterator<Item = Setting> + 's {
    let is_written = move |name: &str| own.iter().any(|setting| normal_name(&setting.name) == name);
    let missing = needed
        .into_iter()
        .filter(move |(name, _)| !is_written(name));
    missing.map(|(name, value)| Setting::new(name, Some(&value.to_string())))
}

/// A name in the form of variables: lower case, underscores.
pub fn normal_name(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

/// Value of a switch; `None` when the text is no switch.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Some(true),
        "off" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// The last line of a log that mentions a setting by name, with dashes or underscores.
#[must_use]
pub fn last_mention(name: &str, log: &str) -> Option<String> {
    log.lines()
        .rev()
        .find(|line| normal_name(line).contains(name))
        .map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_on_without_a_value_and_in_every_spelling() {
        for on in [None, Some("ON"), Some("1"), Some("true"), Some("Yes")] {
            assert!(Setting::new("skip-log-bin", on).asks_for_on(), "{on:?}");
        }
        for off in ["OFF", "0", "false", "no", "2"] {
            assert!(
                !Setting::new("skip-log-bin", Some(off)).asks_for_on(),
                "{off}"
            );
        }
    }

    #[test]
    fn the_last_line_about_a_setting_is_found_in_either_spelling() {
        let log =
            "table_open_cache: 1\n2026 [Warning] option 'table-open-cache': adjusted to 400 \nb\n";
        let found = last_mention("table_open_cache", log);
        assert_eq!(
            found.as_deref(),
            Some("2026 [Warning] option 'table-open-cache': adjusted to 400")
        );
        assert_eq!(last_mention("sync_binlog", log), None);
    }
}
