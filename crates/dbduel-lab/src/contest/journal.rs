//! The record's writer with a clock: stamps every entry.

use std::path::Path;
use std::sync::Arc;

use dbduel_record::commits::{CommitRange, CommitRow};
use dbduel_record::event::{Event, Notice, SliceId};
use dbduel_record::facts::Size;
use dbduel_record::files::FileSystem;
use dbduel_record::store::{SliceResult, contender_dir};
use dbduel_record::{RecordError, RecordWriter};

use dbduel_machine::clock::{Clocks, RecordClock};

use super::events::{ContestEvent, Follower};

/// Appends to the record, then shows each entry of the journal to the followers.
#[derive(Debug)]
pub struct Journal<'f> {
    writer: RecordWriter,
    clock: RecordClock,
    followers: Vec<&'f dyn Follower>,
}

impl<'f> Journal<'f> {
    /// Opens the record in `dir`, writing through `files`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn open(
        files: &Arc<dyn FileSystem>,
        dir: &Path,
        followers: &[&'f dyn Follower],
    ) -> Result<Self, RecordError> {
        let journal = Self::open_by(files, dir, Clocks::now)?;
        Ok(Self {
            followers: followers.to_vec(),
            ..journal
        })
    }

    /// As [`Self::open`] with other clocks than the machine's.
    fn open_by(
        files: &Arc<dyn FileSystem>,
        dir: &Path,
        read: fn() -> Clocks,
    ) -> Result<Self, RecordError> {
        let writer = RecordWriter::open_on(Arc::clone(files), dir, read().wall_ms())?;
        let clock = RecordClock::new(read, writer.last_ms());
        Ok(Self {
            writer,
            clock,
            followers: Vec::new(),
        })
    }

    /// The clock that stamps events.
    pub fn clock(&self) -> &RecordClock {
        &self.clock
    }

    /// The writer, for files without time stamps.
    pub fn writer(&self) -> &RecordWriter {
        &self.writer
    }

    /// Appends an event, and any change of the machine's clocks since the last one.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn event(&mut self, event: Event) -> Result<(), RecordError> {
        self.append(event)?;
        self.look_at_clocks()
    }

    fn append(&mut self, event: Event) -> Result<(), RecordError> {
        let written = event.clone();
        self.writer.event(self.clock.now_ms(), event)?;
        for follower in &self.followers {
            follower.follow(&ContestEvent::Entry(&written));
        }
        Ok(())
    }

    fn look_at_clocks(&mut self) -> Result<(), RecordError> {
        for notice in self.clock.look() {
            self.append(Event::Noticed { notice })?;
        }
        Ok(())
    }

    /// Adds a line to the manifest, after everything else was written.
    ///
    /// # Errors
    /// When a file cannot be read or the manifest cannot be written.
    pub fn seal(&self) -> Result<String, RecordError> {
        self.writer
            .seal(self.clock.now_ms(), env!("CARGO_PKG_VERSION"))
    }

    /// Appends a notice.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn notice(&mut self, notice: Notice) -> Result<(), RecordError> {
        self.event(Event::Noticed { notice })
    }

    /// Appends commits that a contender's server acknowledged.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn commits(
        &mut self,
        contender: &str,
        ranges: Vec<CommitRange>,
    ) -> Result<(), RecordError> {
        let at_ms = self.clock.now_ms();
        let rows: Vec<CommitRow> = ranges
            .into_iter()
            .map(|range| CommitRow::of(at_ms, contender, range))
            .collect();
        self.writer.commits(&rows)
    }

    /// Appends a finished slice.
    ///
    /// # Errors
    /// When a table cannot be written.
    pub fn slice(&mut self, slice: SliceId, result: &SliceResult) -> Result<(), RecordError> {
        self.writer.slice(self.clock.now_ms(), slice, result)?;
        self.look_at_clocks()
    }
}

