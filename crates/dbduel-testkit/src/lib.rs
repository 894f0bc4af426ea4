//! What tests of several crates share; no part of the product.

pub mod damage;
pub mod noise;
