//! The tables of which values settings take (`data/values.tsv` and `values-postgresql.tsv`).
//!
//! A line has a setting, the servers, the form of the value, and what the form needs: words or bounds.

use std::collections::BTreeMap;

use dbduel_text::Version;

use super::server::{Product, Servers};

/// The form of each setting's value, by servers.
pub struct ValueTable<F>(BTreeMap<&'static str, Vec<(Servers, F)>>);

impl<F> ValueTable<F> {
    /// Reads a table; `form` reads the last two cells of a line.
    ///
    /// # Errors
    /// What is wrong with which line.
    pub fn parse(
        text: &'static str,
        form: impl Fn(&'static str, &'static str) -> Result<F, String>,
    ) -> Result<Self, String> {
        let mut table: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [setting, on, takes, values] = cells[..] else {
                return Err(format!("`{line}` has not four cells"));
            };
            let form = form(takes, values).map_err(|why| format!("`{line}`: {why}"))?;
            table
                .entry(setting)
                .or_default()
                .push((Servers::parse(on)?, form));
        }
        Ok(ValueTable(table))
    }

    /// The form that a setting's value has on this server; `None` when it is not recorded.
    #[must_use]
    pub fn of(&self, setting: &str, product: Product, version: Version) -> Option<&F> {
        let mut rows = self.0.get(setting)?.iter();
        rows.find(|(on, _)| on.includes(product, version))
            .map(|(_, form)| form)
    }

    /// The forms that a setting's value has on any server.
    pub fn all_of(&self, setting: &str) -> impl Iterator<Item = &F> {
        self.0
            .get(setting)
            .into_iter()
            .flatten()
            .map(|(_, form)| form)
    }

    /// Every setting and form.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &F)> {
        let rows = self.0.iter();
        rows.flat_map(|(setting, forms)| forms.iter().map(move |(_, form)| (*setting, form)))
    }
}
