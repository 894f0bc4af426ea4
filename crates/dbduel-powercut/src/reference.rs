//! Test of the core: random histories compared with a model that is too simple to be wrong.
//!
//! The model keeps whole copies of the file's bytes: the value of each byte at the last sync, and every value that was
//! written to it since. After a cut a byte must have one of these values; with nothing pending, the first.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use proptest::prelude::*;

use crate::change::NewNode;
use crate::cut::{CutModel, Selection};
use crate::image::{Image, Ino, ROOT};
use crate::replay::Replay;
use crate::trace::{Event, Trace};
use crate::volume::{Volume, WriteMode};

const FILES: usize = 3;
const SPAN: u64 = 12_000;

#[derive(Debug, Clone)]
enum Step {
    Write {
        file: usize,
        offset: u64,
        length: usize,
        mode: WriteMode,
    },
    Sync(usize, bool),
    SyncRoot,
    Size(usize, u64),
    Zero(usize, u64, u64),
    /// The file is renamed.
    Rename(usize),
    /// The file is removed and created again.
    Renew(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let file = || 0..FILES;
    let write = (file(), 0..SPAN, 1usize..6000, any::<bool>(), 0..10);
    prop_oneof![
        6 => write.prop_map(|(file, offset, length, is_direct, durable)| {
            let (offset, length) = match is_direct {
                true => (offset / 512 * 512, length.div_ceil(512) * 512),
                false => (offset, length),
            };
            let mode = WriteMode { is_direct, is_durable: durable == 0 };
            Step::Write { file, offset, length, mode }
        }),
        2 => (file(), any::<bool>()).prop_map(|(file, data_only)| Step::Sync(file, data_only)),
        1 => Just(Step::SyncRoot),
        1 => (file(), 0..SPAN).prop_map(|(file, size)| Step::Size(file, size)),
        1 => (file(), 0..SPAN, 1..5000u64).prop_map(|(file, at, length)| Step::Zero(file, at, length)),
        1 => file().prop_map(Step::Rename),
        1 => file().prop_map(Step::Renew),
    ]
}

/// Runs the steps; byte values are the numbers of the steps, so that each identifies its write.
fn history(steps: &[Step]) -> (Trace, Volume) {
    let volume = Volume::new(Image::empty(0, 0));
    let create = |name: &str| {
        let made = volume.create(ROOT, OsStr::new(name), NewNode::File, 0o600, (0, 0));
        made.unwrap()
    };
    let mut names: Vec<String> = (0..FILES).map(|file| format!("file-{file}")).collect();
    let mut inos: Vec<Ino> = names.iter().map(|name| create(name)).collect();
    volume.record(1 << 30);
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Write {
                file,
                offset,
                length,
                mode,
            } => {
                let data = vec![number as u8 + 1; *length];
                volume.write(inos[*file], *offset, &data, *mode).unwrap();
            }
            Step::Sync(file, data_only) => volume.sync(inos[*file], *data_only).unwrap(),
            Step::SyncRoot => volume.sync(ROOT, false).unwrap(),
            Step::Size(file, size) => volume.set_size(inos[*file], *size).unwrap(),
            Step::Zero(file, at, length) => volume.zero(inos[*file], *at..at + length).unwrap(),
            Step::Rename(file) => {
                let name = format!("name-{number}");
                let (from, to) = (OsStr::new(&names[*file]), OsStr::new(&name));
                volume.rename((ROOT, from), (ROOT, to), true).unwrap();
                names[*file] = name;
            }
            Step::Renew(file) => {
                let name = OsStr::new(&names[*file]);
                volume.unlink(ROOT, name, false).unwrap();
                inos[*file] = create(&names[*file]);
            }
        }
    }
    (volume.take_trace().unwrap(), volume)
}

/// Allowed bytes of one inode after a cut.
#[derive(Default)]
struct Model {
    live: Vec<u8>,
    /// Allowed values for each byte; includes 0 where the file may be shorter.
    allowed: Vec<BTreeSet<u8>>,
    size_min: usize,
}

