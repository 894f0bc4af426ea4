//! Database servers for private use: obtains, recognises, initialises, starts, freezes and stops them.
//!
//! The user's name for a server becomes a [`ServerName`]; one of [`SOURCES`] fetches its files, and
//! [`install::install`] makes a [`Build`] of them. A [`Sandbox`] isolates one contender's server, and [`RunningServer`]
//! is that server while it runs.

mod build;
mod catalogue;
mod command;
mod confined;
mod copy;
mod data_files;
mod database_file;
mod digest;
mod home;
pub mod install;
mod libraries;
mod machine;
mod name;
pub mod orphans;
mod process;
mod products;
mod progress;
mod refusal;
mod reserved;
mod sandbox;
mod settings;
mod sources;
pub mod tar_extensions;
mod throttle;
mod tree;
mod unpack;
mod user_namespace;
mod variables;

pub use build::Build;
pub use command::{Tool, shell_word};
pub use copy::{copy_tree, tree_size};
pub use data_files::file_sizes;
pub use database_file::{DatabaseFile, SQLITE, id as database_file_id};
pub use dbduel_text::Version;
pub use digest::of_file as digests_of_file;
pub use home::{Home, clear_unfinished, create_folder, create_private_dir, unfinished};
pub use name::{Meaning, NameError, ServerName, runs_in_process};
pub use process::{forked_by, signal_tree};
pub use products::{
    COUNTERS, FactQuery, POSTGRESQL_SETTINGS, PROBE, ServerProduct, VARIABLES, by_name, recognise,
};
pub use progress::{Progress, ProgressUnit, Silent};
pub use refusal::{RefusedSetting, SettingRemark};
pub use reserved::{leaves_folder, reserved};
pub use sandbox::{DATABASE, RunningServer, Sandbox, StartError, USER, refused_by_lab, unwritable};
pub use settings::{Setting, last_mention, unless_written};
pub use sources::{Artifact, SOURCES, received_archive};
pub use unpack::{ENDINGS as ARCHIVE_ENDINGS, unneeded as unneeded_files};
