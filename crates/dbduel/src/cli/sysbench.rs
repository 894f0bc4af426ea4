//! `dbduel sysbench`, whose words are sysbench's own and are read by `commands/sysbench/`.

use clap::Args;

/// `dbduel sysbench`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Sysbench {
    /// `OPTIONS TEST COMMAND` as sysbench takes them, where TEST is a name or a script; `--help` lists the options.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WORDS"
    )]
    pub words: Vec<String>,
}