/// The size of a contender's data before the first slice, when it is in the record.
pub fn size_before(record: &Path, contender: &str) -> Option<Size> {
    let path = contender_dir(record, contender).join("size.json");
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Milliseconds since 1970-01-01 UTC by the machine's clock, for entries outside a record.
pub fn now_ms() -> u64 {
    Clocks::now().wall_ms()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use dbduel_record::Record;
    use dbduel_record::files::LocalFiles;

    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    thread_local! {
        static CLOCKS: Cell<Clocks> = const { Cell::new(Clocks {
            wall: Duration::from_secs(1_800_000_000),
            since_start: Duration::from_secs(500),
            awake: Duration::from_secs(500),
        }) };
    }

    fn clocks() -> Clocks {
        CLOCKS.get()
    }

    /// Lets time pass, and sets the wall clock forward or back.
    fn pass(seconds: u64, set_s: i64) {
        let Clocks {
            wall,
            since_start,
            awake,
        } = CLOCKS.get();
        let passed = Duration::from_secs(seconds);
        let wall_s = (wall + passed).as_secs().saturating_add_signed(set_s);
        CLOCKS.set(Clocks {
            wall: Duration::from_secs(wall_s),
            since_start: since_start + passed,
            awake: awake + passed,
        });
    }

    fn range(first: u64, last: u64) -> CommitRange {
        CommitRange {
            series: "1/1".to_owned(),
            first,
            last,
        }
    }

    #[test]
    fn a_wall_clock_that_is_set_moves_no_stamp_and_hides_no_commit() {
        const TEN_DAYS_S: i64 = 864_000;
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().join("record");
        let template = Scenario::duel().record();
        let wall_ms = clocks().wall_ms();
        let writer = RecordWriter::create(&dir, b"", &template.plan, &template.host, wall_ms);
        drop(writer.unwrap());
        let name = template.plan.contenders[0].name.clone();
        let placed = template.events.iter().map(|event| &event.what).find(
            |event| matches!(event, Event::DatasetReady { contender, .. } if *contender == name),
        );
        let started = template.events[0].what.clone();

        let files: Arc<dyn FileSystem> = Arc::new(LocalFiles);
        let mut journal = Journal::open_by(&files, &dir, clocks).unwrap();
        journal.event(started.clone()).unwrap();
        pass(10, 0);
        journal.event(placed.unwrap().clone()).unwrap();
        journal.commits(&name, vec![range(1, 4)]).unwrap();
        pass(20, -TEN_DAYS_S);
        journal.commits(&name, vec![range(5, 9)]).unwrap();
        journal
            .event(Event::SliceLost {
                slice: SliceId {
                    block: 0,
                    position: 0,
                },
                why: "none".to_owned(),
                seconds: 1.0,
            })
            .unwrap();
        drop(journal);
        // The next sitting begins ten days before the end of the last one by the wall clock, which is then put right.
        pass(30, 0);
        let mut journal = Journal::open_by(&files, &dir, clocks).unwrap();
        journal.event(started).unwrap();
        pass(1, TEN_DAYS_S);
        journal.commits(&name, vec![range(10, 11)]).unwrap();
        journal.event(Event::EpochStarted { epoch: 2 }).unwrap();
        drop(journal);

        let record = Record::open(&dir).unwrap();
        assert_eq!(
            record.commits_of(&name),
            [range(1, 4), range(5, 9), range(10, 11)]
        );
        let stamps: Vec<u64> = record.events.iter().map(|event| event.at_ms).collect();
        assert!(stamps.is_sorted(), "{stamps:?}");
        assert_eq!(stamps[stamps.len() - 1] - stamps[0], 31_000);
        let noticed = record.events.iter().filter_map(|event| match &event.what {
            Event::Noticed { notice } => Some(notice.claim.as_str()),
            _ => None,
        });
        let noticed: Vec<&str> = noticed.collect();
        let parts = [
            "was set back by 240 h",
            "is 240 h behind",
            "was set forward by 240 h",
        ];
        assert_eq!(noticed.len(), parts.len(), "{noticed:?}");
        for (claim, part) in noticed.iter().zip(parts) {
            assert!(claim.contains(part), "{claim}");
        }
    }
}
