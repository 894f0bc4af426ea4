//! Applies a layer of an image to the tree of the lower ones, by the rules of the OCI image specification: whiteouts
//! remove entries of lower layers, all other entries replace those with the same name.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dbduel_machine::interrupt;
use dbduel_record::foreign;
use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::super::super::command::Tool;
use super::super::super::confined::{Entry, Root};
use super::super::super::progress::{Progress, ProgressUnit};
use super::super::super::tar_extensions::BoundedExtensions;

/// Name prefix of a whiteout.
const WHITEOUT: &[u8] = b".wh.";
/// The name that removes all entries of lower layers in its folder.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Limit far above images of servers, whose trees have some gigabytes and thousands of files.
const BYTES_MAX: u64 = 64 << 30;
const ENTRIES_MAX: u64 = 4_000_000;
/// Bytes between progress reports.
const REPORTED_BYTES: u64 = 8 << 20;
const DEADLINE: Duration = Duration::from_secs(1800);
/// Padding of a block, and the two empty blocks that end an archive.
const END_BYTES: u64 = 3 * 512;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Applies the layer in the file `blob` to the tree `into`. Owners, set-user-id bits, devices, pipes and extended
/// attributes are left out: the tree belongs to the lab's user.
///
/// # Errors
/// The layer cannot be read, is no archive, leads out of the tree, or is larger than any server's image.
pub fn apply(blob: &Path, into: &Path, progress: &dyn Progress) -> Result<()> {
    let root = Root::open(into).with_context(|| format!("could not open `{}`", into.display()))?;
    let plain = unzstd(blob, into)?;
    let layer = plain.as_ref().map_or(blob, |plain| plain.0.as_path());
    // Whiteouts are about lower layers only, wherever they stand in this one.
    each(layer, |entry| {
        let path = entry.path()?.into_owned();
        let name = path.file_name().unwrap_or_default().as_bytes();
        if !name.starts_with(WHITEOUT) {
            return Ok(());
        }
        let Some(place) = root.existing(&path)? else {
            return Ok(());
        };
        if name == OPAQUE {
            return place.empty_folder();
        }
        let hidden = path.with_file_name(OsStr::from_bytes(&name[WHITEOUT.len()..]));
        match root.existing(&hidden)? {
            Some(place) => place.remove(),
            None => Ok(()),
        }
    })?;
    let mut written = Written {
        progress,
        bytes: 0,
        reported: 0,
    };
    each(layer, |entry| {
        let path = entry.path()?.into_owned();
        let name = path.file_name().unwrap_or_default().as_bytes();
        if name.starts_with(WHITEOUT) {
            return Ok(());
        }
        match root.entry(&path)? {
            Some(place) => add(&root, &place, entry, &mut written),
            None => Ok(()),
        }
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))
    })
}

struct Written<'a> {
    progress: &'a dyn Progress,
    bytes: u64,
    reported: u64,
}

impl Written<'_> {
    fn add(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes += bytes;
        if self.bytes - self.reported > REPORTED_BYTES {
            self.reported = self.bytes;
            self.progress.advance(self.bytes, None, ProgressUnit::Bytes);
        }
        if self.bytes > BYTES_MAX {
            return Err(io::Error::other(format!(
                "the layer exceeds {} GiB, too large for a server",
                BYTES_MAX >> 30
            )));
        }
        Ok(())
    }
}

fn add<R: Read>(
    root: &Root,
    place: &Entry,
    entry: &mut tar::Entry<'_, R>,
    written: &mut Written<'_>,
) -> io::Result<()> {
    let mode = entry.header().mode()?;
    match entry.header().entry_type() {
        EntryType::Directory => place.make_folder(mode),
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            written.add(entry.size())?;
            let mut file = place.make_file(mode)?;
            io::copy(entry, &mut file).map(|_| ())
        }
        EntryType::Symlink => {
            let target = link_name(entry)?;
            place.make_link(&root.target(place, &target)?)
        }
        EntryType::Link => {
            let target = link_name(entry)?;
            match root.existing(&target)? {
                Some(original) => place.make_hard_link(&original),
                None => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "a hard link to `{}`, which does not exist",
                        target.display()
                    ),
                )),
            }
        }
        _ => Ok(()),
    }
}

fn link_name<R: Read>(entry: &tar::Entry<'_, R>) -> io::Result<PathBuf> {
    let target = entry.link_name()?;
    target
        .map(std::borrow::Cow::into_owned)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a link without a target"))
}

