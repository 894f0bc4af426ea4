//! Creates a data directory with `initdb`: fixed encoding and locale, passwords by SCRAM, one superuser.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_record::files::LocalFiles;

use super::super::super::command::{Finished, Tool, quote, shell_word};
use super::super::super::home::create_private_dir;
use super::super::super::refusal::RefusedSetting;
use super::super::super::sandbox::{Account, DATABASE, USER};
use super::configuration::password_method;
use super::{Build, Setting};

const DEADLINE: Duration = Duration::from_secs(600);

/// Creates the data directory `data` with the lab's account, whose password is kept in it, and with the lab's database.
///
/// # Errors
/// A setting has a value that `initdb` does not accept ([`RefusedSetting`]), the tree has no `initdb`, or it fails; the
/// text quotes it.
pub fn initialise(build: &Build, settings: &[Setting], data: &Path, staging: &Path) -> Result<()> {
    let options = options(build, settings)?;
    Account::of_data(&LocalFiles, staging)?;
    let password = Account::file(staging);
    let initdb = initdb(build, staging)?;
    let made = run(build, &initdb, |command| {
        command.arg("-D").arg(data).arg("-L").arg(&build.share);
        command.args(["-U", USER, "-E", "UTF8", "--locale=C", "--nosync"]);
        command.args(["-A", password_method(build.version)]);
        command.arg("--pwfile").arg(&password).args(&options);
        command.current_dir(staging);
    })?;
    if !made.status.success() {
        bail!(
            "could not initialise a data directory of `{}` ({}){}",
            build.id,
            made.status,
            quote(&made.stderr)
        );
    }
    // A copy of the data brings its account along.
    fs::rename(&password, Account::file(data)).context("could not keep the account's password")?;
    let made = build
        .tool()
        .with(|command| {
            command.arg("--single").arg("-D").arg(data).arg("postgres");
            command.current_dir(staging);
        })
        .stdin(format!("CREATE DATABASE {DATABASE};\n").into_bytes())
        .run(DEADLINE)?;
    // It ends well even when the statement failed.
    if !made.status.success() || made.stderr.contains("ERROR:") {
        bail!(
            "could not create the database `{DATABASE}` with `{}` ({}){}",
            build.id,
            made.status,
            quote(&made.stderr)
        );
    }
    Ok(())
}

fn run(
    build: &Build,
    program: &Path,
    with: impl FnOnce(&mut std::process::Command),
) -> Result<Finished> {
    let command = match &build.loader {
        None => build.command_of(program),
        // Its libraries go with the tree's C library only.
        Some(loader) => {
            let mut command = build.command_of(loader);
            command.arg("--library-path").arg(libraries(build));
            command.arg(program);
            command
        }
    };
    Tool::of(command, "initdb").with(with).run(DEADLINE)
}

/// The folders of the tree's libraries, as a search path of its loader.
fn libraries(build: &Build) -> OsString {
    std::env::join_paths(&build.library_path).unwrap_or_default()
}

/// Arguments of `initdb` for the settings that it accepts.
fn options(build: &Build, settings: &[Setting]) -> Result<Vec<String>, RefusedSetting> {
    let mut options = Vec::new();
    for setting in settings {
        let refused = |said: &str| RefusedSetting {
            setting: setting.clone(),
            said: said.to_owned(),
            suggestion: None,
        };
        let value = setting.value.as_deref().unwrap_or_default();
        if setting.normal_name() == "wal_segment_size" {
            let megabytes = megabytes(value)
                .ok_or_else(|| refused("write it in megabytes, for example `64MB`"))?;
            options.push(format!("--wal-segsize={megabytes}"));
        } else if setting.asks_for_on() {
            options.push("--data-checksums".to_owned());
        } else if setting.asks_for_off() {
            // The default before 18, which has no option for it.
            if build.version.at_least(18, 0) {
                options.push("--no-data-checksums".to_owned());
            }
        } else {
            return Err(refused("it is `on` or `off`"));
        }
    }
    Ok(options)
}

/// `64MB`, `64`, `1GB`.
fn megabytes(value: &str) -> Option<u32> {
    let (digits, factor) = match value.strip_suffix("GB") {
        Some(digits) => (digits, 1024),
        None => (value.strip_suffix("MB").unwrap_or(value), 1),
    };
    digits.trim().parse::<u32>().ok()?.checked_mul(factor)
}

/// The `initdb` of the tree. It runs the `postgres` beside it; where that needs the tree's own loader, a copy is placed
/// beside a script that starts `postgres` with the loader.
fn initdb(build: &Build, staging: &Path) -> Result<PathBuf> {
    let folder = build.daemon.parent().unwrap_or(&build.basedir);
    let own = folder.join("initdb");
    if !own.is_file() {
        bail!(
            "`{}` has no `initdb` beside it, which creates data directories",
            build.daemon.display()
        );
    }
    let Some(loader) = &build.loader else {
        return Ok(own);
    };
    let bin = staging.join("bin");
    create_private_dir(&LocalFiles, &bin)?;
    let (copy, script) = (bin.join("initdb"), bin.join("postgres"));
    let text = format!(
        "#!/bin/sh\nexec {} --library-path {} {} \"$@\"\n",
        shell_word(&loader.to_string_lossy()),
        shell_word(&libraries(build).to_string_lossy()),
        shell_word(&build.daemon.to_string_lossy()),
    );
    fs::copy(&own, &copy)
        .and_then(|_| fs::write(&script, text))
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o700)))
        .with_context(|| format!("could not prepare `{}`", copy.display()))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_log_segments_are_megabytes() {
        assert_eq!(megabytes("64MB"), Some(64));
        assert_eq!(megabytes("1GB"), Some(1024));
        assert_eq!(megabytes("16"), Some(16));
        assert_eq!(megabytes("16kB"), None);
    }
}
