//! Lists, installs and removes server builds.
//!
//! Returns data; the caller prints.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::build::{Build, Origin};
use super::catalogue::{CATALOGUE, Known};
use super::copy::{TreeSize, tree_size};
use super::digest;
use super::home::{Home, clear_unfinished, unfinished};
use super::libraries;
use super::name::{Meaning, ServerName};
use super::orphans;
use super::progress::{Progress, Silent};
use super::sandbox::pristine;
use super::sources::{Artifact, FetchContext, Source, path_here};
use super::tree;

/// A server in the lab's home.
#[derive(Debug)]
pub struct Installed {
    /// Name of its folder.
    pub id: String,
    /// Its build; `None` when its `build.json` is missing or unreadable.
    pub build: Option<Build>,
    /// Size on disk.
    pub size: TreeSize,
}

/// A server of the catalogue, and whether it is installed.
#[derive(Debug)]
pub struct Listed {
    /// The entry.
    pub known: &'static Known,
    /// True when it need not be fetched.
    pub installed: bool,
}

/// The whole catalogue.
pub fn known(home: &Home) -> Vec<Listed> {
    CATALOGUE
        .iter()
        .map(|known| Listed {
            known,
            installed: is_in(home, known.id),
        })
        .collect()
}

/// True when a server is in the lab's home and need not be fetched.
pub fn is_installed(name: &ServerName, home: &Home) -> bool {
    is_in(home, &name.id())
}

fn is_in(home: &Home, id: &str) -> bool {
    matches!(kept(&home.servers().join(id)), Ok(Some(_)))
}

/// The build in a server's folder, if its daemon exists.
fn kept(folder: &Path) -> Result<Option<Build>> {
    Ok(Build::load(folder)?.filter(|build| build.daemon.is_file()))
}

/// The folder with all files of a server, fetched if need be, and its artifacts.
///
/// # Errors
/// The server runs already or is not fetched by the lab, or parts of it are outside of the folder that the user named.
pub fn whole_tree(
    name: &ServerName,
    home: &Home,
    progress: &dyn Progress,
) -> Result<(PathBuf, Vec<Artifact>)> {
    match &name.meaning {
        Meaning::Provided {
            source, locator, ..
        } if source.is_in_place => {
            let tree = Path::new(locator).canonicalize();
            let tree = tree.with_context(|| format!("there is no server at `{locator}`"))?;
            let parts = tree::find(&tree, tree.is_file().then_some(&*tree))?;
            for part in parts.all() {
                if !part.canonicalize()?.starts_with(&tree) {
                    bail!(
                        "`{}` is outside of `{name}`; name a folder that contains all files of the server and no others",
                        part.display()
                    );
                }
            }
            Ok((tree, Vec::new()))
        }
        Meaning::Provided { .. } | Meaning::InProcess | Meaning::Running(_) => {
            let build = install(name, home, progress)?;
            Ok((home.servers().join(name.id()), build.artifacts))
        }
    }
}

/// Refuses a missing file or folder of this machine as a server. One that was unpacked into the home before is
/// accepted.
///
/// # Errors
/// Names the missing path.
pub fn require_path(name: &ServerName, home: &Home) -> Result<()> {
    let Meaning::Provided {
        source, locator, ..
    } = &name.meaning
    else {
        return Ok(());
    };
    let is_kept = !source.is_in_place && is_installed(name, home);
    match path_here(source.scheme, locator) {
        Some(path) if !path.exists() && !is_kept => {
            bail!(
                "there is no server at `{}`; put one there, or correct the path",
                path.display()
            )
        }
        _ => Ok(()),
    }
}

/// Every server that is in the lab's home, by name.
///
/// # Errors
/// The folder cannot be read.
pub fn installed(home: &Home) -> Result<Vec<Installed>> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(home.servers()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("could not read `{}`", home.servers().display()));
        }
    };
    for entry in entries.filter_map(Result::ok) {
        let id = entry.file_name().to_string_lossy().into_owned();
        if id.starts_with('.') || !entry.path().is_dir() {
            continue;
        }
        let build = Build::load(&entry.path()).ok().flatten();
        found.push(Installed {
            id,
            build,
            size: tree_size(&entry.path())?,
        });
    }
    found.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(found)
}

/// The build of a server that needs no download: it is in the home, or on this machine. `None` for any other. Nothing is
/// written or fetched.
pub fn at_hand(name: &ServerName, home: &Home) -> Option<Build> {
    let Meaning::Provided {
        source, locator, ..
    } = &name.meaning
    else {
        return None;
    };
    let folder = home.servers().join(name.id());
    if source.is_in_place
        && let Ok(build) = examined_in_place(name, source, locator, home)
    {
        return Some(build);
    }
    let kept = Build::load(&folder).ok().flatten()?;
    // Where it is used in place, it may need the libraries that its installation fetched, or be another program by now.
    let is_same = |kept: &Build| {
        let now = digest::of_file(&kept.daemon);
        now.is_ok_and(|now| now == kept.daemon_digests)
    };
    (!source.is_in_place || is_same(&kept)).then_some(kept)
}