/// Calls `act` with every entry of a layer that is compressed with gzip or uncompressed.
fn each(
    layer: &Path,
    mut act: impl FnMut(&mut tar::Entry<'_, BoundedExtensions<Box<dyn Read>>>) -> io::Result<()>,
) -> Result<()> {
    let mut file = BufReader::with_capacity(1 << 18, foreign::open(layer)?);
    let is_gzip = begins_with(&mut file, GZIP)?;
    let reader: Box<dyn Read> = match is_gzip {
        true => Box::new(MultiGzDecoder::new(file)),
        false => Box::new(file),
    };
    // Some tools (`umoci insert`) leave out the end of the archive and of its last block, as Docker's own reader allows. That
    // nothing else is missing, the digest of the layer shows.
    let end = io::repeat(0).take(END_BYTES);
    let reader: Box<dyn Read> = Box::new(reader.chain(end));
    let mut archive = Archive::new(BoundedExtensions::new(reader));
    for (number, entry) in (0u64..).zip(archive.entries()?) {
        interrupt::check()?;
        if number > ENTRIES_MAX {
            bail!("it has more than {ENTRIES_MAX} entries, too many for a server");
        }
        act(&mut entry?)?;
    }
    Ok(())
}

fn begins_with(file: &mut (impl Read + io::Seek), magic: &[u8]) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.by_ref()
        .take(magic.len() as u64)
        .read_to_end(&mut begin)?;
    file.rewind()?;
    Ok(begin == magic)
}

/// A temporary file, removed on drop.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // Below a staging folder, which vanishes with all that it holds.
        let _ = fs::remove_file(&self.0);
    }
}

/// A zstd-compressed layer, decompressed beside the tree; `None` for any other.
fn unzstd(blob: &Path, tree: &Path) -> Result<Option<Scratch>> {
    let open = foreign::open(blob).and_then(|mut file| begins_with(&mut file, ZSTD));
    if !open.with_context(|| format!("could not read `{}`", blob.display()))? {
        return Ok(None);
    }
    let plain = Scratch(tree.with_extension("layer"));
    Tool::new(
        "zstd",
        "install the package `zstd`, this layer is compressed with it",
    )
    .with(|command| {
        command
            .args(["-d", "-q", "-f", "-o"])
            .arg(&plain.0)
            .arg("--")
            .arg(blob);
    })
    .run_ok(DEADLINE)?;
    Ok(Some(plain))
}

#[cfg(test)]
mod tests {
    use super::super::super::super::progress::Silent;
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use tar::{Builder, Header};

    /// One entry of a layer: type, path, and content or target.
    type Made<'a> = (EntryType, &'a str, &'a str);

    const FILE: EntryType = EntryType::Regular;
    const DIR: EntryType = EntryType::Directory;
    const LINK: EntryType = EntryType::Symlink;
    const HARD: EntryType = EntryType::Link;

    /// The bytes of a layer, with paths as written: the library refuses `..` itself.
    fn layer(entries: &[Made<'_>]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (kind, path, text) in entries {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o4755);
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            let content: &[u8] = match *kind {
                LINK | HARD => {
                    header.as_mut_bytes()[157..157 + text.len()].copy_from_slice(text.as_bytes());
                    b""
                }
                _ => text.as_bytes(),
            };
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("root")).unwrap();
            Tree(dir)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join("root").join(path)
        }

        fn apply(&self, entries: &[Made<'_>]) -> Result<()> {
            self.apply_bytes(&layer(entries))
        }

        fn apply_bytes(&self, bytes: &[u8]) -> Result<()> {
            let blob = self.0.path().join("blob");
            fs::write(&blob, bytes).unwrap();
            apply(&blob, &self.at(""), &Silent)
        }
    }

    #[test]
    fn whiteouts_remove_what_is_below_and_nothing_of_their_own_layer() {
        let tree = Tree::new();
        tree.apply(&[
            (DIR, "etc/", ""),
            (FILE, "etc/old", "1"),
            (FILE, "etc/kept", "1"),
            (FILE, "opt/a/b/c", "1"),
        ])
        .unwrap();
        tree.apply(&[
            (FILE, "opt/a/new", "2"),
            (FILE, "etc/.wh.old", ""),
            (FILE, "opt/a/.wh..wh..opq", ""),
            (FILE, "missing/.wh.x", ""),
            (FILE, ".wh.nothing", ""),
        ])
        .unwrap();
        assert!(!tree.at("etc/old").exists() && tree.at("etc/kept").exists());
        assert!(!tree.at("opt/a/b").exists() && tree.at("opt/a/new").exists());
        assert!(!tree.at("missing").exists() && !tree.at("etc/.wh.old").exists());
    }

