//! The kernel's files below a root, so that tests can use copies of other machines' files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Root of the kernel's files.
pub(super) struct Files {
    root: PathBuf,
}

impl Files {
    /// The files of this machine.
    pub(super) fn of_this_machine() -> Self {
        Self::below(Path::new("/"))
    }

    /// The files of a machine copied below `root`.
    pub(super) fn below(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// The real path of a file.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file.trim_start_matches('/'))
    }

    /// A file as text; empty when it cannot be read.
    pub(super) fn text(&self, file: &str) -> String {
        fs::read(self.path(file))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The first line of a file, unless empty.
    pub(super) fn line(&self, file: &str) -> Option<String> {
        let text = self.text(file);
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// The first line of a file as a number.
    pub(super) fn number<T: std::str::FromStr>(&self, file: &str) -> Option<T> {
        self.line(file)?.parse().ok()
    }

    /// Names in a folder, sorted; empty when it cannot be listed.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        let names = entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

/// The value after `name :` in the style of `/proc` files.
pub(super) fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Number of different values after `name :`, over all processors.
pub(super) fn distinct(text: &str, name: &str) -> u32 {
    let values: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
        .collect();
    values.len() as u32
}

/// The word in brackets: `always [madvise] never`.
pub(super) fn chosen(text: &str) -> Option<String> {
    let (_, after) = text.split_once('[')?;
    Some(after.split_once(']')?.0.to_owned())
}

/// Number of processors in a list such as `0-1,4`.
pub(super) fn count_of_list(list: &str) -> u32 {
    list.split(',')
        .map(|part| match part.split_once('-') {
            Some((first, last)) => {
                let (first, last): (u32, u32) =
                    (first.parse().unwrap_or(0), last.parse().unwrap_or(0));
                last.saturating_sub(first).saturating_add(1)
            }
            None => 1,
        })
        .fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_counted() {
        assert_eq!(count_of_list("0"), 1);
        assert_eq!(count_of_list("0-1"), 2);
        assert_eq!(count_of_list("0-3,8-11"), 8);
    }

    #[test]
    fn the_chosen_word_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        assert_eq!(chosen("none"), None);
    }
}
