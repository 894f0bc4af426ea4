//! The home directory: fetched servers, datasets and sandboxes.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use dbduel_server::Home;

/// The directory that the user named, or the default of the XDG conventions. An empty name counts as none, as in those
/// conventions: scripts write `DBDUEL_HOME=` to unset it.
///
/// # Errors
/// When there is no home directory to fall back on.
pub fn find(named: Option<PathBuf>) -> Result<Home> {
    let root = match named.filter(|root| !root.as_os_str().is_empty()) {
        Some(root) => std::path::absolute(&root)
            .with_context(|| format!("`{}` is not a usable path", root.display()))?,
        None => default_root()
            .context("neither HOME nor XDG_DATA_HOME is set; name a place with `--home DIR`")?,
    };
    Ok(Home::new(root))
}

fn default_root() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_DATA_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/share")))
        .map(|data| data.join("dbduel"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_no_name() {
        let root = |named: Option<PathBuf>| find(named).unwrap().root().to_owned();
        assert_eq!(root(Some(PathBuf::new())), root(None));
        assert_eq!(root(Some("/srv/lab".into())), PathBuf::from("/srv/lab"));
    }
}
