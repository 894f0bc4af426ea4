//! Logs that are damaged, cut off, not text, or still written: no import panics, none takes more memory than its limit, and each line is in an
//! entry or in a part that counts as unreadable.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs::{self, OpenOptions};
use std::io::{self, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use dbduel_capture::anonymise::{Destination, KEY_BYTES, Replacer, anonymise};
use dbduel_capture::entry::{Entry, Lack, Protocol, Sink};
use dbduel_capture::import::{ImportError, ImportOptions, ImportStage, import};
use dbduel_capture::logs::recognise::{HEAD_BYTES, recognise};
use dbduel_capture::logs::{ENTRY_BYTES_MAX, LogFormat, LogOptions};
use dbduel_capture::store::Capture;
use flate2::Compression;
use flate2::write::GzEncoder;

thread_local! {
    static USED: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Counts the bytes that a thread has, and their most.
struct Counting;

impl Counting {
    fn add(bytes: isize) {
        let used = USED.get() + bytes;
        USED.set(used);
        MOST.set(MOST.get().max(used));
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(
    unsafe_code,
    reason = "the trait of allocators is unsafe; all is passed to the system's"
)]
// SAFETY: every call is passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::add(layout.size() as isize);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        Counting::add(-(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::add(size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Numbers that follow from a seed (Steele and others, "Fast Splittable Pseudorandom Number Generators").
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit.max(1)
    }
}

/// `log_line_prefix` of the samples of stderr logs.
fn prefix(name: &str) -> Option<&'static [u8]> {
    match name {
        _ if name.ends_with("stderr.log") => Some(b"%m [%p] %c %l %v %x %u@%d %a %h %e "),
        _ if name.contains("-mode-") => Some(b"%c:%l %x "),
        _ => None,
    }
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let entries = fs::read_dir(folder).unwrap();
    let mut samples: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    samples.sort();
    samples
}

fn options(name: &str, log: PathBuf, target: PathBuf) -> ImportOptions {
    ImportOptions {
        logs: vec![log],
        target,
        prefix: prefix(name).map(<[u8]>::to_vec),
        ..ImportOptions::default()
    }
}

/// Texts of statements with their values, and unreadable parts.
#[derive(Default)]
struct Found {
    texts: Vec<u8>,
    parts: Vec<(u64, u64)>,
}

