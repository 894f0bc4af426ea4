//! The run second by second, from its rows.

pub mod stack_differences;
pub mod stacks;
pub mod timeline;
pub mod tracks;
pub mod watched;