/// The build of a server that is used in place, if it runs with the libraries of this machine.
fn examined_in_place(
    name: &ServerName,
    source: &Source,
    locator: &str,
    home: &Home,
) -> Result<Build> {
    // Of a source in place, nothing is put into the folder.
    let fetched = (source.fetch)(
        locator,
        &FetchContext {
            home,
            staging: &home.servers(),
            expected_bytes: None,
            progress: &Silent,
        },
    )?;
    let parts = tree::find(&fetched.tree, fetched.daemon.as_deref())?;
    Build::examine(origin(name, source, locator, fetched.artifacts), parts)
}

fn origin(name: &ServerName, source: &Source, locator: &str, artifacts: Vec<Artifact>) -> Origin {
    Origin {
        id: name.id(),
        source: source.scheme.to_owned(),
        locator: locator.to_owned(),
        artifacts,
    }
}

/// Installs a server unless it is installed already.
///
/// # Errors
/// The name means a running server, or something could not be fetched, unpacked or recognised; the text says which.
pub fn install(name: &ServerName, home: &Home, progress: &dyn Progress) -> Result<Build> {
    let (source, locator, known) = match &name.meaning {
        Meaning::Provided {
            source,
            locator,
            known,
        } => (source, locator, known),
        Meaning::InProcess => bail!("`{name}` is built into dbduel; there is nothing to install"),
        Meaning::Running(_) => bail!("`{name}` is a running server; there is nothing to install"),
    };
    let folder = home.servers().join(name.id());
    if !source.is_in_place
        && let Some(build) = kept(&folder)?
    {
        return Ok(build);
    }
    fs::create_dir_all(home.servers())
        .with_context(|| format!("could not create `{}`", home.servers().display()))?;
    let staging = Staging::new(home, &name.id())?;
    let build = bring(name, source, locator, *known, home, &staging.path, progress)
        .with_context(|| format!("could not get the server `{name}`"))?;
    progress.stage(&format!("{name} is version {}", build.version));
    staging.become_folder(&folder)?;
    match Build::load(&folder)? {
        Some(build) => Ok(build),
        None => bail!("`{}` disappeared during its installation", folder.display()),
    }
}

fn bring(
    name: &ServerName,
    source: &Source,
    locator: &str,
    known: Option<&Known>,
    home: &Home,
    staging: &Path,
    progress: &dyn Progress,
) -> Result<Build> {
    let expected_bytes = known.and_then(|known| known.download_mb);
    let expected_bytes = expected_bytes.map(|megabytes| u64::from(megabytes) << 20);
    let fetched = (source.fetch)(
        locator,
        &FetchContext {
            home,
            staging,
            expected_bytes,
            progress,
        },
    )?;
    let mut artifacts = fetched.artifacts;
    if let (Some(known), Some(artifact)) = (known, artifacts.first())
        && !known.sha256.is_empty()
        && known.sha256 != artifact.digests.sha256
    {
        bail!(
            "`{}` is not the file in the catalogue: its SHA-256 is {}, expected {}",
            artifact.name,
            artifact.digests.sha256,
            known.sha256
        );
    }
    let mut parts = tree::find(&fetched.tree, fetched.daemon.as_deref())?;
    if !source.is_in_place {
        make_executable(&parts.daemon, staging)?;
    }
    artifacts.extend(libraries::complete(&mut parts, home, staging, progress)?);
    let build = Build::examine(origin(name, source, locator, artifacts), parts)?;
    if let Some(known) = known
        && (known.product != build.product || !known.promises(build.version))
    {
        bail!(
            "expected `{}`, but received {} {}; to use it anyway, name the source itself: `{}:{}`",
            known.id,
            build.product,
            build.version,
            known.source,
            known.locator
        );
    }
    build.save(staging)?;
    for leftover in fetched.leftovers {
        // They only take room; the server is complete without them.
        let _ = if leftover.is_dir() {
            fs::remove_dir_all(&leftover)
        } else {
            fs::remove_file(&leftover)
        };
    }
    Ok(build)
}

/// Makes the daemon executable: archives made on other systems lose that permission.
fn make_executable(daemon: &Path, tree: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let inside = |path: PathBuf| Ok(path.starts_with(tree.canonicalize()?));
    if !daemon.canonicalize().and_then(inside)? {
        bail!(
            "`{}` is a link to a program outside of the fetched files",
            daemon.display()
        );
    }
    fs::set_permissions(daemon, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("could not make `{}` executable", daemon.display()))
}

