//! The classes of difference: the topic of each, and how much a difference in it weighs.

use dbduel_record::event::Severity;

/// The kind of unfairness that a difference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
pub enum Weight {
    /// Information only.
    #[serde(rename = "I")]
    Information,
    /// One side may be faster for a reason other than the one under test.
    #[serde(rename = "P")]
    Performance,
    /// The same query may return different results.
    #[serde(rename = "S")]
    Semantics,
    /// One side promises more than the other.
    #[serde(rename = "D")]
    Durability,
}

impl Weight {
    /// How much an open difference weighs.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Weight::Information => Severity::Note,
            Weight::Performance => Severity::Doubt,
            Weight::Semantics | Weight::Durability => Severity::Void,
        }
    }

    /// How much it weighs when a side could not be read: one step lower, but at least a note.
    #[must_use]
    pub fn severity_unread(self) -> Severity {
        match self.severity() {
            Severity::Void => Severity::Doubt,
            Severity::Doubt | Severity::Note => Severity::Note,
        }
    }
}

/// A class of facts and rules about one topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Short name, `D1`.
    pub id: &'static str,
    /// Its topic.
    pub title: &'static str,
}

impl Class {
    /// The weight of a difference in this class, unless a fact has its own.
    #[must_use]
    pub fn weight(&self) -> Weight {
        match self.id.as_bytes()[0] {
            b'D' => Weight::Durability,
            b'S' => Weight::Semantics,
            b'P' => Weight::Performance,
            _ => Weight::Information,
        }
    }
}

/// The class called `id`, in any case.
#[must_use]
pub fn class(id: &str) -> Option<&'static Class> {
    CLASSES
        .iter()
        .find(|class| class.id.eq_ignore_ascii_case(id))
}

const fn row(id: &'static str, title: &'static str) -> Class {
    Class { id, title }
}

/// Every class, heaviest kind first.
pub const CLASSES: &[Class] = &[
    row("D1", "commit durability"),
    row("D2", "how data are made durable"),
    row("D3", "torn-page protection"),
    row("D4", "binary log"),
    row("D5", "checksums"),
    row("D6", "switches that void durability"),
    row("D7", "storage engine"),
    row("D8", "constraint checking"),
    row("S1", "isolation"),
    row("S2", "character sets and collations"),
    row("S3", "strictness"),
    row("S4", "physical format"),
    row("S5", "data and plans"),
    row("S6", "transactions"),
    row("P1", "memory"),
    row("P2", "buffer pool instances"),
    row("P3", "flushing parallelism"),
    row("P4", "redo capacity"),
    row("P5", "LRU scanning"),
    row("P6", "flushing policy"),
    row("P7", "flushing of neighbours"),
    row("P8", "admission control"),
    row("P9", "thread pool"),
    row("P10", "checksum algorithm"),
    row("P11", "adaptive hash index"),
    row("P12", "change buffering"),
    row("P13", "instrumentation"),
    row("P14", "query cache"),
    row("P15", "table caches"),
    row("P16", "metadata locks"),
    row("P17", "spinning"),
    row("P18", "I/O submission"),
    row("P19", "redo write path"),
    row("P20", "purge and undo"),
    row("P21", "session buffers"),
    row("P22", "connections"),
    row("P23", "client protocol"),
    row("P24", "allocator and huge pages"),
    row("P25", "NUMA and processors"),
    row("P26", "build"),
    row("P27", "warm state"),
    row("P28", "background work"),
    row("P29", "placement"),
    row("I", "information"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_unique_and_their_letter_is_their_weight() {
        for (index, class) in CLASSES.iter().enumerate() {
            assert!(
                CLASSES[..index].iter().all(|other| other.id != class.id),
                "`{}` stands twice",
                class.id
            );
        }
        assert_eq!(class("p3").unwrap().weight(), Weight::Performance);
        assert_eq!(class("I").unwrap().weight(), Weight::Information);
        assert!(class("P99").is_none());
    }
}
