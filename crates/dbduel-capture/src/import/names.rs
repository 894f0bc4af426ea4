//! Names that recur: default databases and users, each by its place in a list.

use std::collections::HashMap;

use crate::store::manifest::escaped;

/// Names of one list; further ones are unknown.
const NAMES_MAX: usize = 1 << 16;
/// Longest name, bytes; the servers' limit is 128 characters.
const NAME_BYTES_MAX: usize = 512;

/// A list of names.
#[derive(Debug, Default)]
pub(super) struct Names {
    places: HashMap<Vec<u8>, u32>,
}

impl Names {
    /// The place of a name; `None` where the list is full or the name too long.
    pub(super) fn place(&mut self, name: &[u8]) -> Option<u32> {
        if let Some(place) = self.places.get(name) {
            return Some(*place);
        }
        if self.places.len() >= NAMES_MAX || name.len() > NAME_BYTES_MAX {
            return None;
        }
        let place = self.places.len() as u32;
        self.places.insert(name.to_vec(), place);
        Some(place)
    }

    /// The names in the order of their places.
    pub(super) fn list(&self) -> Vec<String> {
        let mut names: Vec<(&u32, &Vec<u8>)> = self
            .places
            .iter()
            .map(|(name, place)| (place, name))
            .collect();
        names.sort();
        let names = names.into_iter().map(|(_, name)| escaped(name, true));
        names.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_places() {
        let mut names = Names::default();
        let places = [&b"b"[..], b"a", b"b", b"\xff"].map(|name| names.place(name));
        assert_eq!(places, [Some(0), Some(1), Some(0), Some(2)]);
        assert_eq!(names.place(&[b'x'; 1000]), None);
        assert_eq!(names.list(), ["b", "a", "\\xff"]);
    }
}