impl Sink for Found {
    fn entry(&mut self, entry: Entry<'_>) -> io::Result<()> {
        if let Entry::Statement(statement) = entry {
            self.texts.extend_from_slice(&statement.text);
            self.texts.push(b'\n');
            if let Protocol::Prepared(values) = &statement.protocol {
                values
                    .iter()
                    .flatten()
                    .for_each(|value| self.texts.extend_from_slice(value));
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, line: u64, lines: u64, _why: &str) {
        self.parts.push((line, lines));
    }

    fn lacks(&mut self, _lack: Lack) {}
}

fn format_of(name: &str, log: &[u8]) -> Option<(LogFormat, LogOptions)> {
    let head = &log[..log.len().min(HEAD_BYTES)];
    let recognised = recognise(head, None, prefix(name).is_some()).ok()?;
    let options = LogOptions {
        line_prefix: prefix(name).map(<[u8]>::to_vec),
        ..LogOptions::default()
    };
    Some((recognised.format, options))
}

/// Lines of bytes that no text has, each with a mark in it.
fn junk(numbers: &mut Numbers, lines: usize, at: usize) -> Vec<(String, Vec<u8>)> {
    let line = |place: usize| {
        let mark = format!("JUNK{:06}KNUJ", at + place);
        let mut bytes = mark.clone().into_bytes();
        for _ in 0..numbers.below(60) {
            let byte = (numbers.next() & 0xff) as u8;
            bytes.push(match byte {
                b'\n' | b'\r' | b'"' => 0,
                byte => byte,
            });
        }
        bytes.push(b'\n');
        (mark, bytes)
    };
    (0..lines).map(line).collect()
}

#[test]
fn lines_of_junk_are_in_a_text_or_counted() {
    let (mut marks, mut lost) = (0, Vec::new());
    for (seed, (name, log)) in samples().into_iter().enumerate() {
        let mut numbers = Numbers(seed as u64);
        let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
        for round in 0..8 {
            // In one place, so that it is not taken for parts of other entries.
            let place = numbers.below(lines.len().saturating_sub(1)) + 1;
            let count = 1 + numbers.below(20);
            let added = junk(&mut numbers, count, 100 * round);
            let mut hostile = lines[..place].concat();
            added
                .iter()
                .for_each(|(_, bytes)| hostile.extend_from_slice(bytes));
            hostile.extend(lines[place..].concat());
            let Some((format, options)) = format_of(&name, &hostile) else {
                continue;
            };
            let mut found = Found::default();
            if format
                .read(&mut hostile.as_slice(), &options, &mut found)
                .is_err()
            {
                continue;
            }
            for (line, (mark, _)) in (place as u64 + 1..).zip(&added) {
                let is_in = |(first, count): &(u64, u64)| (*first..first + count).contains(&line);
                let is_counted = found.parts.iter().any(is_in);
                let is_text = memchr::memmem::find(&found.texts, mark.as_bytes()).is_some();
                marks += u64::from(is_counted || is_text);
                if !is_counted && !is_text && !is_of_preparation(&hostile, mark) {
                    let before = String::from_utf8_lossy(lines[place - 1]);
                    lost.push(format!(
                        "{name}, round {round}: line {line} of junk behind `{before}`"
                    ));
                }
            }
        }
    }
    assert!(lost.is_empty(), "in no text and not counted: {lost:?}");
    assert!(marks > 1_000, "{marks}");
}

/// True for a line of a text that readers know and do not keep, since each execution has it again: of a `Prepare`, or of an `EXECUTE` in SQL.
fn is_of_preparation(log: &[u8], mark: &str) -> bool {
    let at = memchr::memmem::find(log, mark.as_bytes()).unwrap();
    let before = String::from_utf8_lossy(&log[..at]).into_owned();
    let commands = ["Query\t", "Execute\t", "Prepare\t", "# "];
    let is_head = |line: &&str| commands.iter().any(|command| line.contains(command));
    let head = before.lines().rev().find(is_head).unwrap_or_default();
    let head = head.to_ascii_uppercase();
    head.contains("PREPARE") || head.contains("EXECUTE")
}

#[test]
fn compressed_logs_that_are_cut_off_are_refused_and_leave_nothing() {
    let (name, log) = samples()
        .into_iter()
        .find(|(name, _)| name == "slow-mysql-8.0.log")
        .unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&log.repeat(20)).unwrap();
    let whole = encoder.finish().unwrap();
    let mut numbers = Numbers(1);
    for _ in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("slow.log.gz");
        let cut = 7 + numbers.below(whole.len() - 8);
        fs::write(&path, &whole[..cut]).unwrap();
        let target = dir.path().join("a.cap");
        let error = import(&options(&name, path, target), &mut |_| Ok(())).unwrap_err();
        let ImportError::Log(error) = error else {
            panic!("cut at {cut}: {error}");
        };
        assert!(error.to_string().contains("slow.log.gz"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "cut at {cut}");
    }
}

#[test]
fn a_log_that_grows_while_it_is_read_ends() {
    for (name, log) in samples() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, &log).unwrap();
        let mut appended = 0;
        let mut grow = |stage: ImportStage| -> io::Result<()> {
            if appended < 5 && matches!(stage, ImportStage::Reading { .. }) {
                let mut file = OpenOptions::new().append(true).open(&path)?;
                // The last time without its end, as a server that writes it now.
                let end = log.len() - usize::from(appended == 4) * (log.len() / 3);
                file.write_all(&log[..end])?;
                appended += 1;
            }
            Ok(())
        };
        let target = dir.path().join("a.cap");
        let manifest = import(&options(&name, path.clone(), target.clone()), &mut grow).unwrap();
        assert!(
            appended > 0 && manifest.log.bytes >= log.len() as u64,
            "{name}"
        );
        assert!(
            manifest.log.bytes <= path.metadata().unwrap().len(),
            "{name}"
        );
        Capture::open(&target)
            .unwrap()
            .verify(&mut || Ok(()))
            .unwrap();
    }
}

