//! Minimal image of a loss: the fewest lost writes that reproduce it, kept with the image of the disk.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use dbduel_powercut::{Change, Event, Fragment, Replay, Selection, minimise, write_tree};

use super::Images;
use super::outcome::{CutFate, CutOutcome, KeptImage};
use super::stand::Stand;
use super::traced_load::TracedLoad;
use crate::StatusOutput;

/// Folder of the disk's image.
const DISK: &str = "data";
/// File with the order of writes.
const WRITES: &str = "writes.csv";
/// File with the verdict.
const CUT: &str = "cut.json";

/// A cut with a loss, to be minimised.
pub struct Minimal<'m> {
    pub console: &'m dyn StatusOutput,
    pub images: &'m Images,
    pub load: &'m TracedLoad,
    pub replay: &'m Replay<'m>,
    pub cut: &'m CutOutcome,
}

impl Minimal<'_> {
    /// Searches for the fewest lost parts of writes that reproduce the loss, and writes the disk, the order of writes
    /// and the verdict to a separate folder.
    ///
    /// # Errors
    /// When the lab fails to start a server, or a file cannot be written.
    pub fn keep(&self, stand: &mut Stand<'_>, selection: &Selection) -> Result<KeptImage> {
        let (fate, model) = (self.cut.fate(), self.cut.model);
        let lost = selection.lost(model, self.replay);
        self.console.stage(&format!(
            "{}: cut {}: searching for the fewest lost writes that reproduce the loss",
            stand.name(),
            self.cut.cut
        ));
        // Where it also happens with all changes of names and sizes kept, they need no explanation.
        let everything = self.replay.position();
        let mut tries = 1;
        let metadata_until = match self.shows(stand, &lost, everything, fate)? {
            true => everything,
            false => selection.metadata_until,
        };
        let (left, is_minimal) = minimise(&lost, self.images.tries.saturating_sub(1), |lost| {
            tries += 1;
            self.shows(stand, lost, metadata_until, fate)
        })?;
        let name = format!("{}/cut-{}", folder_name(stand.name()), self.cut.cut);
        let folder = self.images.folder.join(&name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("could not create `{}`", folder.display()))?;
        let minimal = self.without(&left, metadata_until);
        write_tree(&self.replay.image(&minimal), &folder.join(DISK))?;
        write(
            &folder.join(WRITES),
            self.order_of_writes(&minimal).as_bytes(),
        )?;
        write(&folder.join(CUT), &serde_json::to_vec_pretty(self.cut)?)?;
        Ok(KeptImage {
            cut: self.cut.cut,
            fate,
            folder: format!("{name}/{DISK}"),
            lost_before: lost.len() as u64,
            lost_parts: left.len() as u64,
            is_minimal,
            tries,
        })
    }

    /// All pending writes but these parts.
    fn without(&self, lost: &[Fragment], metadata_until: usize) -> Selection {
        let mut selection = Selection::everything(self.cut.model, self.replay);
        let lost: BTreeSet<&Fragment> = lost.iter().collect();
        selection.kept.retain(|part| !lost.contains(part));
        selection.metadata_until = metadata_until;
        selection
    }

    fn shows(
        &self,
        stand: &mut Stand<'_>,
        lost: &[Fragment],
        metadata_until: usize,
        fate: CutFate,
    ) -> Result<bool> {
        dbduel_machine::interrupt::check()?;
        let image = self.replay.image(&self.without(lost, metadata_until));
        let promised = self.load.promised(self.replay.position());
        let verdict = stand.restart(image, &promised)?;
        let seen = CutOutcome {
            verdict,
            ..self.cut.clone()
        };
        Ok(seen.fate() == fate)
    }

    /// Events from the oldest pending write to the cut, as CSV.
    fn order_of_writes(&self, selection: &Selection) -> String {
        let everything = Selection::everything(self.cut.model, self.replay);
        let mut paths = self.replay.image(&everything).paths();
        for (ino, path) in self.replay.disk().paths() {
            paths.entry(ino).or_insert(path);
        }
        let path = |ino: u64| {
            let path = paths.get(&ino).map(|path| path.display().to_string());
            path.unwrap_or_else(|| format!("inode {ino}"))
        };
        let pending: BTreeSet<usize> = self.replay.writes().map(|write| write.seq).collect();
        let position = self.replay.position();
        let first = pending.first().copied().unwrap_or(position);
        let cut_ns = self.load.trace.cut_ns(position);
        let mut text =
            "position,ms_before_cut,event,file,offset,length,direct,state,parts_kept,parts_lost\n"
                .to_owned();
        for (seq, entry) in self.load.trace.entries[..position]
            .iter()
            .enumerate()
            .skip(first)
        {
            let ms = cut_ns.saturating_sub(entry.at_ns) as f64 / 1e6;
            // Writing to a string does not fail.
            let _ = match &entry.event {
                Event::Sync { ino, data_only } => {
                    let what = if *data_only { "fdatasync" } else { "fsync" };
                    writeln!(text, "{seq},{ms:.3},{what},{},,,,,,", path(*ino))
                }
                Event::Change(Change::Write {
                    ino,
                    offset,
                    data,
                    is_direct,
                })
                | Event::DurableWrite(Change::Write {
                    ino,
                    offset,
                    data,
                    is_direct,
                }) => {
                    let of_this = |parts: &BTreeSet<Fragment>| {
                        parts.iter().filter(|part| part.seq == seq).count()
                    };
                    let kept = of_this(&selection.kept);
                    let lost = of_this(&everything.kept) - kept;
                    let state = match (pending.contains(&seq), kept, lost) {
                        (false, ..) => "synced",
                        (true, _, 0) => "kept",
                        (true, 0, _) => "lost",
                        (true, ..) => "torn",
                    };
                    let (file, length) = (path(*ino), data.len());
                    writeln!(
                        text,
                        "{seq},{ms:.3},write,{file},{offset},{length},{is_direct},{state},{kept},{lost}"
                    )
                }
                Event::Change(change) | Event::DurableWrite(change) => {
                    let (what, ino) = named(change);
                    let state = match seq < selection.metadata_until {
                        true => "kept",
                        false => "lost",
                    };
                    writeln!(text, "{seq},{ms:.3},{what},{},,,,{state},,", path(ino))
                }
            };
        }
        text
    }
}

/// A change in one word, and its inode.
fn named(change: &Change) -> (&'static str, u64) {
    match change {
        Change::Create { ino, .. } => ("create", *ino),
        Change::Link { ino, .. } => ("link", *ino),
        Change::Unlink { ino, .. } => ("unlink", *ino),
        Change::Rename { ino, .. } => ("rename", *ino),
        Change::SetSize { ino, .. } => ("set-size", *ino),
        Change::Zero { ino, .. } => ("zero", *ino),
        Change::SetAttributes { ino, .. } => ("set-attributes", *ino),
        Change::Write { ino, .. } => ("write", *ino),
    }
}

/// The folder of a contender.
fn folder_name(contender: &str) -> String {
    dbduel_record::names::file_name(contender).to_string()
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("could not write `{}`", path.display()))
}