impl Model {
    /// The state of an inode after the entries before `position`, from whole copies of its bytes only.
    fn of(trace: &Trace, ino: Ino, position: usize) -> Self {
        let mut model = Model::default();
        let mut sizes = vec![0];
        let settle = |model: &mut Model, sizes: &mut Vec<usize>| {
            model.allowed = model
                .live
                .iter()
                .map(|&byte| BTreeSet::from([byte]))
                .collect();
            *sizes = vec![model.live.len()];
        };
        for entry in &trace.entries[..position] {
            let (change, is_durable) = match &entry.event {
                Event::Sync { ino: synced, .. } if *synced == ino => {
                    settle(&mut model, &mut sizes);
                    continue;
                }
                Event::Sync { .. } => continue,
                Event::Change(change) => (change, false),
                Event::DurableWrite(change) => (change, true),
            };
            use crate::change::Change;
            let before = model.live.clone();
            match change {
                Change::Write {
                    ino: written,
                    offset,
                    data,
                    ..
                } if *written == ino => {
                    let end = *offset as usize + data.len();
                    model.live.resize(model.live.len().max(end), 0);
                    model.live[*offset as usize..end].copy_from_slice(data);
                }
                Change::SetSize { ino: changed, size } if *changed == ino => {
                    model.live.resize(*size as usize, 0);
                }
                Change::Zero {
                    ino: changed,
                    range,
                } if *changed == ino => {
                    let end = (range.end as usize).min(model.live.len());
                    if (range.start as usize) < end {
                        model.live[range.start as usize..end].fill(0);
                    }
                }
                _ => continue,
            }
            let length = model.live.len().max(model.allowed.len());
            model.allowed.resize(length, BTreeSet::from([0]));
            for (at, allowed) in model.allowed.iter_mut().enumerate() {
                let byte = model.live.get(at).copied().unwrap_or(0);
                if before.get(at).copied().unwrap_or(0) != byte {
                    allowed.insert(byte);
                }
            }
            sizes.push(model.live.len());
            if is_durable && let Change::Write { offset, data, .. } = change {
                let end = *offset as usize + data.len();
                for at in *offset as usize..end {
                    model.allowed[at] = BTreeSet::from([model.live[at]]);
                }
                // What was written beside it may have gone along, or not.
                sizes.iter_mut().for_each(|size| *size = end.max(*size));
            }
        }
        model.size_min = sizes.into_iter().min().unwrap_or(0);
        model
    }

    fn check(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() < self.size_min || bytes.len() > self.allowed.len() {
            let most = self.allowed.len();
            return Err(format!(
                "{} bytes, not {} to {most}",
                bytes.len(),
                self.size_min
            ));
        }
        for (at, allowed) in self.allowed.iter().enumerate() {
            let byte = bytes.get(at).copied();
            // Behind an end that moved the byte reads as zero once the file grows again.
            if !byte.is_none_or(|byte| allowed.contains(&byte)) {
                return Err(format!("byte {at} is {byte:?}, not of {allowed:?}"));
            }
        }
        Ok(())
    }
}

/// The names of the root after every change of them, oldest first, and the first that a cut may keep.
fn name_histories(trace: &Trace, position: usize) -> (Vec<Vec<String>>, usize) {
    let mut image = trace.base.clone();
    let names = |image: &Image| -> Vec<String> {
        let entries = image.entries(ROOT).into_iter().flatten();
        entries
            .map(|(name, ino)| format!("{}={ino}", name.display()))
            .collect()
    };
    let mut states = vec![names(&image)];
    let mut changes = Vec::new();
    let mut durable = 0;
    for entry in &trace.entries[..position] {
        match &entry.event {
            Event::Change(change) if change.is_metadata() => {
                change.apply(&mut image);
                states.push(names(&image));
                changes.push(change);
            }
            Event::Sync { ino, data_only } => {
                let last = changes
                    .iter()
                    .rposition(|change| change.concerns(*ino, *data_only));
                durable = durable.max(last.map_or(0, |last| last + 1));
            }
            _ => {}
        }
    }
    (states, durable)
}

fn difference(left: &[u8], right: &[u8]) -> String {
    let at = left
        .iter()
        .zip(right)
        .position(|(left, right)| left != right);
    format!(
        "{} and {} bytes, the first that differs is {at:?}",
        left.len(),
        right.len()
    )
}

