//! Exit codes, for scripts.

use std::process::{ExitCode, Termination};

/// Exit code of dbduel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done; of a contest: every duel is decided.
    Done,
    /// The environment failed: a download, a server, a disk.
    Environment,
    /// The command line or the experiment file is wrong.
    Usage,
    /// The contest ended and at least one duel is undecided, or a rule of `--fail-if`.
    Undecided,
    /// The contest ended and at least one duel is void; other verbs have what their documentation says.
    Void,
    /// A rule of `--fail-if` matched.
    RuleHit,
    /// The user stopped it.
    Interrupted,
    /// Exit code of `dbduel sysbench`, with sysbench's meaning: 0 done, 1 failed, 2 took too long.
    Sysbench(u8),
}

impl Exit {
    /// The process exit code; `--help` and docs/commands.md list them.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Environment => 1,
            Exit::Usage => 2,
            Exit::Undecided => 3,
            Exit::Void => 4,
            Exit::RuleHit => 5,
            Exit::Interrupted => 130,
            Exit::Sysbench(code) => code,
        }
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}
