//! A server build on this machine: its parts, its version, and the artifacts that it was made from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dbduel_record::files::LocalFiles;
use dbduel_text::Version;
use serde::{Deserialize, Serialize};

use super::command::Tool;
use super::digest::{self, Digests};
use super::home::write_whole;
use super::products::{self, ServerProduct};
use super::sources::Artifact;
use super::tree::Parts;
use super::user_namespace;

const VERSION_DEADLINE: Duration = Duration::from_secs(30);
const FILE_NAME: &str = "build.json";

/// A server that can be started.
///
/// Written as `build.json` into the server's folder and into the record. In the file, paths below the server's folder
/// are relative to it, so that the lab's home can be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Name of its folder: the catalogue's id, or one made of what the user wrote.
    pub id: String,
    /// Scheme of its source.
    pub source: String,
    /// Locator within the source.
    pub locator: String,
    /// Fetched artifacts; empty for a server that was on this machine before.
    pub artifacts: Vec<Artifact>,
    /// Name of the product.
    pub product: String,
    /// Its version, which distinguishes series.
    pub version: Version,
    /// The daemon's answer when asked for its version.
    pub version_text: String,
    /// The program of the server.
    pub daemon: PathBuf,
    /// Size and digests of the daemon.
    pub daemon_digests: Digests,
    /// The daemon's `basedir`.
    pub basedir: PathBuf,
    /// Folder of messages, character sets and system SQL.
    pub share: PathBuf,
    /// Folder of dynamic plugins, when there is one.
    pub plugins: Option<PathBuf>,
    /// Folders of shared libraries that are searched before the machine's own.
    pub library_path: Vec<PathBuf>,
    /// The dynamic loader where it is not the machine's own; the C library is then not the machine's either.
    pub loader: Option<PathBuf>,
}

/// Origin of a build.
pub struct Origin {
    /// Name of its folder.
    pub id: String,
    /// Scheme of the source.
    pub source: String,
    /// Locator within the source.
    pub locator: String,
    /// Fetched artifacts.
    pub artifacts: Vec<Artifact>,
}

impl Build {
    /// Runs the daemon to read its version, and assembles the build.
    ///
    /// # Errors
    /// The daemon does not run here, or its product is unknown to the lab.
    pub fn examine(origin: Origin, parts: Parts) -> Result<Self> {
        let Parts {
            machine: _,
            daemon,
            basedir,
            share,
            plugins,
            library_path,
            loader,
        } = parts;
        let Origin {
            id,
            source,
            locator,
            artifacts,
        } = origin;
        let daemon_digests = digest::of_file(&daemon)?;
        let mut build = Build {
            id,
            source,
            locator,
            artifacts,
            product: String::new(),
            version: Version::new(0, 0, 0),
            version_text: String::new(),
            daemon,
            daemon_digests,
            basedir,
            share,
            plugins,
            library_path,
            loader,
        };
        let said = build
            .tool()
            .with(|command| {
                command.args(products::layout(&build.daemon).version_arguments);
            })
            .run_ok(VERSION_DEADLINE)
            .context("the server program does not run on this machine")?;
        let said = said.stdout.trim();
        build.version_text = build.without_folder(said);
        let product = products::recognise(&build.version_text).with_context(|| {
            format!(
                "`{}` is not a known product: `{}`",
                build.daemon.display(),
                build.version_text
            )
        })?;
        build.version = product.version(said).with_context(|| {
            format!(
                "`{}` does not report its version; its answer was `{said}`",
                build.daemon.display()
            )
        })?;
        product.name().clone_into(&mut build.product);
        Ok(build)
    }

    /// The daemon's answer without its folder, which will be renamed.
    fn without_folder(&self, said: &str) -> String {
        let name = self.daemon.file_name().unwrap_or_default();
        match said.split_once("Ver ") {
            Some((_, version)) => format!("{}  Ver {}", name.to_string_lossy(), version.trim()),
            None => said.to_owned(),
        }
    }