    #[test]
    fn links_files_and_modes_are_those_of_the_layer_without_set_user_id() {
        let tree = Tree::new();
        tree.apply(&[
            (FILE, "usr/lib/libx.so.1", "x"),
            (LINK, "lib", "/usr/lib"),
            (FILE, "lib/liby.so", "y"),
            (HARD, "usr/bin/two", "/usr/lib/libx.so.1"),
            (EntryType::Char, "dev/null", ""),
            (EntryType::Fifo, "run/pipe", ""),
        ])
        .unwrap();
        assert_eq!(fs::read_to_string(tree.at("usr/lib/liby.so")).unwrap(), "y");
        assert_eq!(fs::read_link(tree.at("lib")).unwrap(), Path::new("usr/lib"));
        let two = fs::metadata(tree.at("usr/bin/two")).unwrap();
        assert_eq!((two.nlink(), two.permissions().mode() & 0o7777), (2, 0o755));
        assert!(!tree.at("dev/null").exists() && !tree.at("run/pipe").exists());
        // A file of the same name takes the place and leaves the other name alone.
        tree.apply(&[(FILE, "usr/bin/two", "new"), (FILE, "lib/liby.so/z", "z")])
            .unwrap_err();
        assert_eq!(
            fs::read_to_string(tree.at("usr/lib/libx.so.1")).unwrap(),
            "x"
        );
        assert_eq!(fs::read_to_string(tree.at("usr/bin/two")).unwrap(), "new");
    }

    #[test]
    fn a_hostile_layer_writes_nothing_outside() {
        let outside = tempfile::tempdir().unwrap();
        let out = outside.path().to_str().unwrap();
        let victim = outside.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        let victim = victim.to_str().unwrap();
        let dots = format!("../../../../../../../../..{out}/x");
        let through = |link: &str| format!("{link}/x");
        let attacks: &[&[Made<'_>]] = &[
            &[(FILE, &dots, "evil")],
            &[(FILE, "a/../../x", "evil")],
            &[(LINK, "link", out), (FILE, &through("link"), "evil")],
            &[(LINK, "link", victim), (FILE, "link", "evil")],
            &[(LINK, "link", "../.."), (FILE, &through("link"), "evil")],
            &[
                (LINK, "link", "/proc/self/cwd"),
                (FILE, &through("link"), "evil"),
            ],
            &[(HARD, "hard", victim), (FILE, "hard", "evil")],
            &[(HARD, "hard", "../../../../../../etc/hostname")],
            &[
                (LINK, "link", out),
                (DIR, "link/", ""),
                (FILE, &through("link"), "evil"),
            ],
            &[
                (LINK, "link", out),
                (FILE, "link/.wh.victim", ""),
                (FILE, "link/.wh..wh..opq", ""),
            ],
            &[
                (DIR, "d", ""),
                (LINK, "d/up", ".."),
                (LINK, "e", "d/up/../.."),
                (FILE, "e/x", "evil"),
            ],
        ];
        for attack in attacks {
            let tree = Tree::new();
            // Refused, or done within the tree.
            let _ = tree.apply(attack);
            let _ = tree.apply(attack);
            assert_eq!(fs::read_to_string(victim).unwrap(), "mine", "{attack:?}");
            assert_eq!(
                fs::read_dir(outside.path()).unwrap().count(),
                1,
                "{attack:?}"
            );
            let beside: Vec<_> = fs::read_dir(tree.0.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            assert_eq!(beside.len(), 2, "{attack:?} left {beside:?}");
            assert!(!Path::new("/x").exists(), "{attack:?}");
        }
    }

    #[test]
    fn gzip_and_zstd_are_undone_and_damage_is_an_error() {
        use std::io::Write as _;
        let bytes = layer(&[(FILE, "etc/x", "text")]);
        let tree = Tree::new();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&bytes).unwrap();
        let gzip = gzip.finish().unwrap();
        tree.apply_bytes(&gzip).unwrap();
        assert_eq!(fs::read_to_string(tree.at("etc/x")).unwrap(), "text");
        assert!(tree.apply_bytes(&gzip[..gzip.len() / 2]).is_err());
        // Without the rest of the block of the only file, as `umoci insert` leaves it.
        let cut = Tree::new();
        cut.apply_bytes(&bytes[..512 + "text".len()]).unwrap();
        assert_eq!(fs::read_to_string(cut.at("etc/x")).unwrap(), "text");
        assert!(tree.apply_bytes(b"no archive at all").is_err());
        let zstd = Tool::new("zstd", "").with(|command| {
            command.args(["-q", "-f"]).arg(tree.0.path().join("plain"));
        });
        fs::write(tree.0.path().join("plain"), &bytes).unwrap();
        if zstd.run_ok(DEADLINE).is_ok() {
            let other = Tree::new();
            other
                .apply_bytes(&fs::read(tree.0.path().join("plain.zst")).unwrap())
                .unwrap();
            assert!(other.at("etc/x").is_file());
        }
    }
}
