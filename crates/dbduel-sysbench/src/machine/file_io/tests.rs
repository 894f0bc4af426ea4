use nix::errno::Errno;

use super::*;

pub(super) fn spec(mode: Mode) -> FileIoSpec {
    FileIoSpec {
        files: FileSet {
            folder: PathBuf::new(),
            count: 4,
            block_bytes: 4096,
            total_bytes: 4 * 8 * 4096,
            flags: OpenFlags::default(),
            is_proved: false,
        },
        mode,
        method: Method::Plain,
        sync_every: 100,
        sync_each_write: false,
        sync_at_end: true,
        sync_data_only: false,
        merged_blocks: 0,
        reads_per_write: 1.5,
        shape: Shape::Uniform,
        workers: 1,
        seed: 1,
    }
}

fn run(spec: FileIoSpec, events: u64) -> Result<Counts, String> {
    let test = FileIo::open(spec).map_err(|error| error.to_string())?;
    let mut worker = test.worker(0)?;
    let mut counts = Counts::default();
    for number in 0..events {
        worker.event(number, &mut counts)?;
    }
    worker.finish(&mut counts)?;
    Ok(counts)
}

const METHODS: [Method; 3] = [Method::Plain, Method::Queued { backlog: 8 }, Method::Mapped];

#[test]
fn every_mode_runs_with_every_method() {
    let folder = tempfile::tempdir().unwrap();
    for method in METHODS {
        for mode in [
            Mode::SequentialWrite,
            Mode::SequentialRewrite,
            Mode::SequentialRead,
            Mode::RandomRead,
            Mode::RandomWrite,
            Mode::RandomMix,
        ] {
            let mut spec = FileIoSpec {
                method,
                ..spec(mode)
            };
            spec.files.folder = folder.path().to_owned();
            create(&spec.files, 1, |_, _| ()).unwrap();
            let counts = run(spec, 250).unwrap();
            let label = format!("{mode:?} {method:?} {counts:?}");
            let is_read = matches!(mode, Mode::SequentialRead | Mode::RandomRead);
            assert_eq!(counts.writes == 0, is_read, "{label}");
            // Two syncs of four files on the way, one at the end.
            assert_eq!(counts.others, if is_read { 0 } else { 12 }, "{label}");
            let at_end = if is_read { 0 } else { 4 };
            assert_eq!(
                counts.reads + counts.writes + counts.others,
                250 + at_end,
                "{label}"
            );
            assert_eq!(counts.bytes_written, counts.writes * 4096, "{label}");
        }
    }
}

#[test]
fn proofs_hold_through_every_method_and_a_wrong_byte_is_found() {
    for method in METHODS {
        let folder = tempfile::tempdir().unwrap();
        let mut mix = FileIoSpec {
            method,
            ..spec(Mode::RandomMix)
        };
        mix.files.folder = folder.path().to_owned();
        mix.files.is_proved = true;
        create(&mix.files, 1, |_, _| ()).unwrap();
        run(mix.clone(), 2_000).unwrap();
        let read = FileIoSpec {
            mode: Mode::SequentialRead,
            method: Method::Plain,
            ..mix
        };
        run(read.clone(), 32).unwrap();
        let path = folder.path().join("test_file.2");
        let mut content = std::fs::read(&path).unwrap();
        content[4096 + 77] ^= 1;
        std::fs::write(&path, content).unwrap();
        let error = run(read, 32).unwrap_err();
        assert!(error.contains("file 2, block offset 4096"), "{error}");
    }
}

#[test]
fn files_that_are_missing_or_too_small_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(Mode::RandomRead);
    spec.files.folder = folder.path().to_owned();
    let error = run(spec.clone(), 1).unwrap_err();
    assert!(
        error.contains("test_file.0") && error.contains("errno = 2"),
        "{error}"
    );
    create(&spec.files, 1, |_, _| ()).unwrap();
    spec.files.total_bytes *= 2;
    let error = run(spec.clone(), 1).unwrap_err();
    assert!(error.contains("but at least 64KiB is expected."), "{error}");
    remove(&spec.files).unwrap();
    remove(&spec.files).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn direct_access_gets_aligned_memory() {
    // The temporary directory may be in memory, which knows no direct access.
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    for method in [Method::Plain, Method::Queued { backlog: 4 }] {
        let mut spec = FileIoSpec {
            method,
            ..spec(Mode::RandomMix)
        };
        spec.files.folder = folder.path().to_owned();
        create(&spec.files, 1, |_, _| ()).unwrap();
        spec.files.flags.direct = true;
        run(spec, 100).unwrap();
    }
}

#[test]
fn a_refusal_of_direct_access_names_the_sizes_and_no_operation() {
    let mut files = spec(Mode::RandomRead).files;
    files.block_bytes = 1000;
    let refused = |code: Errno| FileError::Access {
        what: "sync",
        path: "./test_file.0".into(),
        offset: 0,
        source: code.into(),
    };
    let plain = files.explain(&refused(Errno::EINVAL));
    assert!(plain.contains("cannot sync file"), "{plain}");
    files.flags.direct = true;
    let direct = files.explain(&refused(Errno::EINVAL));
    assert!(
        direct.contains("--file-block-size is 1000B") && direct.contains("'test_file.0'"),
        "{direct}"
    );
    assert!(!direct.contains("sync"), "{direct}");
    let other = files.explain(&refused(Errno::EIO));
    assert!(other.contains("cannot sync file"), "{other}");
    let closed = files.explain(&FileError::Open {
        path: "./test_file.0".into(),
        errno: Errno::EINVAL,
    });
    assert!(closed.contains("--file-extra-flags"), "{closed}");
}