    /// Reads the build of a server's folder. `None` when there is none.
    ///
    /// # Errors
    /// The file exists but has an unknown format: it was written by another version or by hand.
    pub fn load(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE_NAME);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("could not read `{}`", path.display()));
            }
        };
        let mut build: Build = serde_json::from_slice(&text).with_context(|| {
            format!(
                "could not parse `{}`; remove its folder to fetch the server again",
                path.display()
            )
        })?;
        // Joining an absolute path leaves it as it is; joining an empty one would add a slash.
        build.change_paths(|path| {
            if path.as_os_str().is_empty() {
                folder.to_path_buf()
            } else {
                folder.join(path)
            }
        });
        Ok(Some(build))
    }

    /// Writes the build into a server's folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let mut relative = self.clone();
        relative.change_paths(|path| {
            path.strip_prefix(folder)
                .map_or_else(|_| path.to_path_buf(), Path::to_path_buf)
        });
        let mut text = serde_json::to_vec_pretty(&relative)?;
        text.push(b'\n');
        write_whole(&LocalFiles, &folder.join(FILE_NAME), &text, 0o644)?;
        Ok(())
    }

    fn change_paths(&mut self, change: impl Fn(&Path) -> PathBuf) {
        let optional = self.plugins.iter_mut().chain(&mut self.loader);
        let always = [&mut self.daemon, &mut self.basedir, &mut self.share];
        for path in always
            .into_iter()
            .chain(optional)
            .chain(&mut self.library_path)
        {
            *path = change(path);
        }
    }

    /// The implementation of its product.
    ///
    /// # Errors
    /// The build was written by a version of the lab that supported more products.
    pub fn product(&self) -> Result<&'static dyn ServerProduct> {
        match products::by_name(&self.product) {
            Some(product) => Ok(product),
            None => bail!(
                "this version of dbduel does not know the product `{}`",
                self.product
            ),
        }
    }

    /// A command that runs the daemon, without arguments, in the same environment for every server: preloaded
    /// libraries, locale and client settings of the user's shell must not make a difference. A daemon that refuses to
    /// run as root runs without root's rights.
    pub fn command(&self) -> Command {
        let Some(loader) = &self.loader else {
            return self.command_of(&self.daemon);
        };
        let mut command = self.command_of(loader);
        command
            .arg("--library-path")
            .arg(std::env::join_paths(&self.library_path).unwrap_or_default())
            .arg(&self.daemon);
        command
    }

    /// A command that runs another program of the tree, or a script in its place, as the daemon is run.
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear();
        for name in ["PATH", "TZ"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if self.loader.is_none()
            && !self.library_path.is_empty()
            && let Ok(library_path) = std::env::join_paths(&self.library_path)
        {
            command.env("LD_LIBRARY_PATH", library_path);
        }
        if products::by_name(&self.product).is_some_and(ServerProduct::refuses_root) {
            user_namespace::drop_root(&mut command);
        }
        command
    }

    /// The daemon as a program that runs to completion.
    pub fn tool(&self) -> Tool<'static> {
        let name = self
            .daemon
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Tool::of(self.command(), &name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(folder: &Path) -> Build {
        Build {
            id: "mysql-9.7".to_owned(),
            source: "apt".to_owned(),
            locator: "sid/mysql-server-core".to_owned(),
            artifacts: Vec::new(),
            product: "mysql".to_owned(),
            version: Version::new(9, 7, 4),
            version_text: "mysqld  Ver 9.7.4-2 for Linux".to_owned(),
            daemon: folder.join("usr/sbin/mysqld"),
            daemon_digests: Digests {
                bytes: 1,
                sha256: String::new(),
                blake3: String::new(),
            },
            basedir: folder.join("usr"),
            share: folder.join("usr/share/mysql"),
            plugins: None,
            library_path: vec![folder.join("usr/lib"), PathBuf::from("/opt/lib")],
            loader: Some(folder.join("usr/lib64/ld.so")),
        }
    }

    #[test]
    fn a_build_moves_with_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::create_dir(&old).unwrap();
        build(&old).save(&old).unwrap();
        fs::rename(&old, &new).unwrap();
        assert_eq!(Build::load(&new).unwrap(), Some(build(&new)));
    }

    #[test]
    fn a_base_that_is_the_folder_itself_stays_without_a_slash() {
        let dir = tempfile::tempdir().unwrap();
        let flat = Build {
            basedir: dir.path().to_path_buf(),
            ..build(dir.path())
        };
        flat.save(dir.path()).unwrap();
        let loaded = Build::load(dir.path()).unwrap().unwrap();
        assert_eq!(loaded.basedir.as_os_str(), dir.path().as_os_str());
    }

    #[test]
    fn no_file_is_no_build_and_a_strange_file_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Build::load(dir.path()).unwrap(), None);
        fs::write(dir.path().join(FILE_NAME), "{\"id\": \"x\"}").unwrap();
        assert!(
            Build::load(dir.path())
                .unwrap_err()
                .to_string()
                .contains("remove its folder")
        );
    }

    #[test]
    fn a_server_with_its_own_loader_gets_its_libraries_from_the_loader() {
        let build = build(Path::new("/x"));
        let command = build.command();
        assert_eq!(command.get_program(), "/x/usr/lib64/ld.so");
        let arguments: Vec<_> = command
            .get_args()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            arguments,
            [
                "--library-path",
                "/x/usr/lib:/opt/lib",
                "/x/usr/sbin/mysqld"
            ]
        );
        assert!(
            command
                .get_envs()
                .all(|(name, _)| name != "LD_LIBRARY_PATH")
        );
    }
}
