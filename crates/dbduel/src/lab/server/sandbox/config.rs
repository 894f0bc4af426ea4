//! Which settings a contender may have.

use super::super::build::Build;
use super::super::products::ServerProduct;
use super::super::refusal::RefusedSetting;
use super::super::settings::Setting;

/// Refuses settings that cannot be written, that belong to the lab, or that destroy data with this version.
///
/// # Errors
/// The first such setting, with the reason.
pub fn check_settings(
    settings: &[Setting],
    build: &Build,
    product: &dyn ServerProduct,
) -> Result<(), RefusedSetting> {
    for setting in settings {
        let refuse = |reason: &str| RefusedSetting {
            setting: setting.clone(),
            said: reason.to_owned(),
            suggestion: None,
        };
        let name = setting.normal_name();
        let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if name.is_empty()
            || !name.chars().all(usable)
            || !name.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            return Err(refuse("this is not the name of a setting"));
        }
        if setting
            .value
            .as_ref()
            .is_some_and(|value| value.contains(['\n', '\r', '\0']))
        {
            return Err(refuse("a value must be one line"));
        }
        if let Some(reason) = product.reserved(&name, setting.value.as_deref().unwrap_or_default())
        {
            return Err(refuse(&reason));
        }
        if let Some(reason) = product.forbids(build.version, setting) {
            return Err(refuse(reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::digest::Digests;
    use super::super::super::products;
    use super::super::super::version::Version;
    use super::*;
    use std::path::PathBuf;

    fn build(version: Version) -> Build {
        Build {
            id: "x".to_owned(),
            source: "path".to_owned(),
            locator: "/opt/x".to_owned(),
            artifacts: Vec::new(),
            product: "mysql".to_owned(),
            version,
            version_text: String::new(),
            daemon: PathBuf::from("/opt/x/bin/mysqld"),
            daemon_digests: Digests {
                bytes: 0,
                sha256: String::new(),
                blake3: String::new(),
            },
            basedir: PathBuf::from("/opt/x"),
            share: PathBuf::from("/opt/x/share"),
            plugins: None,
            library_path: Vec::new(),
            loader: None,
        }
    }

    fn refusal(setting: Setting) -> Option<String> {
        let product = products::by_name("mysql").unwrap();
        check_settings(&[setting], &build(Version::new(8, 0, 33)), product)
            .err()
            .map(|refused| refused.said)
    }

    #[test]
    fn settings_that_the_lab_refuses_itself() {
        assert_eq!(
            refusal(Setting::new("innodb_buffer_pool_size", Some("1G"))),
            None
        );
        assert_eq!(refusal(Setting::new("skip-log-bin", None)), None);
        assert_eq!(
            refusal(Setting::new("hot_cache.key_buffer_size", Some("1M"))),
            None
        );
        assert!(
            refusal(Setting::new("DataDir", Some("/tmp")))
                .unwrap()
                .contains("private place")
        );
        assert!(
            refusal(Setting::new("bind-address", Some("0.0.0.0")))
                .unwrap()
                .contains("private place")
        );
        assert!(
            refusal(Setting::new("loose-innodb_x", Some("1")))
                .unwrap()
                .contains("must not rest on an ignored setting")
        );
        assert!(
            refusal(Setting::new("a\nport", Some("1")))
                .unwrap()
                .contains("not the name")
        );
        assert!(
            refusal(Setting::new("sql_mode", Some("x\nport=1")))
                .unwrap()
                .contains("one line")
        );
        assert!(refusal(Setting::new("", None)).is_some());
    }
}
