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
    /// Answer of `dbduel bisect-step` to `git bisect run`.
    GitBisect(GitBisectExit),
}

/// Exit code of `dbduel bisect-step`, with the meaning that `git bisect run` gives it. It ends the search at 128 and above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitBisectExit {
    /// The commit is like the good one.
    Good,
    /// The commit is like the bad one.
    Bad,
    /// The commit cannot be tested.
    Skip,
    /// The step failed, and nothing is known of the commit.
    Failed,
    /// The budget ended before the commit was decided.
    Undecided,
}

impl Exit {
    /// The exit code of a step of `git bisect run`, which would read a 1 or 2 of a failure as a bad commit.
    #[must_use]
    pub fn of_step(self) -> Self {
        match self {
            Exit::GitBisect(_) | Exit::Interrupted => self,
            Exit::Done
            | Exit::Environment
            | Exit::Usage
            | Exit::Undecided
            | Exit::Void
            | Exit::RuleHit
            | Exit::Sysbench(_) => Exit::GitBisect(GitBisectExit::Failed),
        }
    }

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
            Exit::GitBisect(GitBisectExit::Good) => 0,
            Exit::GitBisect(GitBisectExit::Bad) => 1,
            Exit::GitBisect(GitBisectExit::Skip) => 125,
            Exit::GitBisect(GitBisectExit::Failed) => 128,
            Exit::GitBisect(GitBisectExit::Undecided) => 129,
        }
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}
