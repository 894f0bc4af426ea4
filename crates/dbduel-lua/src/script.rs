//! A script's text, and the search path of the modules that it requires.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dbduel_record::foreign;
use mlua::{Function, Lua};

use super::chunks;
use super::error::ScriptError;

/// Where packages of sysbench install its scripts.
const INSTALLED: [&str; 2] = ["/usr/local/share/sysbench", "/usr/share/sysbench"];

/// A script. Clones share the files read.
#[derive(Debug, Clone)]
pub struct Script {
    name: String,
    text: Arc<[u8]>,
    search_path: String,
    required: Arc<Mutex<Vec<ScriptFile>>>,
}

/// A file that belongs to a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFile {
    /// Its path, as found.
    pub path: String,
    /// Its content.
    pub text: Vec<u8>,
}

impl Script {
    /// The script of that name: a file, else a module on the search path, so `oltp_read_write` finds the one installed
    /// with sysbench.
    ///
    /// # Errors
    /// [`ScriptError::NotFound`] or [`ScriptError::Read`].
    pub fn find(name: &str) -> Result<Self, ScriptError> {
        let path = Path::new(name);
        if path.is_file() {
            let text = read(name)?;
            let directory = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            return Ok(Self::new(name, text, directory));
        }
        let search_path = search_path(None);
        let module = name.replace('.', "/");
        let found = search_path
            .split(';')
            .map(|template| template.replace('?', &module))
            .find(|candidate| Path::new(candidate).is_file());
        match found {
            Some(path) => {
                let text = read(&path)?;
                let directory = Path::new(&path).parent().map(Path::to_owned);
                Ok(Self::new(&path, text, directory.as_deref()))
            }
            None => Err(ScriptError::NotFound {
                name: name.to_owned(),
                searched: search_path,
            }),
        }
    }

    /// A script without a file, such as one from standard input. Modules are searched for in the working directory.
    #[must_use]
    pub fn from_text(name: &str, text: Vec<u8>) -> Self {
        Self::new(name, text, None)
    }

    fn new(name: &str, text: Vec<u8>, directory: Option<&Path>) -> Self {
        Script {
            name: name.to_owned(),
            text: text.into(),
            search_path: search_path(directory),
            required: Arc::default(),
        }
    }

    /// The path of the script.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Templates of the paths of modules, separated by semicolons, as Lua's `package.path` has them.
    pub(super) fn search_path(&self) -> &str {
        &self.search_path
    }

    /// The text; a first line that begins with `#` is for the shell and is left empty.
    fn code(&self) -> &[u8] {
        without_shebang(&self.text)
    }

    /// The script as a function of a state.
    pub(super) fn function(&self, lua: &Lua) -> Result<Function, ScriptError> {
        let name = format!("@{}", self.name);
        Ok(chunks::function(lua, &name, self.code())?)
    }

    /// A file that the script requires, as a function of a state.
    pub(super) fn required_function(&self, lua: &Lua, path: &str) -> Result<Function, ScriptError> {
        let text = self.require(path)?;
        Ok(chunks::function(lua, &format!("@{path}"), &text)?)
    }

    /// Reads a file that the script requires, and keeps it.
    fn require(&self, path: &str) -> Result<Vec<u8>, ScriptError> {
        let mut required = self.required.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = required.iter().find(|file| file.path == path) {
            return Ok(without_shebang(&known.text).to_vec());
        }
        let text = read(path)?;
        let code = without_shebang(&text).to_vec();
        required.push(ScriptFile {
            path: path.to_owned(),
            text,
        });
        Ok(code)
    }

    /// The script and everything that it has required so far.
    #[must_use]
    pub fn files(&self) -> Vec<ScriptFile> {
        let main = ScriptFile {
            path: self.name.clone(),
            text: self.text.to_vec(),
        };
        let required = self.required.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(main)
            .chain(required.iter().cloned())
            .collect()
    }
}

/// Largest script or module, bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

fn read(path: &str) -> Result<Vec<u8>, ScriptError> {
    foreign::read(Path::new(path), FILE_BYTES_MAX).map_err(|why| ScriptError::Read {
        path: path.to_owned(),
        why,
    })
}

/// The line break stays, so that line numbers are unchanged.
fn without_shebang(text: &[u8]) -> &[u8] {
    if text.first() != Some(&b'#') {
        return text;
    }
    let end = text.iter().position(|&byte| byte == b'\n');
    end.map_or(&[], |end| &text[end..])
}

/// Search path: the script's own directory, the working directory, the directories of Lua modules, and sysbench's.
/// `LUA_PATH` comes first; `;;` in it stands for these.
fn search_path(directory: Option<&Path>) -> String {
    let mut directories: Vec<PathBuf> = directory.into_iter().map(Path::to_owned).collect();
    directories.push(PathBuf::from("."));
    if let Some(home) = std::env::home_dir() {
        directories.push(home.join(".luarocks/share/lua/5.1"));
    }
    directories.extend(["/usr/local/share/lua/5.1", "/usr/share/lua/5.1"].map(PathBuf::from));
    directories.extend(INSTALLED.map(PathBuf::from));
    let templates = directories.iter().flat_map(|directory| {
        let directory = directory.display();
        [
            format!("{directory}/?.lua"),
            format!("{directory}/?/init.lua"),
        ]
    });
    let ours = templates.collect::<Vec<_>>().join(";");
    match std::env::var("LUA_PATH") {
        Ok(wanted) if wanted.contains(";;") => wanted.replace(";;", &format!(";{ours};")),
        Ok(wanted) => wanted,
        Err(_) => ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_the_shell_is_left_empty() {
        let script = Script::from_text("s", b"#!/usr/bin/env sysbench\nreturn 1\n".to_vec());
        assert_eq!(script.code(), b"\nreturn 1\n");
        assert_eq!(
            Script::from_text("s", b"return 1".to_vec()).code(),
            b"return 1"
        );
    }

    #[test]
    fn a_script_is_found_by_path_and_brings_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.lua");
        std::fs::write(&path, "return 1").unwrap();
        std::fs::write(directory.path().join("helper.lua"), "return 2").unwrap();
        let script = Script::find(path.to_str().unwrap()).unwrap();
        assert!(
            script
                .search_path()
                .starts_with(directory.path().to_str().unwrap())
        );
        script
            .require(directory.path().join("helper.lua").to_str().unwrap())
            .unwrap();
        let files: Vec<_> = script.files().into_iter().map(|file| file.text).collect();
        assert_eq!(files, [b"return 1".to_vec(), b"return 2".to_vec()]);
    }

    #[test]
    fn a_missing_script_says_where_it_was_looked_for() {
        let error = Script::find("no_such_script").unwrap_err().to_string();
        assert!(
            error.contains("no_such_script") && error.contains("share/sysbench"),
            "{error}"
        );
    }
}