/// Removes a server from the lab's home, with its pristine data directories. Sandboxes, snapshots and records stay.
///
/// # Errors
/// There is no such server, one of its processes runs, a running contest will start it, or the folder cannot be
/// removed.
pub fn remove(id: &str, home: &Home) -> Result<Installed> {
    let found = installed(home)?.into_iter().find(|server| server.id == id);
    let Some(server) = found else {
        bail!(
            "no server `{id}` is installed in `{}`",
            home.servers().display()
        );
    };
    let folder = home.servers().join(id);
    if let Some(process) = orphans::process_using(&folder).or_else(|| orphans::run_with(home, id)) {
        bail!(
            "`{id}` is in use by the process {}; end that run first",
            process.pid
        );
    }
    // Renamed first, so that an interrupted removal leaves nothing that looks like a server.
    let doomed = unfinished(&home.servers(), id);
    fs::rename(&folder, &doomed)
        .and_then(|()| fs::remove_dir_all(&doomed))
        .with_context(|| format!("could not remove `{}`", folder.display()))?;
    pristine::remove_of(home, id)
        .with_context(|| format!("could not remove the pristine data directories of `{id}`"))?;
    Ok(server)
}

/// A temporary folder that becomes the server's once complete and is removed otherwise.
struct Staging {
    path: PathBuf,
}

impl Staging {
    fn new(home: &Home, id: &str) -> Result<Self> {
        clear_unfinished(&home.servers());
        let path = unfinished(&home.servers(), id);
        if path.exists() {
            fs::remove_dir_all(&path)
                .with_context(|| format!("could not clear `{}`", path.display()))?;
        }
        fs::create_dir_all(&path)
            .with_context(|| format!("could not create `{}`", path.display()))?;
        Ok(Staging { path })
    }

    fn become_folder(self, folder: &Path) -> Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("could not replace `{}`", folder.display()))?;
        }
        fs::rename(&self.path, folder)
            .with_context(|| format!("could not create `{}`", folder.display()))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Gone already when it became the server's folder.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use dbduel_test_attribute::needs_program;

    use super::super::machine::examples::ours;
    use super::super::progress::Silent;
    use super::*;

    #[test]
    #[needs_program("postgres")]
    fn a_server_that_is_used_in_place_is_examined_without_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("home"));
        let name = ServerName::parse("installed:postgres").unwrap();
        let build = at_hand(&name, &home).unwrap();
        assert!(build.version_text.contains("PostgreSQL"), "{build:?}");
        assert!(!dir.path().join("home").exists());
        let path = format!("path:{}", build.daemon.display());
        let same = at_hand(&ServerName::parse(&path).unwrap(), &home).unwrap();
        assert_eq!(same.version, build.version);
        let absent = format!("path:{}/absent", dir.path().display());
        let absent = ServerName::parse(&absent).unwrap();
        assert!(at_hand(&absent, &home).is_none());
        assert!(!dir.path().join("home").exists());
        // As an installation keeps it.
        let installed = install(&name, &home, &Silent).unwrap();
        assert_eq!(at_hand(&name, &home).unwrap().version, installed.version);
    }

    #[test]
    fn an_empty_home_has_nothing_installed_and_nothing_to_remove() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        assert!(installed(&home).unwrap().is_empty());
        assert!(known(&home).iter().all(|listed| !listed.installed));
        assert!(
            remove("mysql-8.0.33", &home)
                .unwrap_err()
                .to_string()
                .contains("is installed in")
        );
        assert!(remove("../sandboxes", &home).is_err());
    }

    #[test]
    fn a_removed_server_takes_its_pristine_data_along_and_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        let own = home.pristine().join("mariadb-10.11-0123456789ab");
        let other = home.pristine().join("mariadb-10.11.5-0123456789ab");
        for folder in [&home.servers().join("mariadb-10.11"), &own, &other] {
            fs::create_dir_all(folder).unwrap();
        }
        remove("mariadb-10.11", &home).unwrap();
        assert!(!own.exists() && other.exists());
        assert!(installed(&home).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_brought_leaves_no_folder() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("home"));
        let empty = dir.path().join("empty");
        fs::create_dir(&empty).unwrap();
        let name = ServerName::parse(&format!("path:{}", empty.display())).unwrap();
        let error = format!("{:#}", install(&name, &home, &Silent).unwrap_err());
        assert!(
            error.contains("could not get the server") && error.contains("there is no `mariadbd`"),
            "{error}"
        );
        assert_eq!(fs::read_dir(home.servers()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_is_whole_when_it_has_all_parts_of_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path().join("home"));
        for (file, bytes) in [
            ("bin/mysqld", ours()),
            ("share/charsets/Index.xml", Vec::new()),
        ] {
            let path = dir.path().join("server").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let whole = |part: &str| {
            let path = dir.path().join("server").join(part);
            let name = ServerName::parse(&format!("path:{}", path.display())).unwrap();
            whole_tree(&name, &home, &Silent)
        };
        let (tree, artifacts) = whole("").unwrap();
        assert!(tree.ends_with("server") && artifacts.is_empty());
        for part in ["bin", "bin/mysqld"] {
            let error = whole(part).unwrap_err().to_string();
            assert!(error.contains("is outside of `path:"), "{error}");
        }
        assert!(whole("none").is_err());
    }

    #[test]
    fn a_running_server_is_not_installed() {
        let name = ServerName::parse("tcp://db1").unwrap();
        let error = install(&name, &Home::new("/nonexistent"), &Silent)
            .unwrap_err()
            .to_string();
        assert!(error.contains("is a running server"), "{error}");
    }
}
