//! The file system of power cuts, mounted: known histories through the kernel. The core has its proofs in its own crate; here
//! is shown that what programs ask the kernel for arrives there as what it is.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use dbduel_powercut::mount::{self, Mount};
use dbduel_powercut::{CutModel, Image, ROOT, Replay, Selection, Trace, Volume, read_tree};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;

use super::harness::skip_always;
use super::lab::program;

/// A recording volume that is mounted.
struct Mounted {
    volume: Arc<Volume>,
    mount: Option<Mount>,
    folder: tempfile::TempDir,
}

impl Mounted {
    /// None, and the test counts as ignored, where there is no FUSE.
    fn new() -> Option<Self> {
        if let Err(why) = mount::check() {
            skip_always(&why.to_string());
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let user = (nix::unistd::geteuid(), nix::unistd::getegid());
        let image = Image::empty(user.0.as_raw(), user.1.as_raw());
        let volume = Arc::new(Volume::new(image));
        volume.record(1 << 30);
        let mount = Mount::new(Arc::clone(&volume), folder.path()).unwrap();
        Some(Mounted {
            volume,
            mount: Some(mount),
            folder,
        })
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn end(mut self) -> Trace {
        let trace = self.volume.take_trace().unwrap();
        self.mount.take().unwrap().unmount().unwrap();
        assert!(!is_mounted(self.folder.path()));
        trace
    }
}

fn is_mounted(folder: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.contains(folder.to_str().unwrap())
}

/// The disk after a cut at the end.
fn cut(trace: &Trace, model: CutModel, seed: u64) -> Image {
    let mut replay = Replay::new(trace);
    replay.advance(usize::MAX);
    replay.image(&Selection::draw(model, seed, &replay))
}

fn bytes(image: &Image, name: &str) -> Option<Vec<u8>> {
    let ino = image.lookup(ROOT, name.as_ref())?;
    image.content(ino).map(|content| content.read(0, u64::MAX))
}

/// A buffer that direct I/O takes.
#[repr(align(4096))]
struct Aligned([u8; 4096]);

fn write_direct(path: &Path, flags: i32, byte: u8, offset: u64) -> File {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .custom_flags(libc::O_DIRECT | flags)
        .open(path)
        .unwrap();
    file.write_all_at(&Aligned([byte; 4096]).0, offset).unwrap();
    file
}

fn write_mapped(path: &Path, byte: u8, is_synced: bool) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    // SAFETY: no other process has the file open.
    let mut mapped = unsafe { memmap2::MmapMut::map_mut(&file) }.unwrap();
    mapped.fill(byte);
    if is_synced {
        mapped.flush().unwrap();
    }
}

#[test]
fn what_was_synced_through_the_kernel_is_never_lost_and_what_was_not_can_be() {
    let Some(mounted) = Mounted::new() else {
        return;
    };
    // Buffered, direct, O_DSYNC, O_SYNC, mapped; each synced in its own way, or not.
    fs::write(mounted.path("buffered"), [1; 10_000]).unwrap();
    File::open(mounted.path("buffered"))
        .unwrap()
        .sync_all()
        .unwrap();
    fs::write(mounted.path("buffered-not"), [1; 10_000]).unwrap();
    write_direct(&mounted.path("direct"), 0, 2, 8192)
        .sync_data()
        .unwrap();
    write_direct(&mounted.path("direct-not"), 0, 2, 0);
    write_direct(&mounted.path("dsync"), libc::O_DSYNC, 3, 0);
    let mut sync = OpenOptions::new();
    let sync = sync.create(true).append(true).custom_flags(libc::O_SYNC);
    sync.open(mounted.path("sync"))
        .unwrap()
        .write_all(b"line\n")
        .unwrap();
    for (name, is_synced) in [("mapped", true), ("mapped-not", false)] {
        fs::write(mounted.path(name), [4; 4096]).unwrap();
        File::open(mounted.path(name)).unwrap().sync_all().unwrap();
        write_mapped(&mounted.path(name), 5, is_synced);
    }
    // Holes, lengths and names.
    let holes = File::create(mounted.path("holes")).unwrap();
    holes.write_all_at(&[6; 16384], 0).unwrap();
    holes.sync_all().unwrap();
    let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(&holes, punch, 4096, 4096).unwrap();
    fallocate(&holes, FallocateFlags::empty(), 0, 65536).unwrap();
    holes.sync_data().unwrap();
    fs::write(mounted.path("new"), "whole").unwrap();
    File::open(mounted.path("new")).unwrap().sync_all().unwrap();
    fs::rename(mounted.path("new"), mounted.path("renamed")).unwrap();
    File::open(mounted.folder.path())
        .unwrap()
        .sync_all()
        .unwrap();
    fs::remove_file(mounted.path("sync")).unwrap();
    holes.set_len(100).unwrap();
    let trace = mounted.end();

    let lost = cut(&trace, CutModel::Lose, 0);
    let zeros = |bytes: Option<Vec<u8>>| bytes.is_none_or(|bytes| bytes.iter().all(|&b| b == 0));
    assert!(zeros(bytes(&lost, "buffered-not")) && zeros(bytes(&lost, "direct-not")));
    assert_eq!(bytes(&lost, "mapped-not").unwrap(), [4; 4096]);
    assert_eq!(bytes(&lost, "holes").unwrap().len(), 65536);
    let mut seen_not_removed = false;
    for seed in 0..50 {
        for model in CutModel::ALL {
            let image = cut(&trace, model, seed);
            assert_eq!(bytes(&image, "buffered").unwrap(), [1; 10_000]);
            let direct = bytes(&image, "direct").unwrap();
            assert!(direct[..8192].iter().all(|&b| b == 0) && direct[8192..] == [2; 4096]);
            assert_eq!(bytes(&image, "dsync").unwrap(), [3; 4096]);
            assert_eq!(bytes(&image, "mapped").unwrap(), [5; 4096]);
            assert_eq!(bytes(&image, "renamed").unwrap(), b"whole");
            assert_eq!(bytes(&image, "new"), None);
            if let Some(line) = bytes(&image, "sync") {
                assert_eq!(line, b"line\n");
                seen_not_removed = true;
            }
            let holes = bytes(&image, "holes").unwrap();
            assert!(holes[..100] == [6; 100], "{model:?}");
            if holes.len() == 65536 {
                assert!(
                    holes[4096..8192].iter().all(|&b| b == 0) && holes[8192..16384] == [6; 8192]
                );
            }
        }
    }
    assert!(
        seen_not_removed,
        "a removal that was not synced can be undone"
    );
}

/// Asynchronous direct I/O of many requests at once: each block is checked by its checksum.
#[test]
fn asynchronous_direct_reads_and_writes_bring_what_was_written() {
    let Some(mounted) = Mounted::new() else {
        return;
    };
    let options = "--file-total-size=4M --file-num=2 --file-io-mode=async --file-extra-flags=direct --validate";
    for words in [
        "prepare",
        "--file-test-mode=rndrw --events=2000 --time=60 run",
    ] {
        let mut command = program();
        command
            .args(["sysbench", "fileio"])
            .args(options.split(' '))
            .args(words.split(' '));
        let output = command.current_dir(mounted.folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("FATAL"), "{said}");
    }
    let (entries, _) = mounted.volume.recorded();
    assert!(entries > 500, "{entries} events");
    // The kernel sees what the volume holds.
    let seen = read_tree(mounted.folder.path()).unwrap();
    let held = mounted.volume.image();
    for (name, _) in mounted.volume.names(ROOT).unwrap() {
        let name = name.to_str().unwrap();
        assert!(bytes(&seen, name) == bytes(&held, name), "{name}");
    }
    mounted.end();
}

/// A process that is killed leaves a mount that nothing answers; the folder is free again after `detach`.
#[test]
fn the_mount_of_a_killed_process_is_detached() {
    if let Err(why) = mount::check() {
        return skip_always(&why.to_string());
    }
    let folder = tempfile::tempdir().unwrap();
    // This program's own test that waits, so that there is a process to kill.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "suite::powercut::holds_a_mount_until_it_is_killed",
            "--exact",
            "--nocapture",
        ])
        .args(["--test-threads", "1"])
        .env("DBDUEL_TEST_MOUNT", folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_mounted(folder.path()) {
        assert!(std::time::Instant::now() < deadline, "it never mounted");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        fs::read_dir(folder.path()).is_err(),
        "the mount answers without its process"
    );
    assert!(mount::detach(folder.path()).unwrap());
    assert!(!is_mounted(folder.path()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(!mount::detach(folder.path()).unwrap());
}

#[test(helper)]
fn holds_a_mount_until_it_is_killed() {
    let Some(folder) = std::env::var_os("DBDUEL_TEST_MOUNT") else {
        return;
    };
    let volume = Arc::new(Volume::new(Image::empty(0, 0)));
    let _mount = Mount::new(volume, Path::new(&folder)).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(120));
}
