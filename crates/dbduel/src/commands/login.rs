//! The server that `load` and `check` were given on the command line.

use anyhow::Result;
use dbduel_load::address::Address;
use dbduel_load::blocking::Credentials;

use crate::cli;
use crate::lab::login;

/// Where it listens and what to log in with.
///
/// # Errors
/// When the address is none, or the password file cannot be read.
pub fn way_in(server: &cli::Server) -> Result<(Address, Credentials)> {
    let (address, user) = Address::parse_with_user(&server.address)?;
    let credentials = login::credentials(user.as_deref(), server.password_file.as_deref(), None)?;
    Ok((address, credentials))
}
