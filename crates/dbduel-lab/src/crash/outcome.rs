//! What the cuts of a contender showed: the document that programs read.

use dbduel_powercut::CutModel;
use serde::Serialize;

use super::verdict::CutVerdict;

/// One contender.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContenderOutcome {
    /// Its name.
    pub contender: String,
    /// Its server.
    pub server: String,
    /// The setting by which it promises less than that each commit is on disk.
    pub weaker_promise: Option<String>,
    /// Whether pages were checked by the server's own program.
    pub checks_pages: bool,
    /// The load that was cut.
    pub load: LoadOutcome,
    /// Every cut, in the order of time.
    pub cuts: Vec<CutOutcome>,
    /// Images of losses that were kept.
    pub images: Vec<KeptImage>,
}

/// The load that was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadOutcome {
    /// Length.
    pub seconds: f64,
    /// Clients.
    pub clients: u32,
    /// Commits that were acknowledged and kept in the log.
    pub acknowledged: u64,
    /// Writes to the data directory.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Syncs of files and folders, and writes that were durable when they returned.
    pub syncs: u64,
    /// Whether the record was full before the load ended; no cut is later.
    pub is_cut_short: bool,
}

/// One cut.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CutOutcome {
    /// Its number, from 0.
    pub cut: u32,
    /// What became of writes that were not synced.
    pub model: CutModel,
    /// Recorded events before the cut, those before the load included.
    pub position: u64,
    /// Seconds from the begin of the load.
    pub at_s: f64,
    /// Writes that were not synced.
    pub pending_writes: u64,
    /// Parts of them that reached the disk.
    pub kept_parts: u64,
    /// Parts of them that did not.
    pub lost_parts: u64,
    /// Commits that had been acknowledged.
    pub acknowledged: u64,
    /// What was found.
    #[serde(flatten)]
    pub verdict: CutVerdict,
    /// What the cut took: restart, checks, orderly end.
    pub seconds: f64,
}

/// What became of the data in a cut, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutFate {
    /// Every acknowledged commit is there and every check is clean.
    Intact,
    /// Commits are missing, and everything else is right.
    CommitsLost,
    /// The data are wrong, and the server or its tools say so.
    CorruptNoticed,
    /// The data are wrong, and the server and its tools find nothing.
    CorruptUnnoticed,
}

impl CutFate {
    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            CutFate::Intact => "intact",
            CutFate::CommitsLost => "commits lost",
            CutFate::CorruptNoticed => "corrupt, noticed",
            CutFate::CorruptUnnoticed => "corrupt, unnoticed",
        }
    }
}

/// An image that was kept, and what it needs to show the loss.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeptImage {
    /// The cut that it is from.
    pub cut: u32,
    /// What it shows.
    pub fate: CutFate,
    /// Folder with the disk, below that of the results.
    pub folder: String,
    /// Parts of writes that were lost in the cut.
    pub lost_before: u64,
    /// Parts that must be lost for it.
    pub lost_parts: u64,
    /// Whether no single one of them can be left out.
    pub is_minimal: bool,
    /// Starts of the server that the search took.
    pub tries: u32,
}

/// Cuts of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelTally {
    /// All of them.
    pub cuts: u32,
    /// Those after which acknowledged commits were missing.
    pub commits_lost: u32,
    /// Those after which the server said that data are damaged, or did not start.
    pub noticed: u32,
    /// Those after which data are damaged and the server did not say so.
    pub unnoticed: u32,
}

impl CutOutcome {
    /// What became of the data.
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

    /// What was found, in a sentence without its end.
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
                    "{} of {} commits, the first is {}",
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
    /// What was found in the first cut that left something missing or wrong.
    pub fn first_failure(&self) -> Option<String> {
        let failed = self.cuts.iter().find(|cut| !cut.is_intact());
        failed.map(CutOutcome::in_words)
    }

    /// Cuts by what became of them, of one model or of all.
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
