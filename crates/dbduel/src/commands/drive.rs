//! `dbduel drive`: the load process.

use anyhow::{Context as _, Result};

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
    let input = std::io::BufReader::new(std::io::stdin());
    dbduel_load::drive::drive(input, std::io::stdout(), arguments.threads, &cores)?;
    Ok(Exit::Done)
}
