//! Results of the cuts of a contender, as a JSON document.

use dbduel_powercut::CutModel;
use serde::Serialize;

use super::verdict::CutVerdict;

/// Results of one contender.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContenderOutcome {
    /// Its name.
    pub contender: String,
    /// Its server.
    pub server: String,
    /// The setting that weakens commit durability; absent when it promises that each commit is on disk, or cannot be read.
    pub weaker_promise: Option<String>,
    /// Whether the server's own program checked pages.
    pub checks_pages: bool,
    /// The load that was cut.
    pub load: LoadOutcome,
    /// Every cut, in order of time.
    pub cuts: Vec<CutOutcome>,
    /// Minimal images of losses.
    pub images: Vec<KeptImage>,
}

/// The recorded load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadOutcome {
    /// Length, seconds.
    pub seconds: f64,
    /// Number of clients.
    pub clients: u32,
    /// Acknowledged commits in the durability log.
    pub acknowledged: u64,
    /// Writes to the data directory.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Syncs of files and folders, and synchronous writes.
    pub syncs: u64,
    /// True when the trace was full before the load ended; no cut is later.
    pub is_cut_short: bool,
}

/// One cut.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CutOutcome {
    /// Its number, from 0.
    pub cut: u32,
    /// Model that decides the fate of unsynced writes.
    pub model: CutModel,
    /// Recorded events before the cut, including those before the load.
    pub position: u64,
    /// Time since the beginning of the load, seconds.
    pub at_s: f64,
    /// Unsynced writes.
    pub pending_writes: u64,
    /// Parts of them that reached the disk.
    pub kept_parts: u64,
    /// Parts of them that were lost.
    pub lost_parts: u64,
    /// Commits acknowledged before the cut.
    pub acknowledged: u64,
    /// Result of the checks.
    #[serde(flatten)]
    pub verdict: CutVerdict,
    /// Time for restart, checks and shutdown, seconds.
    pub seconds: f64,
}

/// State of the data after a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutFate {
    /// Every acknowledged commit is there and every check is clean.
    Intact,
    /// Commits are missing; all other checks pass.
    CommitsLost,
    /// The data are wrong, and the server or its tools say so.
    CorruptNoticed,
    /// The data are wrong, and the server and its tools find nothing.
    CorruptUnnoticed,
}

impl CutFate {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            CutFate::Intact => "intact",
            CutFate::CommitsLost => "commits lost",
            CutFate::CorruptNoticed => "corrupt, noticed",
            CutFate::CorruptUnnoticed => "corrupt, unnoticed",
        }
    }
}

/// A kept image, and the losses that reproduce it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeptImage {
    /// Number of its cut.
    pub cut: u32,
    /// Its state of the data.
    pub fate: CutFate,
    /// Folder with the disk, relative to the results.
    pub folder: String,
    /// Parts of writes lost in the original cut.
    pub lost_before: u64,
    /// Parts lost in the minimal image.
    pub lost_parts: u64,
    /// True when no single lost part can be restored without the loss disappearing.
    pub is_minimal: bool,
    /// Server starts in the search.
    pub tries: u32,
}

/// Counts of cuts of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelTally {
    /// All cuts.
    pub cuts: u32,
    /// Cuts after which acknowledged commits were missing.
    pub commits_lost: u32,
    /// Cuts after which the server reported damage, or did not start.
    pub noticed: u32,
    /// Cuts after which data were damaged and the server did not report it.
    pub unnoticed: u32,
}

impl CutOutcome {
    /// State of the data.
    pub fn fate(&self) -> CutFate {
        let verdict = &self.verdict;
        let is_noticed = !verdict.complaints.is_empty() || !verdict.bad_pages.is_empty();
        if is_noticed {
            CutFate::CorruptNoticed
        } else if !verdict.violated.is_empty() {
            CutFate::CorruptUnnoticed
        } else if verdict.lost.unwrap_or(0) > 0 {
            CutFate::CommitsLost
        } else {
            CutFate::Intact
        }
    }

    /// True when nothing is missing or wrong.
    pub fn is_intact(&self) -> bool {
        self.fate() == CutFate::Intact
    }

    /// Description of the result, without a final full stop.
    pub fn in_words(&self) -> String {
        let verdict = &self.verdict;
        let found = verdict
            .complaints
            .first()
            .or(verdict.bad_pages.first())
            .or(verdict.violated.first())
            .cloned()
            .unwrap_or_else(|| {
                format!(
                    "{} of {} commits, first {}",
                    dbduel_text::counts::of(verdict.lost.unwrap_or(0)),
                    dbduel_text::counts::of(self.acknowledged),
                    verdict.example.as_deref().unwrap_or("unknown")
                )
            });
        format!(
            "Cut {} ({}, {:.2} s into the load), {}: {found}",
            self.cut,
            self.model.name(),
            self.at_s,
            self.fate().name()
        )
    }
}

impl ContenderOutcome {
    /// Description of the first cut with missing or wrong data.
    pub fn first_failure(&self) -> Option<String> {
        let failed = self.cuts.iter().find(|cut| !cut.is_intact());
        failed.map(CutOutcome::in_words)
    }

    /// Counts of cuts by state of the data, of one model or of all.
    pub fn tally(&self, model: Option<CutModel>) -> ModelTally {
        let mut tally = ModelTally::default();
        let cuts = self.cuts.iter();
        for cut in cuts.filter(|cut| model.is_none_or(|model| cut.model == model)) {
            tally.cuts += 1;
            match cut.fate() {
                CutFate::Intact => {}
                CutFate::CommitsLost => tally.commits_lost += 1,
                CutFate::CorruptNoticed => tally.noticed += 1,
                CutFate::CorruptUnnoticed => tally.unnoticed += 1,
            }
        }
        tally
    }
}
