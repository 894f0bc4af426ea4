//! Disturbances of a simulated machine and its contenders, and three machines with increasing noise.
//!
//! Parameters only.

/// A first-order autoregression of ln y.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Autoregressive {
    /// Correlation from one second to the next.
    pub correlation: f64,
    /// Standard deviation of ln y.
    pub deviation: f64,
}

/// A sinusoid of ln y.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wave {
    /// Amplitude in ln y.
    pub amplitude: f64,
    /// Period in seconds.
    pub period_s: f64,
}

/// A neighbour that comes and goes, with exponential times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Mean seconds that it stays.
    pub on_s: f64,
    /// Mean seconds that it stays away.
    pub off_s: f64,
    /// Share of the throughput that it takes.
    pub depth: f64,
}

/// Random stalls of exponential lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stalls {
    /// Stalls that begin in a second, on average.
    pub per_second: f64,
    /// Mean length in seconds.
    pub length_s: f64,
    /// Share of the throughput that remains during one.
    pub left: f64,
}

impl Stalls {
    /// A machine or a contender that never stalls.
    pub const NONE: Self = Self {
        per_second: 0.0,
        length_s: 1.0,
        left: 1.0,
    };
}

/// Periodic dips of a contender, such as checkpoints, by its own time under load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dips {
    /// Seconds from one dip to the next.
    pub period_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Share of the throughput that a dip takes.
    pub depth: f64,
}

/// A strictly periodic disturbance of the machine, on top of its noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interference {
    /// Whole seconds from one to the next; none at all when zero.
    pub period_s: usize,
    /// Whole seconds that it lasts.
    pub length_s: usize,
    /// Share of the throughput that it takes.
    pub depth: f64,
    /// Seconds of a period that are over when the machine starts.
    pub phase_s: usize,
}

/// Parameters of a machine and of the contenders' dips.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// The fast part of the machine.
    pub fast: Autoregressive,
    /// The slow part of the machine.
    pub slow: Autoregressive,
    /// The machine's wave.
    pub wave: Wave,
    /// The linear drift: change of ln y in an hour.
    pub drift_per_hour: f64,
    /// The machine's neighbour, if it has one.
    pub neighbour: Option<Neighbour>,
    /// The machine's stalls.
    pub stalls: Stalls,
    /// The dips of every contender.
    pub dips: Dips,
}

/// A machine that has little else to do: throughput of one second scatters by about 5 %.
pub const QUIET: Noise = Noise {
    fast: Autoregressive {
        correlation: 0.5,
        deviation: 0.015,
    },
    slow: Autoregressive {
        correlation: 0.99,
        deviation: 0.01,
    },
    wave: Wave {
        amplitude: 0.0,
        period_s: 1800.0,
    },
    drift_per_hour: 0.0,
    neighbour: None,
    stalls: Stalls {
        per_second: 1.0 / 1200.0,
        length_s: 1.0,
        left: 0.3,
    },
    dips: Dips {
        period_s: 45.0,
        length_s: 3.0,
        depth: 0.15,
    },
};

/// A machine shared as most are: throughput of one second scatters by about 14 %.
pub const TYPICAL: Noise = Noise {
    fast: Autoregressive {
        correlation: 0.6,
        deviation: 0.04,
    },
    slow: Autoregressive {
        correlation: 0.99,
        deviation: 0.05,
    },
    wave: Wave {
        amplitude: 0.05,
        period_s: 1800.0,
    },
    drift_per_hour: -0.03,
    neighbour: None,
    stalls: Stalls {
        per_second: 1.0 / 300.0,
        length_s: 1.5,
        left: 0.1,
    },
    dips: Dips {
        period_s: 45.0,
        length_s: 4.0,
        depth: 0.35,
    },
};

/// A machine with a noisy neighbour: throughput of one second scatters by about 23 %.
pub const NASTY: Noise = Noise {
    fast: Autoregressive {
        correlation: 0.8,
        deviation: 0.06,
    },
    slow: Autoregressive {
        correlation: 0.995,
        deviation: 0.10,
    },
    wave: Wave {
        amplitude: 0.08,
        period_s: 1200.0,
    },
    drift_per_hour: -0.10,
    neighbour: Some(Neighbour {
        on_s: 60.0,
        off_s: 240.0,
        depth: 0.25,
    }),
    stalls: Stalls {
        per_second: 1.0 / 120.0,
        length_s: 2.0,
        left: 0.1,
    },
    dips: Dips {
        period_s: 60.0,
        length_s: 6.0,
        depth: 0.40,
    },
};
