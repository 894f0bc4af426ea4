//! An archive as vendors publish them.

use std::path::Path;

use anyhow::Result;

use super::super::digest;
use super::super::unpack;
use super::path::absolute;
use super::{Artifact, FetchContext, Fetched, Source};

/// `tar:/x/mysql-8.0.tar.xz`; zip and jar files too.
pub struct Archive;

impl Source for Archive {
    fn scheme(&self) -> &'static str {
        "tar"
    }

    fn about(&self) -> &'static str {
        "An archive of binaries as a vendor publishes it: tar with any compression, zip or jar."
    }

    fn example(&self) -> &'static str {
        "tar:/srv/mariadb-11.4.5-linux-x86_64.tar.gz"
    }

    fn check(&self, locator: &str) -> Result<(), String> {
        absolute(locator)?;
        if unpack::kind(Path::new(locator)).is_none() {
            return Err(format!(
                "`{locator}` does not end in {}",
                unpack::ENDINGS.join(", ")
            ));
        }
        Ok(())
    }

    fn fetch(&self, locator: &str, bench: &FetchContext<'_>) -> Result<Fetched> {
        let archive = Path::new(locator);
        let digests = digest::of_file(archive)?;
        unpack::archive(archive, bench.staging, bench.progress)?;
        Ok(Fetched {
            tree: bench.staging.to_path_buf(),
            daemon: None,
            artifacts: vec![Artifact {
                name: locator.to_owned(),
                digests,
            }],

            // The archive is the user's.
            leftovers: Vec::new(),
        })
    }
}
