//! Accounts of every kind and every mode of TLS, on real servers, through what `dbduel load` logs in with.
//!
//! Two servers belong to every run of the tests, the others to the lab tier (`just lab logins`). A table of what was seen:
//!
//! ```text
//! cargo test -p dbduel --test main logins -- --nocapture
//! ```

use dbduel_driver::TlsMode;
use dbduel_driver::address::Address;
use dbduel_wire::auth::Method;

use super::harness::skip;
use offers::{MARIADB_10_11, MYSQL_9, OTHERS, Offer};
use place::{Place, Seen};

mod accounts;
mod caching;
mod certificates;
mod encryption;
mod offers;
mod place;
mod tap;

fn every_login(offer: &Offer) {
    if !certificates::can_be_made() {
        skip(&format!(
            "logins to {} need the program `openssl`",
            offer.server
        ));
        return;
    }
    let place = Place::start(offer.server, offer.options);
    accounts::every_method_is_known(&place, offer);
    encryption::every_mode(&place, offer);
    encryption::demanding_accounts(&place, offer);
    accounts::odd_accounts(&place, offer);
    accounts::restricted_accounts(&place, offer);
    accounts::every_method(&place, offer);
    if offer.methods.contains(&Method::CachingSha2) {
        caching::full_and_fast(&place);
    }
}

/// A line of the table for people; the test runner shows it when it is told to.
fn row(offer: &Offer, what: &str, address: &Address, tls: &TlsMode, seen: &Result<Seen, String>) {
    let over = match address {
        Address::Unix { .. } => "socket",
        Address::Tcp { .. } => "TCP",
        Address::File { .. } => "in process",
    };
    let came = match seen {
        Ok(seen) if seen.tls.is_empty() => "in".to_owned(),
        Ok(seen) => format!("in, {}", seen.tls),
        Err(why) => why.clone(),
    };
    let mode = serde_json::to_value(tls).unwrap()["mode"].to_string();
    println!("| {} | {what} | {over} | {mode} | {came} |", offer.server);
}

#[test(needs = &["mariadb-10.11"])]
fn accounts_of_mariadb_let_in_whom_they_should() {
    every_login(&MARIADB_10_11);
}

#[test(needs = &["mysql-9.7"])]
fn accounts_of_mysql_9_let_in_whom_they_should() {
    every_login(&MYSQL_9);
}

#[test(lab, needs = &["mysql-5.5.34", "mysql-5.6.24", "mysql-8.0.33", "mariadb-10.1.23", "mariadb-11.8"])]
fn accounts_of_all_other_servers_let_in_whom_they_should() {
    for offer in &OTHERS {
        every_login(offer);
    }
}
