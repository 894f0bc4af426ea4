//! `dbduel drive`: the load process.

use anyhow::{Context as _, Result};
use dbduel_load::drive::take_standard_input;

use crate::cli;
use crate::exit::Exit;

/// Obeys orders until standard input ends.
///
/// # Errors
/// When the load cannot be driven at all.
pub fn drive(arguments: &cli::Drive) -> Result<Exit> {
    let cores = arguments
        .cores
        .iter()
        .filter(|core| !core.is_empty())
        .map(|core| {
            core.parse()
                .with_context(|| format!("`{core}` is no processor number"))
        })
        .collect::<Result<Vec<u32>>>()?;
    let input = take_standard_input().context("cannot set standard input aside for orders")?;
    let input = std::io::BufReader::new(input);
    dbduel_load::drive::drive(input, std::io::stdout(), arguments.threads, &cores)?;
    Ok(Exit::Done)
}
