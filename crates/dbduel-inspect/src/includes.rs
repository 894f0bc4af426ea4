//! Which files an option file may include: those beside it, or below a directory that the user names.
//!
//! The paths in a foreign file are those of another machine and may lead anywhere on this one.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The only directories that includes are read from.
#[derive(Debug, Clone, Default)]
pub struct Includes {
    /// Canonical paths, without symbolic links.
    directories: Vec<PathBuf>,
}

impl Includes {
    /// Includes from these directories; a missing one holds nothing.
    #[must_use]
    pub fn from<'a>(directories: impl IntoIterator<Item = &'a Path>) -> Self {
        let whole = |directory: &Path| match directory.as_os_str().is_empty() {
            true => fs::canonicalize("."),
            false => fs::canonicalize(directory),
        };
        let directories = directories.into_iter();
        Includes {
            directories: directories
                .filter_map(|directory| whole(directory).ok())
                .collect(),
        }
    }

    /// Includes of a single file: from its directory, and from `root` where given.
    #[must_use]
    pub fn beside(file: &Path, root: Option<&Path>) -> Self {
        Includes::from(file.parent().into_iter().chain(root))
    }

    /// Location of a file or directory that `path` includes; `None` outside of these directories. An absolute path, or
    /// one that leads elsewhere, is looked up by its last components.
    #[must_use]
    pub fn find(&self, path: &Path, target: &Path) -> Option<PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let is_name = |component: &Component<'_>| matches!(component, Component::Normal(_));
        let names: Vec<_> = target.components().filter(is_name).collect();
        let endings = (0..names.len()).map(|start| names[start..].iter().collect::<PathBuf>());
        let places = endings.flat_map(|ending| {
            let below = self.directories.iter().map(|one| one.join(&ending));
            std::iter::once(folder.join(&ending))
                .chain(below)
                .collect::<Vec<_>>()
        });
        // As it is written first: `join` of an absolute path is that path.
        let mut places = std::iter::once(folder.join(target)).chain(places);
        places.find(|place| self.hold(place))
    }

    /// True when `place` is in one of the directories, symbolic links resolved.
    #[must_use]
    pub fn hold(&self, place: &Path) -> bool {
        let within = |place: &PathBuf| self.directories.iter().any(|one| place.starts_with(one));
        fs::canonicalize(place).is_ok_and(|place| within(&place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_the_directories_is_found() {
        let given = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret.cnf");
        fs::write(&secret, "").unwrap();
        fs::create_dir(given.path().join("conf.d")).unwrap();
        std::os::unix::fs::symlink(&secret, given.path().join("conf.d/link.cnf")).unwrap();
        let file = given.path().join("my.cnf");
        let own = Includes::beside(&file, None);
        let named = Includes::beside(&file, Some(outside.path()));
        let found = |includes: &Includes, target: &str| includes.find(&file, Path::new(target));
        let inside = given.path().join("conf.d");
        for target in ["conf.d", "./conf.d/", "/etc/mysql/conf.d/", "../conf.d"] {
            assert_eq!(found(&own, target).as_deref(), Some(&*inside), "{target}");
        }
        let absolute = secret.to_str().unwrap();
        for target in [absolute, "conf.d/link.cnf", "../../etc/passwd", "/", ".."] {
            assert_eq!(found(&own, target), None, "{target}");
        }
        assert_eq!(found(&named, absolute).as_deref(), Some(&*secret));
        assert_eq!(
            found(&named, "/etc/mysql/secret.cnf"),
            fs::canonicalize(&secret).ok()
        );
        assert!(!own.hold(&inside.join("link.cnf")) && named.hold(&inside.join("link.cnf")));
    }
}
