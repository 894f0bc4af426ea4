//! An archive as published by a vendor.

use std::path::Path;

use anyhow::Result;

use super::super::unpack;
use super::path::absolute;
use super::{FetchContext, Fetched, Source, unpacked};

/// `tar:/x/mysql-8.0.tar.xz`; zip and jar files too.
pub const SOURCE: Source = Source {
    scheme: "tar",
    about: "A vendor's binary archive: tar with any compression, zip or jar.",
    example: "tar:/srv/mariadb-11.4.5-linux-x86_64.tar.gz",
    is_in_place: false,
    check,
    fetch,
};

fn check(locator: &str) -> Result<(), String> {
    absolute(locator)?;
    if unpack::kind(Path::new(locator)).is_none() {
        return Err(format!(
            "`{locator}` does not end in {}",
            unpack::ENDINGS.join(", ")
        ));
    }
    Ok(())
}

fn fetch(locator: &str, context: &FetchContext<'_>) -> Result<Fetched> {
    let archive = Path::new(locator);
    unpacked(locator, archive, Vec::new(), context)
}
