//! The lab's home: where it keeps what it fetched, built and runs.
//!
//! Names folders and creates them; other modules own their content.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dbduel_record::files::{FileSystem, LocalFiles, create_dir_all};
use dbduel_record::whole::write_whole_on;

use super::process::ProcessIdentity;

/// Name prefix of unfinished folders.
const UNFINISHED: &str = ".new-";

/// The lab's private folder, with everything that it fetches, unpacks or starts.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
    files: Arc<dyn FileSystem>,
}

impl Home {
    /// The home at `root`. Nothing is created yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Home {
            root: root.into(),
            files: Arc::new(LocalFiles),
        }
    }

    /// The home at `root` on another file system than the machine's.
    pub fn on(files: Arc<dyn FileSystem>, root: impl Into<PathBuf>) -> Self {
        Home {
            root: root.into(),
            files,
        }
    }

    /// The same home without symbolic links in its path.
    ///
    /// # Errors
    /// The folder does not exist.
    pub fn canonical(&self) -> io::Result<Self> {
        Ok(Home {
            root: self.root.canonicalize()?,
            files: Arc::clone(&self.files),
        })
    }

    /// File system for changes of sandboxes.
    pub fn files(&self) -> &Arc<dyn FileSystem> {
        &self.files
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Fetched files that are not unpacked yet.
    pub fn downloads(&self) -> PathBuf {
        self.root.join("downloads")
    }

    /// One unpacked server per folder.
    pub fn servers(&self) -> PathBuf {
        self.root.join("servers")
    }

    /// One folder per run, with one sandbox per contender.
    pub fn sandboxes(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    /// Initialised, unused data directories, which are copied into sandboxes.
    pub fn pristine(&self) -> PathBuf {
        self.root.join("pristine")
    }

    /// Private package lists, one folder per suite.
    pub fn apt(&self) -> PathBuf {
        self.root.join("apt")
    }
}

/// Creates a folder that only its owner may enter, and its parents.
///
/// # Errors
/// The folder cannot be created; the text names it.
pub fn create_private_dir(files: &dyn FileSystem, path: &Path) -> io::Result<()> {
    create_dir_all(files, path, 0o700).map_err(|error| {
        let why = obstacle(path, error);
        io::Error::new(
            why.kind(),
            format!("could not create `{}`: {why}", path.display()),
        )
    })
}

/// Creates a folder and its parents.
///
/// # Errors
/// The folder cannot be created; the text says what is in its place.
pub fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| obstacle(path, error))
}

/// The error of creating a folder, with what is in its place: of a link that leads nowhere the system only says that the
/// file exists.
fn obstacle(path: &Path, error: io::Error) -> io::Error {
    let is_occupied = matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory
    );
    let mut places = path.ancestors().filter(|_| is_occupied);
    let Some(place) = places.find(|place| place.symlink_metadata().is_ok()) else {
        return error;
    };
    let why = match place.read_link() {
        Ok(target) => format!(
            "`{}` is a link to `{}`, which is not a folder; create that folder, or remove the link",
            place.display(),
            target.display()
        ),
        Err(_) => format!(
            "`{}` is not a folder; remove it, or name another place",
            place.display()
        ),
    };
    io::Error::new(error.kind(), why)
}

/// Writes a file as [`write_whole_on`] does.
///
/// # Errors
/// The file cannot be written, synced or renamed; the text names it.
pub fn write_whole(files: &dyn FileSystem, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    write_whole_on(files, path, bytes, mode).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("could not write `{}`: {error}", path.display()),
        )
    })
}

/// A temporary name beside a folder's final place, with the process ID of its writer.
pub fn unfinished(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!("{UNFINISHED}{name}-{}", std::process::id()))
}

/// Removes unfinished folders whose process is gone. A failed removal is retried next time.
pub fn clear_unfinished(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let pid = name
            .strip_prefix(UNFINISHED)
            .and_then(|name| name.rsplit_once('-')?.1.parse().ok());
        if pid.is_some_and(|pid| ProcessIdentity::of(pid).is_none()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_dead_processes_left_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let dead = dir
            .path()
            .join(format!("{UNFINISHED}mysql-8.0.33-{}", child.id()));
        let ours = unfinished(dir.path(), "mysql-8.0.33");
        let server = dir.path().join("mysql-8.0.33");
        for folder in [&dead, &ours, &server] {
            fs::create_dir(folder).unwrap();
        }
        clear_unfinished(dir.path());
        assert!(!dead.exists() && ours.exists() && server.exists());
    }

    #[test]
    fn what_is_in_the_place_of_a_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let [link, file] = ["link", "file"].map(|name| dir.path().join(name));
        std::os::unix::fs::symlink("/nonexistent/target", &link).unwrap();
        fs::write(&file, "").unwrap();
        let refused = |path: &Path| {
            let private = create_private_dir(&LocalFiles, path).unwrap_err();
            let own = create_folder(path).unwrap_err().to_string();
            assert!(private.to_string().contains(&own), "{private}");
            own
        };
        for path in [link.clone(), link.join("below")] {
            let said = refused(&path);
            assert!(
                said.contains("is a link to `/nonexistent/target`"),
                "{said}"
            );
        }
        for path in [file.clone(), file.join("below")] {
            let said = refused(&path);
            assert!(said.contains("file` is not a folder"), "{said}");
        }
        create_folder(&dir.path().join("new/one")).unwrap();
    }

    #[test]
    fn a_file_in_a_missing_folder_is_an_error_that_names_it() {
        let error = write_whole(
            &LocalFiles,
            Path::new("/nonexistent/folder/file"),
            b"x",
            0o600,
        )
        .unwrap_err();
        assert!(
            error.to_string().contains("/nonexistent/folder/file"),
            "{error}"
        );
    }
}