/// A log of one entry that never ends.
struct Endless<'l> {
    head: &'l [u8],
    filler: u8,
    left: usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.head.is_empty() {
            return self.head.read(buffer);
        }
        let length = self.left.min(buffer.len());
        buffer[..length].fill(self.filler);
        self.left -= length;
        Ok(length)
    }
}

#[test]
fn an_entry_without_an_end_takes_bounded_memory() {
    /// Twice the longest entry: one that is read, and one that is being made of it.
    const MOST_BYTES: isize = 2 * ENTRY_BYTES_MAX as isize + (16 << 20);
    for (name, entry) in [
        (
            "general-mysql-8.0.log",
            &b"2026-11-28T00:00:01.000100Z\t    7 Query\tSELECT '"[..],
        ),
        ("slow-mysql-8.0.log", b"SET timestamp=1764288001;\nSELECT '"),
        ("pg15.csv", b"2026-11-28 00:00:01.000 UTC,\""),
        ("pg15.json", b"{\"timestamp\":\""),
        ("pg15-stderr.log", b"x"),
    ] {
        let (_, log) = samples()
            .into_iter()
            .find(|(sample, _)| sample == name)
            .unwrap();
        let (format, options) = format_of(name, &log).unwrap();
        let head = [&log[..], entry].concat();
        let endless = Endless {
            head: &head,
            filler: b'x',
            left: ENTRY_BYTES_MAX + (8 << 20),
        };
        let mut found = Found::default();
        let before = USED.get();
        MOST.set(before);
        let read = format.read(
            &mut BufReader::with_capacity(1 << 20, endless),
            &options,
            &mut found,
        );
        read.unwrap();
        let most = MOST.get() - before;
        assert!(most < MOST_BYTES, "{name}: {most} bytes");
        assert!(
            !found.parts.is_empty(),
            "{name}: the entry counts as unreadable"
        );
    }
}

#[test]
fn damaged_logs_lose_no_literal_when_they_are_anonymised() {
    let samples = samples();
    let mut captures = 0;
    for seed in 0..60_u64 {
        let mut numbers = Numbers(seed);
        let (name, log) = &samples[seed as usize % samples.len()];
        let mut log = log.clone();
        for _ in 0..6 {
            let at = numbers.below(log.len());
            match numbers.below(3) {
                0 => log[at] = b"'\"`\\$/*-#;\0\xff"[numbers.below(12)],
                1 => log.insert(at, b"'\"`\\$/*-#;\0\xff"[numbers.below(12)]),
                _ => drop(log.drain(at..(at + numbers.below(40)).min(log.len()))),
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        // Where a quote is lost, what is left of a literal is a word.
        let secret = b"SELECT 'xq7secretxq7";
        log.extend_from_slice(secret);
        fs::write(&path, &log).unwrap();
        let target = dir.path().join("a.cap");
        if import(&options(name, path, target.clone()), &mut |_| Ok(())).is_err() {
            continue;
        }
        let capture = Capture::open(&target).unwrap();
        let hidden = dir.path().join("b.cap");
        let destination = Destination {
            target: &hidden,
            check: &mut |_| Ok(()),
        };
        let manifest =
            anonymise(&capture, &mut Replacer::new(&[3; KEY_BYTES]), destination).unwrap();
        captures += 1;
        let dropped = &manifest.anonymised.as_ref().unwrap().dropped;
        let dropped: u64 = dropped.iter().map(|dropped| dropped.count).sum();
        assert_eq!(
            manifest.counts.statements + dropped,
            capture.statements() as u64,
            "{name}, seed {seed}"
        );
        for entry in fs::read_dir(&hidden).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            assert!(
                memchr::memmem::find(&bytes, b"xq7secret").is_none(),
                "{name}, seed {seed}"
            );
        }
    }
    assert!(captures > 30, "{captures}");
}
