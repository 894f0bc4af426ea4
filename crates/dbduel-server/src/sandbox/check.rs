//! Lets the daemon check the settings before anything is initialised or started.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::super::command::quote;
use super::super::home::{create_private_dir, write_whole};
use super::super::products::Places;
use super::super::refusal::{self, SettingRemark};
use super::Sandbox;

const DEADLINE: Duration = Duration::from_secs(60);

impl Sandbox {
    /// Lets the daemon check the contender's settings. Returns its remarks on accepted ones: a changed value, or a
    /// setting without effect.
    ///
    /// Values that only an engine can check are found at the start.
    ///
    /// # Errors
    /// [`RefusedSetting`](super::super::RefusedSetting), by downcast; or the check itself fails.
    pub fn check_settings(&self) -> Result<Vec<SettingRemark>> {
        // Some versions leave files in the data directory even when they only check.
        let scratch = self.folder.join("check");
        create_private_dir(&*self.files, &scratch)?;
        let checked = self.check_in(&scratch);
        // Only ever holds what the check left.
        let _ = fs::remove_dir_all(&scratch);
        checked
    }

    fn check_in(&self, scratch: &Path) -> Result<Vec<SettingRemark>> {
        let config = scratch.join(self.product.configuration_name());
        let places = Places {
            data: scratch,
            tmp: scratch,
            socket: &self.socket,
            listen: self.listen,
            pid_file: &scratch.join("pid"),
            // To standard error.
            log: None,
        };
        let text = self
            .product
            .configuration(&self.build, &places, &self.settings);
        write_whole(&*self.files, &config, text.as_bytes(), 0o600)?;
        let finished = self
            .build
            .tool()
            .with(|command| {
                command.arg(self.product.configuration_argument(&config));
                command
                    .args(self.product.more_arguments(scratch))
                    .args(self.product.check_arguments(self.build.version))
                    .current_dir(scratch);
            })
            .run(DEADLINE)?;
        if finished.status.success() {
            return Ok(refusal::remarks(&finished.stderr, &self.settings));
        }
        match refusal::refused(&finished.stderr, &self.settings, self.product.name()) {
            Some(refused) => Err(refused.into()),
            // MariaDB 10.1.8 crashes while it checks. That says nothing about the settings; the start will.
            None if finished.stderr.lines().any(refusal::is_crash) => Ok(Vec::new()),
            None => bail!(
                "`{}` refuses its configuration ({}){}",
                self.build.id,
                finished.status,
                quote(&finished.stderr)
            ),
        }
    }
}
