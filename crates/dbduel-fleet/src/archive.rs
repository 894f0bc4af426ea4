//! An archive of records: packed records in an object store under their digests, each with its line of the index.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use dbduel_judge as judge;
use dbduel_nats::{Nats, Objects, StoredObject};
use dbduel_record::Record;
use dbduel_report::words;
use dbduel_server::{clear_unfinished, create_folder, unfinished};
use serde::{Deserialize, Serialize};

use super::cell::short;
use super::pack;
use super::status::UnreadableEntry;

const STORE: &str = "dbduel-records";
/// Fewest digits that name a record.
const DIGITS_MIN: usize = 4;
/// Longest text kept in an index line, characters: a store's entry is one message.
const TEXT_MAX: usize = 2000;

/// A line of the index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexLine {
    /// Question of the contest.
    pub question: String,
    /// Names and servers.
    pub contenders: Vec<(String, String)>,
    /// Name of its workload.
    pub workload: String,
    /// One sentence per contender that is not the baseline.
    pub verdicts: Vec<String>,
    /// The machine: processors, memory, kernel.
    pub host: String,
    /// When its plan was made, RFC 3339, UTC.
    pub created: String,
    /// Digest of the record's manifest, which its reports cite.
    pub manifest: Option<String>,
}

/// A record in the archive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Archived {
    /// Digest of the packed record, its name in the store.
    pub digest: String,
    /// Length of the packed record.
    pub bytes: u64,
    /// Its line of the index.
    #[serde(flatten)]
    pub index: IndexLine,
}

/// A record that is packed and not stored yet.
#[derive(Debug)]
pub struct Packed {
    /// Digest of the packed record, its name in the store.
    pub digest: String,
    /// Its line of the index.
    pub index: IndexLine,
    file: PathBuf,
}

/// The archive of a nats-server.
#[derive(Debug)]
pub struct RecordArchive<'n> {
    store: Objects<'n>,
}

impl Packed {
    /// Packs a record into a file.
    ///
    /// # Errors
    /// When it is not a record, or cannot be read or packed.
    pub fn of(record: &Path, file: &Path) -> Result<Self> {
        let index = index_line(record)?;
        Ok(Packed {
            digest: pack::pack(record, file)?,
            index,
            file: file.to_owned(),
        })
    }
}

/// A record of the archive; others may store objects there too.
fn archived(object: StoredObject) -> Result<Archived, UnreadableEntry> {
    match serde_json::from_str(&object.about) {
        Ok(index) => Ok(Archived {
            index,
            digest: object.name,
            bytes: object.bytes,
        }),
        Err(error) => Err(UnreadableEntry {
            name: object.name,
            why: format!("its line of the index cannot be parsed: {error}"),
        }),
    }
}

fn index_line(dir: &Path) -> Result<IndexLine> {
    let record = Record::open(dir)?;
    let (summary, _) = judge::summarise(&record);
    let cut = |text: &str| text.chars().take(TEXT_MAX).collect::<String>();
    let contenders = record.plan.contenders.iter();
    let workloads: Vec<&str> = record
        .plan
        .workloads()
        .map(|workload| workload.name.as_str())
        .collect();
    let host = &summary.host;
    let mut machine = vec![host.processors_label()];
    machine.extend(host.memory_bytes.map(words::bytes));
    machine.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    Ok(IndexLine {
        question: cut(&summary.question),
        contenders: contenders
            .map(|one| (one.name.clone(), cut(&one.server)))
            .collect(),
        workload: cut(&words::joined(&workloads)),
        verdicts: words::headlines(&summary)
            .iter()
            .map(|text| cut(text))
            .collect(),
        host: machine.join(", "),
        created: summary.created.clone(),
        manifest: summary.record_digest,
    })
}

impl<'n> RecordArchive<'n> {
    /// Opens the archive, and creates it if missing.
    ///
    /// # Errors
    /// When the server refuses it.
    pub fn open(nats: &'n Nats) -> Result<Self> {
        Ok(RecordArchive {
            store: nats.objects(STORE, "dbduel: packed records", None)?,
        })
    }

