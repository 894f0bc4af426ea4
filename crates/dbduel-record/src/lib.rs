//! The contract between the half of dbduel that makes records and the half that reads them.
//!
//! A record is a directory of plain files (see [`store`]). This crate defines their content, writes them so that no
//! crash loses what was written, and reads them leniently. It computes no statistics, uses no clock, and imports
//! nothing else of the project.
//!
//! # Compatibility
//!
//! Every plan carries a [`FormatVersion`]. A reader accepts every record of its own major version; within a major
//! version fields are only added, each with a stated meaning when absent.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

pub mod answers;
pub mod bisect;
mod bounds;
pub mod captured;
pub mod commits;
pub mod design;
pub mod event;
pub mod facts;
pub mod files;
pub mod foreign;
pub mod insert_benchmark;
pub mod late;
pub mod latency;
pub mod manifest;
pub mod names;
pub mod order_entry;
pub mod plan;
pub mod record_set;
pub mod rows;
pub mod seed;
pub mod statement_classes;
pub mod statements;
pub mod store;
pub mod sweep;
pub mod tsv;
pub mod used;
pub mod variants;
mod verdict;
pub mod whole;

pub use event::{Event, Stamped};
pub use plan::{FormatVersion, Plan};
pub use store::{Complaint, Record, RecordError, RecordWriter};
pub use verdict::Verdict;
