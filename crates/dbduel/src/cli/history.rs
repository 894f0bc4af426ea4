//! `dbduel history`: which records, and what of them is followed.

use std::path::PathBuf;

use clap::Args;

use crate::commands::fail_if::quantity_named;
use crate::judge::summary::Quantity;
use crate::lab::experiment::quantity::share;

/// `dbduel history`.
#[derive(Debug, Args)]
pub struct History {
    /// Records, or directories of records.
    #[arg(required = true, value_name = "DIR")]
    pub records: Vec<PathBuf>,
    /// Follow this in place of throughput: p50, p95, p99, cpu or written.
    #[arg(long, value_name = "QUANTITY", value_parser = quantity)]
    pub quantity: Option<Quantity>,
    /// Smallest change of the ratio that is told.
    #[arg(long, default_value = "1 %", value_name = "SHARE", value_parser = share)]
    pub magnitude: f64,
    /// For programs.
    #[arg(long)]
    pub json: bool,
}

fn quantity(text: &str) -> Result<Quantity, String> {
    quantity_named(text)
        .ok_or_else(|| format!("expected p50, p95, p99, cpu or written, found `{text}`"))
}
