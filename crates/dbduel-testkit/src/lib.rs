//! What tests of several crates share; no part of the product.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

#[cfg(feature = "captures")]
pub mod captures;
pub mod damage;
pub mod faulty_files;
#[cfg(feature = "mock")]
pub mod mock;
pub mod noise;
#[cfg(feature = "records")]
pub mod synthetic;
