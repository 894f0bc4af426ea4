//! Checks which settings a contender may have.

use dbduel_text::Version;

use super::super::products::ServerProduct;
use super::super::refusal::RefusedSetting;
use super::super::settings::{Setting, normal_name};

/// Refuses settings that cannot be written, that belong to the lab, or that destroy data with this version.
///
/// # Errors
/// The first such setting, with the reason.
pub fn check_settings(
    settings: &[Setting],
    version: Version,
    product: &dyn ServerProduct,
) -> Result<(), RefusedSetting> {
    let refused = settings.iter().find_map(|setting| {
        let reason = refused_by_lab(setting, version, product)?;
        Some(RefusedSetting {
            setting: setting.clone(),
            said: reason,
            suggestion: None,
        })
    });
    refused.map_or(Ok(()), Err)
}

/// Why the lab does not permit this setting; `None` when the server decides.
#[must_use]
pub fn refused_by_lab(
    setting: &Setting,
    version: Version,
    product: &dyn ServerProduct,
) -> Option<String> {
    let value = setting.value.as_deref().unwrap_or_default();
    if let Some(why) = unwritable(&setting.name, value) {
        return Some(why.to_owned());
    }
    product
        .reserved(&setting.normal_name(), value)
        .or_else(|| product.forbids(version, setting).map(str::to_owned))
}

/// Why a setting cannot be a line of a configuration, whatever its server; `None` when it can.
#[must_use]
pub fn unwritable(name: &str, value: &str) -> Option<&'static str> {
    let name = normal_name(name);
    let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(usable) {
        return Some("this is not the name of a setting");
    }
    value
        .contains(['\n', '\r', '\0'])
        .then_some("a value must be one line")
}

#[cfg(test)]
mod tests {
    use super::super::super::products;
    use super::*;

    fn refusal(setting: &Setting) -> Option<String> {
        let product = products::by_name("mysql").unwrap();
        refused_by_lab(setting, Version::new(8, 0, 33), product)
    }

    #[test]
    fn settings_that_the_lab_refuses_itself() {
        assert_eq!(
            refusal(&Setting::new("innodb_buffer_pool_size", Some("1G"))),
            None
        );
        assert_eq!(refusal(&Setting::new("skip-log-bin", None)), None);
        assert_eq!(
            refusal(&Setting::new("hot_cache.key_buffer_size", Some("1M"))),
            None
        );
        assert!(
            refusal(&Setting::new("DataDir", Some("/tmp")))
                .unwrap()
                .contains("private place")
        );
        assert!(
            refusal(&Setting::new("bind-address", Some("0.0.0.0")))
                .unwrap()
                .contains("private place")
        );
        assert!(
            refusal(&Setting::new("loose-innodb_x", Some("1")))
                .unwrap()
                .contains("must not depend on an ignored setting")
        );
        assert!(
            refusal(&Setting::new("a\nport", Some("1")))
                .unwrap()
                .contains("not the name")
        );
        assert!(
            refusal(&Setting::new("sql_mode", Some("x\nport=1")))
                .unwrap()
                .contains("one line")
        );
        assert!(refusal(&Setting::new("", None)).is_some());
    }
}
