//! What the kernel counts of the load process.

use super::Group::Client;
use super::Role::{Detail, Main};
use super::Unit::Microseconds;
use super::{Resource, resource};

/// The load process.
pub(super) const CLIENT: &[Resource] = &[
    Resource {
        // Polling in vain is no work, and grows with the time that the server takes.
        less: Some("polled_s"),
        ..resource(
            Main,
            "client-cpu",
            "processor time of the load process",
            Microseconds,
            Client,
            ("load", &["cpu_user_s", "cpu_system_s"]),
        )
    },
    resource(
        Detail,
        "client-run-queue",
        "time of the load process in the run queue",
        Microseconds,
        Client,
        ("load", &["cpu_wait_s"]),
    ),
];
