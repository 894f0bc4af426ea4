//! Faults that may strike a contest, drawn from a seed.

use dbduel_stats::random::RandomStream;

use dbduel_testkit::faulty_files::Fault as FileFault;

/// Kinds of faults: eleven that strike at a call, and four at a change of a file.
pub const KINDS: usize = 15;

/// A fault that strikes at a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// A server is killed. Its connections break, or stay with what it leaves behind and answer nothing.
    ServerDies {
        server: usize,
        leaves_connections: bool,
    },
    /// A server answers nothing for so long, under load.
    ServerStalls { server: usize, seconds: f64 },
    /// The next start of a server fails.
    ServerDoesNotStart { server: usize },
    /// The load process is killed.
    LoadDies,
    /// The load process is stopped for so long.
    LoadStalls { seconds: f64 },
    /// The next answer of the load process cannot be understood.
    LoadAnswersGarbage,
    /// A server refuses the next client.
    ClientsRefused,
    /// The user interrupts.
    Interrupt,
    /// The clock of the machine is set.
    ClockStep { seconds: i64 },
    /// The machine sleeps.
    Suspended { seconds: f64 },
    /// The process is killed, with nothing of its files lost.
    Killed,
}

impl Fault {
    /// Its kind, for counts.
    pub fn kind(self) -> &'static str {
        match self {
            Self::ServerDies { .. } => "a server dies",
            Self::ServerStalls { .. } => "a server stalls",
            Self::ServerDoesNotStart { .. } => "a server does not start",
            Self::LoadDies => "the load process dies",
            Self::LoadStalls { .. } => "the load process stalls",
            Self::LoadAnswersGarbage => "the load process answers garbage",
            Self::ClientsRefused => "clients are refused",
            Self::Interrupt => "the user interrupts",
            Self::ClockStep { .. } => "the clock is set",
            Self::Suspended { .. } => "the machine sleeps",
            Self::Killed => "dbduel is killed",
        }
    }

    /// True when a contest may fail after it. A fault on the next start, answer or connection counts only if it
    /// `had_effect`. A contest survives all other faults at any moment, as long as they are no more frequent than the
    /// restarts of servers that it allows.
    pub fn may_end_it(self, had_effect: bool) -> bool {
        match self {
            Self::ServerDies { .. } | Self::LoadDies | Self::ClockStep { .. } => false,
            Self::ServerStalls { seconds, .. }
            | Self::LoadStalls { seconds }
            | Self::Suspended { seconds } => seconds >= 1.0,
            Self::ServerDoesNotStart { .. } | Self::LoadAnswersGarbage | Self::ClientsRefused => {
                had_effect
            }
            Self::Interrupt | Self::Killed => true,
        }
    }

    fn draw(random: &mut RandomStream) -> Self {
        let server = random.below(8);
        // Most stalls are short; some are longer than any wait.
        let seconds = 0.05 * (8.0 * random.uniform()).exp();
        match random.below(11) {
            0 => Self::ServerDies {
                server,
                leaves_connections: random.below(2) == 0,
            },
            1 => Self::ServerStalls { server, seconds },
            2 => Self::ServerDoesNotStart { server },
            3 => Self::LoadDies,
            4 => Self::LoadStalls { seconds },
            5 => Self::LoadAnswersGarbage,
            6 => Self::ClientsRefused,
            7 => Self::Interrupt,
            8 => Self::ClockStep {
                seconds: [-864_000, -60, -1, 1, 3600, 864_000][random.below(6)],
            },
            9 => Self::Suspended { seconds },
            _ => Self::Killed,
        }
    }
}

/// The kind of a fault of files, for counts.
pub fn kind_of(fault: FileFault) -> &'static str {
    match fault {
        FileFault::Error => "a change of a file fails",
        FileFault::Full | FileFault::FullTorn => "the disk is full",
        FileFault::Kill | FileFault::KillTorn => "dbduel is killed at a change of a file",
        FileFault::PowerLoss | FileFault::PowerLossTorn => "the power fails",
    }
}

/// Faults that strike one process of a contest.
#[derive(Debug, Clone, Default)]
pub struct Strikes {
    /// At calls with these numbers.
    pub calls: Vec<(usize, Fault)>,
    /// At the change of a file with this number.
    pub files: Option<(FileFault, usize)>,
}

impl Strikes {
    /// Up to two strikes on a process that would make about `calls` calls and `changes` changes of files.
    pub fn draw(random: &mut RandomStream, calls: usize, changes: usize) -> Self {
        let mut strikes = Self::default();
        for _ in 0..=random.below(2) {
            match random.below(4) {
                0 => {
                    let fault = FileFault::ALL[random.below(FileFault::ALL.len())];
                    strikes.files = Some((fault, random.below(changes.max(1))));
                }
                _ => {
                    // Most contests are over after so many calls, some much later.
                    let reach = calls * [1, 1, 4][random.below(3)];
                    let at = random.below(reach.max(1));
                    strikes.calls.push((at, Fault::draw(random)));
                }
            }
        }
        strikes
    }
}
