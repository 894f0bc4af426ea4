//! The forms that a setting's value has: as a server shows and takes it, and as evidence holds it.
//!
//! Settings of MySQL and MariaDB have one form.

use dbduel_text::Version;

use super::defaults::version_variable;
use super::evidence::Texts;
use super::server::Product;
use super::{postgresql, sqlite};

/// A value as a server, an option file or an experiment has it, in the form of evidence.
///
/// # Errors
/// The values that the server expects, a sentence without its full stop.
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

/// Which server variables are of, and its version as it writes it; `None` when they do not say.
#[must_use]
pub fn version_among(variables: &Texts) -> Option<(Product, &str)> {
    let of = |product| variables.get(version_variable(product)).map(String::as_str);
    for product in [Product::PostgreSql, Product::Sqlite] {
        if let Some(version) = of(product) {
            return Some((product, version));
        }
    }
    let version = of(Product::MySql)?;
    let comment = variables.get("version_comment").map_or("", String::as_str);
    Some((Product::recognise(version, comment), version))
}

/// Settings in the form of evidence.
pub fn in_one_form(variables: &mut Texts, product: Product, version: Version) {
    for (name, value) in variables {
        // What a server shows has its unit, so a bare number is in that of evidence already.
        if value.parse::<f64>().is_ok() {
            continue;
        }
        if let Ok(canonical) = canonical(product, name, value, version) {
            *value = canonical;
        }
    }
}
