//! The test `fileio`: its options, commands and output.

use std::path::PathBuf;
use std::sync::Arc;

use crate::machine::file_io::{
    self, FileIo, FileIoSpec, FileSet, Making, Method, Mode, OpenFlags, size_text,
};

use super::page::Style;
use super::parsed_options::{ParsedOptions, Written};
use super::{Job, Stop, command, no_command, run as runs, table, test_help};

/// The seed of the files' content: a prepared set is the same every time.
const CONTENT_SEED: u64 = 1;

const MODES: &[(&str, Mode)] = &[
    ("seqwr", Mode::SequentialWrite),
    ("seqrewr", Mode::SequentialRewrite),
    ("seqrd", Mode::SequentialRead),
    ("rndrd", Mode::RandomRead),
    ("rndwr", Mode::RandomWrite),
    ("rndrw", Mode::RandomMix),
];

/// Executes the command of the job; returns the exit code.
///
/// # Errors
/// Errors in the options or the files.
pub fn run(job: &Job, rest: Vec<Written>) -> Result<u8, Stop> {
    let specs = [table::FILE_IO];
    let voice = job.general.voice;
    let given = ParsedOptions::read_all(&specs, rest, voice)?;
    match command("fileio", job)? {
        "help" => Ok(test_help("fileio", &specs, voice)),
        "prepare" => prepare(job, &files(job, &given)?),
        "cleanup" => {
            voice.notice("Removing test files...");
            let set = files(job, &given)?;
            file_io::remove(&set).map_err(|error| fatal(&set, &error))?;
            Ok(0)
        }
        "run" if !given.is_written("file-test-mode") => {
            voice.fatal("Missing required argument: --file-test-mode\n");
            test_help("fileio", &specs, voice);
            Ok(1)
        }
        "run" => drive(job, &given),
        other => Err(no_command("fileio", other)),
    }
}

fn fatal(set: &FileSet, error: &file_io::FileError) -> Stop {
    let hint = match error {
        file_io::FileError::Open { .. } => "\nWARNING: Did you forget to run the prepare step?",
        file_io::FileError::TooSmall { .. } => {
            "\nWARNING: Did you run 'prepare' with different --file-total-size or --file-num values?"
        }
        _ => "",
    };
    Stop::Fatal(format!("{}{hint}", set.explain(error)))
}

fn files(job: &Job, given: &ParsedOptions) -> Result<FileSet, Stop> {
    let mut flags = OpenFlags::default();
    for flag in given.list("file-extra-flags") {
        match flag.as_str() {
            "sync" => flags.sync = true,
            "dsync" => flags.dsync = true,
            "direct" => flags.direct = true,
            other => {
                return Err(Stop::Fatal(format!(
                    "Invalid value for file-extra-flags: {other}; it takes sync, dsync and direct"
                )));
            }
        }
    }
    let set = FileSet {
        folder: PathBuf::from("."),
        count: given.positive("file-num", 1 << 20)?,
        block_bytes: u64::from(given.positive("file-block-size", 1 << 30)?),
        total_bytes: given.count("file-total-size")?,
        flags,
        is_proved: job.general.validate,
    };
    if set.file_bytes() < set.block_bytes {
        return Err(Stop::Fatal(format!(
            "{} files of {} bytes are smaller than a block of {} bytes; raise --file-total-size",
            set.count,
            set.file_bytes(),
            set.block_bytes
        )));
    }
    Ok(set)
}

fn flags_text(flags: OpenFlags) -> String {
    let words = [
        (flags.sync, "sync "),
        (flags.dsync, "dsync "),
        (flags.direct, "directio "),
    ];
    let text: String = words
        .iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, word)| *word)
        .collect();
    let text = if text.is_empty() { "(none)" } else { &text };
    format!("Extra file open flags: {text}")
}

fn prepare(job: &Job, set: &FileSet) -> Result<u8, Stop> {
    let voice = job.general.voice;
    voice.notice(&format!(
        "{} files, {}Kb each, {}Mb total\nCreating files for the test...\n{}",
        set.count,
        set.file_bytes() >> 10,
        (set.file_bytes() * u64::from(set.count)) >> 20,
        flags_text(set.flags)
    ));
    let on_file = |name: &str, making| {
        let verb = match making {
            Making::New => "Creating file",
            Making::Longer => "Extending existing file",
            Making::Kept => "Reusing existing file",
        };
        voice.notice(&format!("{verb} {name}"));
    };
    let created =
        file_io::create(set, CONTENT_SEED, on_file).map_err(|error| fatal(set, &error))?;
    let (bytes, seconds) = (created.bytes, created.time.as_secs_f64());
    if bytes == 0 {
        voice.notice("No bytes written.");
    } else {
        let mib_per_s = bytes as f64 / (1 << 20) as f64 / seconds.max(1e-9);
        voice.notice(&format!(
            "{bytes} bytes written in {seconds:.2} seconds ({mib_per_s:.2} MiB/sec)."
        ));
    }
    Ok(0)
}

