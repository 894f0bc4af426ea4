//! Rules about storage and what the server believes of it.

use dbduel_record::facts::Host;

use super::{Contender, Hit};
use crate::{Product, Version};

/// True when the machine is known to have no moving heads under its files.
fn is_flash_or_virtual(host: &Host) -> bool {
    host.rotational == Some(false) || host.virtualisation.is_some()
}

fn device(host: &Host) -> String {
    let name = host.block_device.as_deref().unwrap_or("its device");
    match (host.rotational, &host.virtualisation) {
        (Some(false), _) => format!("{name} (not rotating)"),
        (_, Some(hypervisor)) => format!("{name} (virtual, {hypervisor})"),
        _ => name.to_owned(),
    }
}

pub fn neighbours(contender: &Contender<'_>) -> Option<Hit> {
    let host = contender
        .case
        .host
        .as_ref()
        .filter(|host| is_flash_or_virtual(host))?;
    let effective = contender
        .number("flush.neighbours")
        .filter(|&effective| effective >= 1.0)?;
    let what = format!(
        "flushes neighbouring pages ({effective}) on {}",
        device(host)
    );
    let hit = Hit::new(
        what,
        "Neighbours are worth flushing on rotating disks only.",
    )
    .from(contender, &["innodb_flush_neighbors"]);
    Some(
        if contender
            .server()
            .variables
            .contains_key("innodb_flush_neighbors")
        {
            hit.set("innodb_flush_neighbors", "0")
        } else {
            hit
        },
    )
}

pub fn claims_to_rotate(contender: &Contender<'_>) -> Option<Hit> {
    let host = contender.case.host.as_ref()?;
    let trusts_the_kernel = contender.server().product == Product::MariaDb
        && contender.server().version
            >= Version {
                major: 10,
                minor: 4,
                patch: 0,
            };
    let claims = host.rotational == Some(true) && host.virtualisation.is_some();
    let value = contender
        .server()
        .number("innodb_flush_neighbors")
        .filter(|&value| value >= 1.0)?;
    (trusts_the_kernel && claims).then(|| {
        let what = format!(
            "takes {} for a rotating disk, as the kernel reports it, and keeps innodb_flush_neighbors = {value}",
            device(host)
        );
        Hit::new(what, "Set it to 0 instead of relying on detection.")
            .from(contender, &["innodb_flush_neighbors"])
            .set("innodb_flush_neighbors", "0")
    })
}

pub fn io_capacity(contender: &Contender<'_>) -> Option<Hit> {
    let host = contender
        .case
        .host
        .as_ref()
        .filter(|host| host.rotational == Some(false))?;
    let capacity = contender
        .server()
        .number("innodb_io_capacity")
        .filter(|&capacity| capacity <= 200.0)?;
    let what = format!(
        "limits background writes to {capacity} pages/s (innodb_io_capacity) on {}",
        device(host)
    );
    Some(
        Hit::new(
            what,
            "Set it to the capacity of the device, equally on all sides.",
        )
        .from(contender, &["innodb_io_capacity", "innodb_io_capacity_max"]),
    )
}

pub fn lost_aio(contender: &Contender<'_>) -> Option<Hit> {
    const SIGNS: &[&str] = &[
        "io_uring_queue_init() failed",
        "native aio disabled",
        "falling back to",
        "linux native aio interface is not supported",
        "io_setup() failed",
    ];
    let log = contender.server().error_log.as_deref()?;
    let about_aio = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        (lower.contains("aio") || lower.contains("io_uring") || lower.contains("io_setup"))
            && SIGNS.iter().any(|sign| lower.contains(sign))
    };
    let line = log.lines().find(about_aio)?;
    let what = format!(
        "runs without asynchronous I/O: \u{201c}{}\u{201d}",
        line.trim()
    );
    Some(
        Hit::new(
            what,
            "Raise fs.aio-max-nr, or allow io_uring, for all sides.",
        )
        .from(contender, &["innodb_use_native_aio", "innodb_linux_aio"]),
    )
}
