//! Errors of connections as scripts see them, with the numbers and texts of each protocol's client library.

use super::{Dialect, LostError, ServerError, mysql, postgresql};
use crate::address::Address;

/// The error of a connection that broke.
pub fn lost_error(dialect: Dialect, lost: &LostError) -> ServerError {
    match dialect {
        Dialect::MySql | Dialect::Sqlite => mysql::client_errors::lost_error(lost),
        Dialect::PostgreSql => postgresql::client_errors::lost_error(lost),
    }
}

/// The error of a connection that cannot be made.
pub fn connect_error(dialect: Dialect, address: &Address, lost: &LostError) -> ServerError {
    match dialect {
        Dialect::MySql | Dialect::Sqlite => mysql::client_errors::connect_error(address, lost),
        Dialect::PostgreSql => postgresql::client_errors::connect_error(address, lost),
    }
}