fn drive(job: &Job, given: &ParsedOptions) -> Result<u8, Stop> {
    let mode = MODES
        .iter()
        .find(|(word, _)| *word == given.text("file-test-mode"))
        .map(|(_, mode)| *mode)
        .ok_or_else(|| {
            let text = given.text("file-test-mode");
            Stop::Fatal(format!("Invalid IO operations mode: {text}."))
        })?;
    let backlog = given.positive("file-async-backlog", 1 << 16)?;
    let methods = [
        ("sync", Method::Plain),
        ("async", Method::Queued { backlog }),
        ("mmap", Method::Mapped),
    ];
    let text = given.text("file-io-mode");
    let method = methods
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, method)| *method)
        .ok_or_else(|| Stop::Fatal(format!("unknown I/O mode: {text}; use sync, async or mmap")))?;
    let spec = FileIoSpec {
        files: files(job, given)?,
        mode,
        method,
        sync_every: given.count("file-fsync-freq")?,
        sync_each_write: given.switch("file-fsync-all"),
        sync_at_end: given.switch("file-fsync-end"),
        sync_data_only: given
            .choice("file-fsync-mode", &[("fsync", false), ("fdatasync", true)])?,
        merged_blocks: given.count("file-merged-requests")?,
        reads_per_write: given.number("file-rw-ratio"),
        shape: job.general.shapes.default,
        workers: job.general.threads,
        seed: job.general.seed,
    };
    if spec.reads_per_write < 0.0 {
        return Err(Stop::Fatal(format!(
            "Invalid value for --file-rw-ratio: {}; it takes a number from 0",
            spec.reads_per_write
        )));
    }
    let about = about(&spec, job.general.limits.events.unwrap_or(0));
    runs::machine(&job.general, Style::Files, &about, || {
        let set = spec.files.clone();
        Ok(Arc::new(
            FileIo::open(spec).map_err(|error| fatal(&set, &error))?,
        ))
    })
}

fn about(spec: &FileIoSpec, events: u64) -> String {
    let set = &spec.files;
    let mut lines = vec![
        flags_text(set.flags),
        format!("{} files, {} each", set.count, size_text(set.file_bytes())),
        format!(
            "{} total file size",
            size_text(set.file_bytes() * u64::from(set.count))
        ),
        format!("Block size {}", size_text(set.block_bytes)),
    ];
    if spec.merged_blocks > 0 {
        lines.push(format!(
            "Merging requests up to {} for sequential IO.",
            size_text(set.block_bytes * spec.merged_blocks)
        ));
    }
    if spec.mode.is_random() {
        lines.push(format!("Number of IO requests: {events}"));
        lines.push(format!(
            "Read/Write ratio for combined random IO test: {:.2}",
            spec.reads_per_write
        ));
    }
    if spec.sync_each_write {
        lines.push("Calling fsync() after each write operation.".to_owned());
    } else {
        if spec.sync_every > 0 {
            lines.push(format!(
                "Periodic FSYNC enabled, calling fsync() each {} requests.",
                spec.sync_every
            ));
        }
        if spec.sync_at_end {
            lines.push("Calling fsync() at the end of test, Enabled.".to_owned());
        }
    }
    lines.push(
        match spec.method {
            Method::Plain => "Using synchronous I/O mode",
            Method::Queued { .. } => "Using asynchronous I/O mode",
            Method::Mapped => "Using fast mmaped I/O mode",
        }
        .to_owned(),
    );
    if set.is_proved {
        lines.push("Using checksums validation.".to_owned());
    }
    lines.push(
        match spec.mode {
            Mode::SequentialWrite => "Doing sequential write (creation) test",
            Mode::SequentialRewrite => "Doing sequential rewrite test",
            Mode::SequentialRead => "Doing sequential read test",
            Mode::RandomRead => "Doing random read test",
            Mode::RandomWrite => "Doing random write test",
            Mode::RandomMix => "Doing random r/w test",
        }
        .to_owned(),
    );
    lines.join("\n")
}
