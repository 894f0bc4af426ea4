//! The forms that a setting's value has: as a server shows and takes it, and as evidence holds it.
//!
//! Settings of MySQL and MariaDB have one form.

use super::server::{Product, Version};
use super::{postgresql, sqlite};

/// A value as a server, an option file or an experiment has it, in the form of evidence.
///
/// # Errors
/// What the server expects instead, a sentence without its end.
pub fn canonical(
    product: Product,
    name: &str,
    written: &str,
    version: Version,
) -> Result<String, String> {
    match product {
        Product::PostgreSql => postgresql::canonical(name, written, version),
        Product::Sqlite => sqlite::canonical(name, written),
        Product::MySql | Product::MariaDb | Product::Percona => Ok(written.to_owned()),
    }
}

/// A value of evidence as an option file takes it.
#[must_use]
pub fn written(product: Product, name: &str, value: &str, version: Version) -> String {
    match product {
        Product::PostgreSql => postgresql::written(name, value, version),
        Product::Sqlite => sqlite::written(name, value),
        Product::MySql | Product::MariaDb | Product::Percona => value.to_owned(),
    }
}