fn bytes_of(image: &Image, ino: Ino) -> Option<Vec<u8>> {
    image.content(ino).map(|content| content.read(0, u64::MAX))
}

fn model() -> impl Strategy<Value = CutModel> {
    prop::sample::select(CutModel::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn after_a_cut_every_byte_is_one_that_the_kernel_may_have_left(
        steps in prop::collection::vec(step(), 1..60), model in model(), seed: u64, at in 0.0..1.0f64,
    ) {
        let (trace, _) = history(&steps);
        let position = (at * (trace.entries.len() + 1) as f64) as usize;
        let mut replay = Replay::new(&trace);
        replay.advance(position);
        let image = replay.image(&Selection::draw(model, seed, &replay));
        for ino in 2..trace.base.last_ino() + 40 {
            if let Some(bytes) = bytes_of(&image, ino) {
                let checked = Model::of(&trace, ino, position).check(&bytes);
                prop_assert!(checked.is_ok(), "inode {ino}: {checked:?}");
            }
        }
        let (states, durable) = name_histories(&trace, position);
        let names: Vec<String> = image.entries(ROOT).into_iter().flatten()
            .map(|(name, ino)| format!("{}={ino}", name.display())).collect();
        prop_assert!(states[durable..].contains(&names), "{names:?} is none of {:?}", &states[durable..]);
    }

    #[test]
    fn what_was_synced_is_there_when_everything_else_is_lost(
        steps in prop::collection::vec(step(), 1..60), seed: u64,
    ) {
        let (trace, volume) = history(&steps);
        let mut replay = Replay::new(&trace);
        replay.advance(usize::MAX);
        let inos: Vec<Ino> = volume.names(ROOT).unwrap().into_iter().map(|(_, ino)| ino).collect();
        // All are synced at the end, so that a cut of any model leaves what programs saw.
        for &ino in inos.iter().chain([&ROOT]) {
            volume.record(1 << 20);
            volume.sync(ino, false).unwrap();
        }
        let mut synced = trace.clone();
        let sync = |ino| crate::trace::Entry { at_ns: 0, event: Event::Sync { ino, data_only: false } };
        synced.entries.extend(inos.iter().chain([&ROOT]).map(|&ino| sync(ino)));
        let mut replay = Replay::new(&synced);
        replay.advance(usize::MAX);
        for model in CutModel::ALL {
            let image = replay.image(&Selection::draw(model, seed, &replay));
            for &ino in &inos {
                let (left, live) = (bytes_of(&image, ino).unwrap(), volume.read(ino, 0, u64::MAX).unwrap());
                prop_assert!(left == live, "{model:?}, inode {ino}: {}", difference(&left, &live));
            }
        }
        prop_assert_eq!(replay.writes().filter(|write| inos.contains(&write.ino)).count(), 0);
    }

    #[test]
    fn when_everything_is_kept_the_disk_is_what_programs_saw(
        steps in prop::collection::vec(step(), 1..60), model in model(),
    ) {
        let (trace, volume) = history(&steps);
        let mut replay = Replay::new(&trace);
        replay.advance(usize::MAX);
        let image = replay.image(&Selection::everything(model, &replay));
        let live = volume.image();
        prop_assert_eq!(image.entries(ROOT), live.entries(ROOT));
        for &ino in live.entries(ROOT).into_iter().flatten().map(|(_, ino)| ino) {
            let (left, live) = (bytes_of(&image, ino).unwrap(), bytes_of(&live, ino).unwrap());
            prop_assert!(left == live, "inode {ino}: {}", difference(&left, &live));
        }
    }
}

fn one_file() -> (Volume, Ino) {
    let volume = Volume::new(Image::empty(0, 0));
    let ino = volume.create(ROOT, OsStr::new("page"), NewNode::File, 0o600, (0, 0));
    let ino = ino.unwrap();
    let durable = WriteMode {
        is_direct: true,
        is_durable: true,
    };
    volume.write(ino, 0, &[1; 16384], durable).unwrap();
    volume.record(1 << 30);
    (volume, ino)
}

/// Sectors of 512 bytes that are new after a cut, for a page that was written and not synced, over many seeds.
fn survivors(volume: &Volume, ino: Ino, model: CutModel) -> BTreeSet<Vec<bool>> {
    let trace = volume.take_trace().unwrap();
    let mut replay = Replay::new(&trace);
    replay.advance(usize::MAX);
    let left = (0..500).map(|seed| {
        let image = replay.image(&Selection::draw(model, seed, &replay));
        let bytes = bytes_of(&image, ino).unwrap();
        let sectors = bytes.chunks(512);
        sectors
            .map(|sector| {
                assert!(
                    sector.iter().all(|&byte| byte == sector[0]),
                    "a sector is torn"
                );
                sector[0] == 2
            })
            .collect()
    });
    left.collect()
}

#[test]
fn a_write_that_was_not_synced_can_be_lost_kept_and_torn_as_the_model_says() {
    let direct = WriteMode {
        is_direct: true,
        is_durable: false,
    };
    for (model, least, most, is_torn) in [
        (CutModel::Lose, 1, 1, false),
        (CutModel::Reorder, 2, 2, false),
        (CutModel::Torn512, 50, 500, true),
        (CutModel::Torn4096, 8, 16, true),
    ] {
        let (volume, ino) = one_file();
        volume.write(ino, 0, &[2; 16384], direct).unwrap();
        let left = survivors(&volume, ino, model);
        assert!(
            (least..=most).contains(&left.len()),
            "{model:?}: {}",
            left.len()
        );
        assert!(
            left.contains(&vec![false; 32]),
            "{model:?}: the write can be lost"
        );
        assert_eq!(
            left.contains(&vec![true; 32]),
            model != CutModel::Lose,
            "{model:?}"
        );
        let is_half = |sectors: &Vec<bool>| sectors.contains(&true) && sectors.contains(&false);
        assert_eq!(left.iter().any(is_half), is_torn, "{model:?}");
        if model == CutModel::Torn4096 {
            let whole = |sectors: &Vec<bool>| {
                sectors
                    .chunks(8)
                    .all(|page| page.iter().all(|&s| s == page[0]))
            };
            assert!(left.iter().all(whole));
        }
    }
}

#[test]
fn a_synced_write_survives_and_a_later_one_survives_without_an_earlier_one() {
    let direct = WriteMode {
        is_direct: true,
        is_durable: false,
    };
    let (volume, ino) = one_file();
    volume.write(ino, 0, &[2; 512], direct).unwrap();
    volume.sync(ino, true).unwrap();
    volume.write(ino, 4096, &[2; 512], direct).unwrap();
    volume.write(ino, 8192, &[2; 512], direct).unwrap();
    let left = survivors(&volume, ino, CutModel::Reorder);
    assert!(
        left.iter().all(|sectors| sectors[0]),
        "the synced sector is there"
    );
    let pairs: BTreeSet<(bool, bool)> = left
        .iter()
        .map(|sectors| (sectors[8], sectors[16]))
        .collect();
    assert_eq!(
        pairs.len(),
        4,
        "each of the two survives alone too: {pairs:?}"
    );
}

#[test]
fn a_new_file_is_there_after_its_sync_and_need_not_be_before() {
    let volume = Volume::new(Image::empty(0, 0));
    volume.record(1 << 30);
    let make = |name: &str| {
        let made = volume.create(ROOT, OsStr::new(name), NewNode::File, 0o600, (0, 0));
        let ino = made.unwrap();
        volume
            .write(ino, 0, b"content", WriteMode::default())
            .unwrap();
        ino
    };
    let synced = make("synced");
    volume.sync(synced, true).unwrap();
    make("not-synced");
    let trace = volume.take_trace().unwrap();
    let mut replay = Replay::new(&trace);
    replay.advance(usize::MAX);
    let images =
        (0..100).map(|seed| replay.image(&Selection::draw(CutModel::Reorder, seed, &replay)));
    let mut seen = BTreeSet::new();
    for image in images {
        assert_eq!(bytes_of(&image, synced).unwrap(), b"content");
        let other = image.lookup(ROOT, OsStr::new("not-synced"));
        seen.insert(other.map(|ino| bytes_of(&image, ino).unwrap().len()));
    }
    assert_eq!(seen, BTreeSet::from([None, Some(0), Some(7)]));
}
