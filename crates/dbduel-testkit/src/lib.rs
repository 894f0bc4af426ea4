//! What tests of several crates share; no part of the product.

pub mod damage;
pub mod faulty_files;
pub mod noise;
