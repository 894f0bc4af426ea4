//! A contender without a server: a SQLite file in a private folder, opened by the processes that use it.
//!
//! The folder lies among the sandboxes and has an owner file like them, so leftovers of a killed dbduel are found in
//! the same way.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use dbduel_driver::address::Address;
use dbduel_driver::cancel::Cancel;
use dbduel_driver::database::create_file;
use dbduel_driver::{ConnectOptions, Connection, Credentials, Dialect, Settings, sqlite_version};
use dbduel_record::files::{Change, FileSystem};

use super::home::{Home, create_private_dir};
use super::orphans;
use super::sandbox::{Claim, Owner, data_of};

/// The name of SQLite in `server = "…"` and in the home.
pub const SQLITE: &str = "sqlite";

/// The file's name in its folder, in which SQLite keeps its journals too.
const FILE_NAME: &str = "dbduel.sqlite";

/// Names of SQLite's results for a file whose content is not that of a database.
const MALFORMED: [&str; 2] = ["SQLITE_CORRUPT", "SQLITE_NOTADB"];

/// The file of a contender.
pub struct DatabaseFile {
    files: Arc<dyn FileSystem>,
    folder: PathBuf,
    settings: Settings,
}

impl DatabaseFile {
    /// Creates the folder of a contender in a run, or takes it over from an earlier, ended process of the same run.
    ///
    /// # Errors
    /// The folder cannot be created, or belongs to a living process.
    pub fn create(home: &Home, run: &str, contender: &str, settings: Settings) -> Result<Self> {
        let Claim { folder, owner, .. } = Owner::claim(home, run, contender, &id())?;
        let files = Arc::clone(home.files());
        owner.save(&*files, &folder)?;
        Ok(DatabaseFile {
            files,
            folder,
            settings,
        })
    }

    /// The folder of the file.
    pub fn data(&self) -> PathBuf {
        data_of(&self.folder)
    }

    /// The file, with the settings of its connections.
    pub fn address(&self) -> Address {
        Address::File {
            path: self.data().join(FILE_NAME).into(),
            settings: Box::new(self.settings.clone()),
        }
    }

    /// What is wrong with the file as a whole: it is missing, empty or malformed. `None` for a sound one. Reads all of it.
    ///
    /// # Errors
    /// When it cannot be read for another reason, such as a lock.
    pub fn damage(&self, cancel: Cancel) -> Result<Option<String>> {
        let path = self.data().join(FILE_NAME);
        match std::fs::metadata(&path) {
            Ok(file) if file.len() == 0 => return Ok(Some("it is empty".to_owned())),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Some("it is missing".to_owned()));
            }
            Err(error) => {
                return Err(error).with_context(|| format!("could not read `{}`", path.display()));
            }
        }
        let options = ConnectOptions {
            dialect: Dialect::Sqlite,
            cancel,
            ..ConnectOptions::default()
        };
        let found = Connection::connect(&self.address(), &Credentials::default(), &options)
            .map_err(anyhow::Error::from)
            .and_then(|mut connection| Ok(connection.query("PRAGMA quick_check(1)")?));
        match found {
            Ok(found) => Ok(found.text(0, 0).filter(|answer| answer != "ok")),
            Err(error) => {
                let words = format!("{error:#}");
                match MALFORMED.iter().any(|name| words.contains(name)) {
                    true => Ok(Some(error.root_cause().to_string())),
                    false => Err(error),
                }
            }
        }
    }

    /// Creates an empty file, in place of an incomplete one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn make(&self) -> Result<()> {
        self.clear()?;
        create_private_dir(&*self.files, &self.data())?;
        create_file(&self.address())
            .with_context(|| format!("could not create the file `{}`", self.address()))
    }

    /// Removes the file and its journals.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn clear(&self) -> Result<()> {
        let data = self.data();
        if data.is_dir() {
            remove(&*self.files, &data)?;
        }
        Ok(())
    }

    /// Removes the folder with everything in it.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn remove_folder(&self) -> Result<()> {
        remove(&*self.files, &self.folder)?;
        if let Some(run) = self.folder.parent() {
            orphans::remove_empty_run(&*self.files, run);
        }
        Ok(())
    }
}

/// SQLite's name with its version.
pub fn id() -> String {
    format!("{SQLITE}-{}", sqlite_version())
}

fn remove(files: &dyn FileSystem, path: &Path) -> Result<()> {
    files
        .apply(Change::Remove { path })
        .with_context(|| format!("could not remove `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_made_again_and_goes_with_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let file = DatabaseFile::create(&home, "run", "0-a", Settings::new()).unwrap();
        file.make().unwrap();
        let Address::File { path, .. } = file.address() else {
            panic!("{}", file.address());
        };
        fs::write(&path, "half").unwrap();
        file.make().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        file.remove_folder().unwrap();
        assert!(!home.sandboxes().join("run").exists());
    }

    #[test]
    fn a_missing_an_empty_a_cut_and_an_overwritten_file_are_damaged_and_a_sound_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let file = DatabaseFile::create(&home, "run", "0-a", Settings::new()).unwrap();
        let damage = || file.damage(Cancel::never()).unwrap();
        file.make().unwrap();
        let path = file.data().join(FILE_NAME);
        assert_eq!(damage().as_deref(), Some("it is empty"));
        let options = ConnectOptions {
            dialect: Dialect::Sqlite,
            ..ConnectOptions::default()
        };
        let mut connection =
            Connection::connect(&file.address(), &Credentials::default(), &options).unwrap();
        for statement in [
            "CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)",
            "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i, 'text' FROM n",
        ] {
            connection.execute(statement).unwrap();
        }
        drop(connection);
        assert_eq!(damage(), None);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(damage().is_some(), "half of the file");
        let mut overwritten = whole.clone();
        overwritten[4096..8192].fill(0x5a);
        fs::write(&path, overwritten).unwrap();
        assert!(damage().is_some(), "one page of the file");
        fs::remove_file(&path).unwrap();
        assert_eq!(damage().as_deref(), Some("it is missing"));
    }
}
