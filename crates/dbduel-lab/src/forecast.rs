//! Forecast of loading a workload's tables: rows, disk space, time. Refuses a load that the disk clearly has no room
//! for.

use std::path::Path;

use anyhow::{Result, bail};
use dbduel_record::plan::Parameters;
use dbduel_text::counts;
use dbduel_workloads::Workload;
use dbduel_workloads::fill::Extent;
use serde_json::Value;

use dbduel_machine::host;

/// Load rate in rows per second where server and load shared two processors; an order of magnitude.
const ROWS_S: f64 = 250_000.0;
/// Share of the estimate that uncompressed tables take at least.
const SURE: f64 = 0.75;
/// The same for tables that may be compressed.
const SURE_COMPRESSED: f64 = 0.2;
/// File systems where a copy shares its blocks at first.
const SHARING: [&str; 3] = ["btrfs", "xfs", "bcachefs"];

/// Space needed on one disk.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Need {
    /// Expected bytes.
    pub expected_bytes: f64,
    /// Lower bound, bytes.
    pub sure_bytes: f64,
}

impl Need {
    /// Space of tables to load, in `copies` copies.
    #[must_use]
    pub fn to_load(extent: Extent, parameters: &Parameters, copies: u32) -> Self {
        let expected_bytes = extent.disk_bytes as f64 * f64::from(copies);
        let sure = if may_be_compressed(parameters) {
            SURE_COMPRESSED
        } else {
            SURE
        };
        Need {
            expected_bytes,
            sure_bytes: expected_bytes * sure,
        }
    }

    /// Space of files of a known size.
    #[must_use]
    pub fn to_copy(bytes: u64) -> Self {
        Need {
            expected_bytes: bytes as f64,
            sure_bytes: bytes as f64,
        }
    }

    /// Sum of both.
    #[must_use]
    pub fn and(self, other: Need) -> Self {
        Need {
            expected_bytes: self.expected_bytes + other.expected_bytes,
            sure_bytes: self.sure_bytes + other.sure_bytes,
        }
    }

    /// Refuses data that clearly do not fit onto the disk of `path`.
    ///
    /// # Errors
    /// States the needed and the free space, and which parameters to lower.
    pub fn check(&self, path: &Path, workload: &dyn Workload) -> Result<()> {
        let free = host::free_disk_bytes(path)?;
        if self.sure_bytes <= free as f64 {
            return Ok(());
        }
        let lower = match workload.size_parameters() {
            [] => String::new(),
            names => format!("lower `{}`, or ", names.join("` or `")),
        };
        bail!(
            "the data of `{}` need about {} in `{}`, which has {} free; {lower}make room",
            workload.name(),
            dbduel_text::bytes(self.expected_bytes as u64),
            path.display(),
            dbduel_text::bytes(free)
        );
    }
}

/// Rows, space and time of one load, as a part of a sentence.
#[must_use]
pub fn sentence(extent: Extent, parameters: &Parameters) -> String {
    let compressed = if may_be_compressed(parameters) {
        " before compression"
    } else {
        ""
    };
    format!(
        "{} rows, about {} on disk{compressed}, about {} at {} rows/s",
        counts::of(extent.rows),
        dbduel_text::bytes(extent.disk_bytes),
        dbduel_text::duration(extent.rows as f64 / ROWS_S),
        counts::of(ROWS_S as u64)
    )
}

/// Number of copies of data that are loaded and then kept as a snapshot.
#[must_use]
pub fn copies_with_snapshot(home: &Path) -> u32 {
    let file_system = host::read(home).file_system.unwrap_or_default();
    if SHARING.contains(&file_system.as_str()) {
        1
    } else {
        2
    }
}

/// True when a parameter names another engine than InnoDB or mentions compression.
fn may_be_compressed(parameters: &Parameters) -> bool {
    let is_none = |text: &str| text.is_empty() || text == "none";
    parameters.iter().any(|(name, value)| match value {
        Value::String(text) if name == "engine" => !text.eq_ignore_ascii_case("innodb"),
        Value::String(text) if name == "page_compression" => !is_none(text),
        Value::String(text) => text.to_ascii_lowercase().contains("compress"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_workloads::find;

    const EXTENT: Extent = Extent {
        rows: 1_500_000,
        disk_bytes: 300 << 20,
    };

    fn with(name: &str, value: &str) -> Parameters {
        Parameters::from([(name.to_owned(), value.into())])
    }

    #[test]
    fn what_clearly_does_not_fit_is_refused_with_what_to_lower() {
        let workload = find("linkbench").unwrap();
        let here = Path::new("/");
        let petabytes = Need::to_copy(1 << 60);
        let said = petabytes.check(here, workload).unwrap_err().to_string();
        assert!(said.contains("lower `maxid1`, or make room"), "{said}");
        assert!(said.contains("1,048,576 TiB"), "{said}");
        assert!(Need::default().check(here, workload).is_ok());
    }

    #[test]
    fn compressed_tables_get_the_benefit_of_the_doubt() {
        for (name, value, sure) in [
            ("row_format", "compressed", SURE_COMPRESSED),
            ("create_table_options", "PAGE_COMPRESSED=1", SURE_COMPRESSED),
            ("page_compression", "lz4", SURE_COMPRESSED),
            ("engine", "rocksdb", SURE_COMPRESSED),
            ("engine", "InnoDB", SURE),
            ("page_compression", "none", SURE),
        ] {
            let need = Need::to_load(EXTENT, &with(name, value), 2);
            assert_eq!(
                need.sure_bytes,
                need.expected_bytes * sure,
                "{name} = {value}"
            );
            assert_eq!(need.expected_bytes, (600 << 20) as f64);
        }
    }

    #[test]
    fn needs_add_up_and_are_told() {
        let both = Need::to_copy(7).and(Need::to_copy(8));
        assert_eq!(both, Need::to_copy(15));
        assert_eq!(
            sentence(EXTENT, &Parameters::new()),
            "1,500,000 rows, about 300 MiB on disk, about 6 s at 250,000 rows/s"
        );
        let compressed = sentence(EXTENT, &with("page_compression", "zlib"));
        assert!(
            compressed.contains("300 MiB on disk before compression"),
            "{compressed}"
        );
    }
}
