//! Tests of the codec in one program. The one that counts allocations of its process is a program of its own.

mod captured;
mod login;
mod mutated;
mod properties;
mod stand_ins;