    /// Stores a packed record; false when the archive has it already.
    ///
    /// # Errors
    /// When the store is full or does not answer.
    pub fn store(&self, packed: &Packed) -> Result<bool> {
        let about = serde_json::to_string(&packed.index)?;
        Ok(self.store.put(&packed.digest, &packed.file, &about)?)
    }

    /// The index, and objects of the store that are no records, which are left out.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn list(&self) -> Result<(Vec<Archived>, Vec<UnreadableEntry>)> {
        let listing = self.store.list()?;
        let mut unreadable: Vec<UnreadableEntry> = listing
            .unreadable
            .into_iter()
            .map(|why| UnreadableEntry {
                name: "an object of the archive".to_owned(),
                why,
            })
            .collect();
        let mut records = Vec::new();
        for object in listing.objects {
            match archived(object) {
                Ok(record) => records.push(record),
                Err(entry) => unreadable.push(entry),
            }
        }
        Ok((records, unreadable))
    }

    /// The one record whose digest, or that of its manifest, begins with `digits`.
    ///
    /// # Errors
    /// When there is none, or several.
    pub fn named(&self, digits: &str) -> Result<Archived> {
        ensure!(
            digits.len() >= DIGITS_MIN,
            "`{digits}` is too short for a digest; at least {DIGITS_MIN} digits name a record"
        );
        let is_meant = |one: &Archived| {
            let manifest = one.index.manifest.as_ref();
            one.digest.starts_with(digits) || manifest.is_some_and(|own| own.starts_with(digits))
        };
        let mut meant = self.list()?.0.into_iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => bail!(
                "no record in the archive has a digest that begins with `{digits}`; `dbduel archive list` shows them"
            ),
            (Some(one), Some(other)) => bail!(
                "several digests begin with `{digits}`, such as {} and {}; give more digits",
                short(&one.digest),
                short(&other.digest)
            ),
        }
    }

    /// Fetches a record into the folder `into/name`; false when that exists already.
    ///
    /// # Errors
    /// When it cannot be fetched or written, or its bytes do not match its digest.
    pub fn fetch(&self, digest: &str, into: &Path, name: &str) -> Result<bool> {
        // Parts of the name come from the nats-server.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-%~".contains(c);
        ensure!(
            !name.starts_with('.') && name.chars().all(is_plain),
            "`{name}` is not a valid name for a record"
        );
        let place = into.join(name);
        if place.exists() {
            return Ok(false);
        }
        create_folder(into).with_context(|| format!("could not create `{}`", into.display()))?;
        clear_unfinished(into);
        // Unpacked beside its place and renamed, so that a folder with the final name is whole.
        let staging = unfinished(into, short(digest));
        fs::create_dir(&staging)
            .with_context(|| format!("could not create `{}`", staging.display()))?;
        let fetched = self.fetch_through(digest, &staging, &place);
        let _ = fs::remove_dir_all(&staging);
        fetched
            .with_context(|| format!("could not fetch the record {}", short(digest)))
            .map(|()| true)
    }

    fn fetch_through(&self, digest: &str, staging: &Path, place: &Path) -> Result<()> {
        let (packed, record) = (staging.join("record.tar.gz"), staging.join("record"));
        self.store.get(digest, &packed)?;
        let found = pack::digest_of(&packed)?;
        ensure!(
            found == digest,
            "its bytes have the digest {found}, so the store was changed"
        );
        pack::unpack(&packed, &record)?;
        Ok(fs::rename(&record, place)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_an_index_line_is_no_record() {
        let object = |about: &str| StoredObject {
            name: "abc".to_owned(),
            bytes: 5,
            about: about.to_owned(),
        };
        let line = serde_json::to_string(&IndexLine::default()).unwrap();
        let record = archived(object(&line)).unwrap();
        assert_eq!((record.digest.as_str(), record.bytes), ("abc", 5));
        for garbage in ["", "{", "[]"] {
            let refused = archived(object(garbage)).unwrap_err();
            assert!(
                refused.to_string().starts_with("left out `abc`: "),
                "{refused}"
            );
        }
    }
}
