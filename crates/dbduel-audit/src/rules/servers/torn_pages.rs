//! Rules about protection against torn pages: the doublewrite buffer, full-page writes, the journal, and devices that write
//! whole pages.

use dbduel_record::event::Severity;
use dbduel_record::facts::Host;

use super::{Contender, Hit};
use crate::{Product, Version};

pub fn atomic_writes(contender: &Contender<'_>) -> Option<Hit> {
    let server = contender.server();
    // Later versions detect the device themselves and keep the doublewrite buffer elsewhere.
    let is_dangerous = server.product == Product::MariaDb
        && server.version
            < Version {
                major: 10,
                minor: 2,
                patch: 0,
            };
    let is_asked = contender.switch("innodb_use_atomic_writes") == Some(true);
    if !is_dangerous || !is_asked {
        return None;
    }
    let host = contender.case.host.as_ref();
    let is_atomic = |host: &Host| {
        let facts = [&host.block_device, &host.file_system];
        facts
            .into_iter()
            .flatten()
            .any(|fact| fact.contains("fio") || fact.to_ascii_lowercase().contains("nvmfs"))
    };
    if host.is_some_and(is_atomic) {
        return None;
    }
    let known = host.and_then(|host| host.block_device.clone());
    let place = known.as_ref().map_or_else(
        || "a device that is not disclosed".to_owned(),
        |device| format!("`{device}`"),
    );
    let what = format!(
        "has innodb_use_atomic_writes on {place}; it works on Fusion-io with NVMFS only and switches the doublewrite buffer off"
    );
    let mut hit = Hit::new(what, "Switch it off and the doublewrite buffer on, or name the mechanism that protects pages in a waiver.")
        .from(contender, &["innodb_use_atomic_writes", "innodb_doublewrite", "innodb_flush_method"])
        .set("innodb_use_atomic_writes", "0")
        .set("innodb_doublewrite", "1");
    hit.severity = Some(if known.is_some() {
        Severity::Void
    } else {
        Severity::Doubt
    });
    Some(hit)
}

pub fn unprotected(contender: &Contender<'_>) -> Option<Hit> {
    let protection = contender.fact("torn_page.protection")?.to_string();
    if protection != "none" && protection != "detection only" {
        return None;
    }
    let (mechanism, setting) = match contender.server().product {
        Product::PostgreSql => ("Set full_page_writes = on", "full_page_writes"),
        Product::Sqlite => (
            "Keep the journal on disk (journal_mode = DELETE or WAL)",
            "journal_mode",
        ),
        Product::MySql | Product::MariaDb | Product::Percona => {
            ("Switch the doublewrite buffer on", "innodb_doublewrite")
        }
    };
    let what = "cannot repair a page torn by a power cut".to_owned();
    let remedy = format!("{mechanism}, or name the device or file system that writes whole pages.");
    let mut hit = Hit::new(what, &remedy).from(contender, &[setting]);
    // A difference between sides is weighed by comparing the fact.
    hit.severity = Some(Severity::Note);
    Some(hit)
}
