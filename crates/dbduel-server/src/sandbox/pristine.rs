//! Pristine data directories: initialised once, never used, and copied into sandboxes.
//!
//! Initialising takes seconds, copying does not; and two contenders with the same settings at initialisation begin with
//! the same bytes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dbduel_machine::random::secret;
use dbduel_record::files::LocalFiles;

use super::super::build::Build;
use super::super::home::{Home, clear_unfinished, create_private_dir, unfinished};
use super::super::products::ServerProduct;
use super::super::progress::Progress;
use super::super::settings::Setting;

/// Digits of the digest in a folder's name.
const DIGEST_DIGITS: usize = 12;

/// The pristine data directory for a build and the settings that are fixed at initialisation; created when there is
/// none.
///
/// # Errors
/// The server refuses a setting ([`RefusedSetting`](super::super::RefusedSetting), by downcast) or cannot be initialised; the text
/// quotes it.
pub fn ensure(
    home: &Home,
    build: &Build,
    settings: &[Setting],
    progress: &dyn Progress,
) -> Result<PathBuf> {
    let product = build.product()?;
    let relevant = relevant(settings, product.init_time_settings(build.version));
    let folder = home.pristine().join(key(build, &relevant));
    if folder.is_dir() {
        return Ok(folder);
    }
    create_private_dir(&LocalFiles, &home.pristine())?;
    progress.stage(&format!("initialising a data directory of {}", build.id));
    let staging = tempdir(&home.pristine())?;
    let made = make(build, product, &relevant, &staging);
    let kept = made.and_then(|data| match fs::rename(&data, &folder) {
        Ok(()) => Ok(()),
        // Another run was quicker and made the same one.
        Err(_) if folder.is_dir() => Ok(()),
        Err(error) => {
            Err(error).with_context(|| format!("could not create `{}`", folder.display()))
        }
    });
    // Whatever came of it, the rest of the staging folder is of no use.
    let _ = fs::remove_dir_all(&staging);
    kept.map(|()| folder)
}

/// Removes every pristine data directory of a server.
///
/// # Errors
/// One of them cannot be removed.
pub fn remove_of(home: &Home, id: &str) -> std::io::Result<()> {
    let Ok(entries) = fs::read_dir(home.pristine()) else {
        return Ok(());
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let digest = name
            .strip_prefix(id)
            .and_then(|rest| rest.strip_prefix('-'));
        // The id of one server may be the beginning of another's.
        if digest.is_some_and(|digest| digest.len() == DIGEST_DIGITS && !digest.contains('-')) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn tempdir(parent: &Path) -> Result<PathBuf> {
    clear_unfinished(parent);
    let path = unfinished(parent, &secret(4)?);
    create_private_dir(&LocalFiles, &path)?;
    Ok(path)
}

/// The settings that are fixed at initialisation, the last of each name.
fn relevant(settings: &[Setting], names: &[&str]) -> Vec<Setting> {
    let mut relevant: Vec<Setting> = Vec::new();
    for setting in settings
        .iter()
        .filter(|setting| names.contains(&setting.normal_name().as_str()))
    {
        relevant.retain(|other| other.normal_name() != setting.normal_name());
        relevant.push(setting.clone());
    }
    relevant.sort_by_key(Setting::normal_name);
    relevant
}

/// A folder name that identifies the daemon and the settings.
fn key(build: &Build, relevant: &[Setting]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(build.daemon_digests.blake3.as_bytes());
    for setting in relevant {
        hasher.update(
            format!(
                "\n{}={}",
                setting.normal_name(),
                setting.value.as_deref().unwrap_or("")
            )
            .as_bytes(),
        );
    }
    format!(
        "{}-{}",
        build.id,
        &hasher.finalize().to_hex()[..DIGEST_DIGITS]
    )
}

fn make(
    build: &Build,
    product: &dyn ServerProduct,
    relevant: &[Setting],
    staging: &Path,
) -> Result<PathBuf> {
    let data = staging.join("data");
    product.initialise(build, relevant, &data, staging)?;
    for name in product.identity_files() {
        let path = data.join(name);
        if path.exists() {
            fs::remove_file(&path)
                .with_context(|| format!("could not remove `{}`", path.display()))?;
        }
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_that_matter_make_another_data_directory() {
        let names = ["innodb_page_size", "innodb_data_file_path"];
        let settings = [
            Setting::new("innodb-page-size", Some("16K")),
            Setting::new("sync_binlog", Some("1")),
            Setting::new("innodb_page_size", Some("4K")),
            Setting::new("innodb_data_file_path", Some("ibdata1:12M:autoextend")),
        ];
        let relevant = relevant(&settings, &names);
        let pairs: Vec<_> = relevant
            .iter()
            .map(|setting| (setting.normal_name(), setting.value.clone().unwrap()))
            .collect();
        assert_eq!(
            pairs,
            [
                (
                    "innodb_data_file_path".to_owned(),
                    "ibdata1:12M:autoextend".to_owned()
                ),
                ("innodb_page_size".to_owned(), "4K".to_owned())
            ]
        );
    }
}
