//! `dbduel sysbench`: sysbench's own command line, tests, scripts and output.

use clap::Args;

use crate::exit::Exit;

/// Options of `dbduel sysbench`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Arguments {
    /// `OPTIONS TEST COMMAND` as sysbench takes them, where TEST is a name or a script; `--help` lists the options.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WORDS"
    )]
    pub words: Vec<String>,
}

/// Runs the arguments of `dbduel sysbench`, with the output of sysbench.
pub fn sysbench(words: &[String]) -> Exit {
    Exit::Sysbench(dbduel_sysbench::sysbench(words))
}
