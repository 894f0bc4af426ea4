//! What tests of several crates share; no part of the product.

pub mod damage;

pub use dbduel_test_attribute::test;
