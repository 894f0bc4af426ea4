//! The part after `oci:`: an image of a registry, or a layout on disk.

use std::path::Path;

/// An image as the user named it.
#[derive(Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A folder with an OCI image layout, and which of its images.
    Layout {
        folder: &'a Path,
        tag: Option<&'a str>,
    },
    Registry(RegistryReference<'a>),
}

/// An image of a registry.
#[derive(Debug, PartialEq, Eq)]
pub struct RegistryReference<'a> {
    /// Host and port of the registry.
    pub host: &'a str,
    /// Host, port and repository.
    pub repository: &'a str,
    pub tag: Option<&'a str>,
    /// `sha256:…`.
    pub digest: Option<&'a str>,
}

/// True when a reference contains a login, which may include a password.
pub fn names_user(locator: &str) -> bool {
    let host = locator.split('/').next().unwrap_or_default();
    host.contains('@') && !host.contains("@sha256:")
}

impl<'a> Reference<'a> {
    /// Parses the part after `oci:`; an error states the correct form.
    pub fn parse(locator: &'a str) -> Result<Self, String> {
        if locator.starts_with('/') {
            let (folder, tag) = match locator.rsplit_once(':') {
                Some((folder, tag)) if !tag.contains('/') => (folder, Some(tag)),
                _ => (locator, None),
            };
            if tag.is_some_and(|tag| !is_tag(tag)) {
                return Err(format!(
                    "`{locator}` does not end in a tag: letters, digits, dots and dashes"
                ));
            }
            let folder = Path::new(folder);
            return Ok(Reference::Layout { folder, tag });
        }
        RegistryReference::parse(locator).map(Reference::Registry)
    }
}

impl<'a> RegistryReference<'a> {
    fn parse(locator: &'a str) -> Result<Self, String> {
        let (named, digest) = match locator.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (locator, None),
        };
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err(format!(
                "`{locator}` does not end in @sha256: and 64 hexadecimal digits"
            ));
        }
        let (host, path) = named.split_once('/').unwrap_or(("", named));
        if !(host == "localhost" || host.contains(['.', ':'])) || host.starts_with('-') {
            return Err(format!(
                "`{locator}` names no registry; write it out, as in docker.io/library/mysql:8.4, or give the absolute path of a layout \
                 on disk"
            ));
        }
        let (path, tag) = match path.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (path, None),
        };
        let is_part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part.chars().all(|c| {
                    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-')
                })
        };
        let is_host = host
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']'));
        if !is_host || !path.split('/').all(is_part) || tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(format!(
                "`{locator}` is not HOST/NAME:TAG or HOST/NAME@sha256:DIGEST"
            ));
        }
        if tag.is_none() && digest.is_none() {
            return Err(format!(
                "`{locator}` has no tag; write {locator}:TAG, since `latest` changes every month"
            ));
        }
        Ok(RegistryReference {
            host,
            repository: &named[..host.len() + 1 + path.len()],
            tag,
            digest,
        })
    }

    /// True when the registry is on this machine, where encryption adds nothing.
    pub fn is_loopback(&self) -> bool {
        dbduel_driver::address::is_loopback(self.host)
    }

    /// Name for a client that takes either a tag or a digest.
    pub fn exact(&self) -> String {
        match (self.digest, self.tag) {
            (Some(digest), _) => self.at(digest),
            (None, Some(tag)) => format!("{}:{tag}", self.repository),
            (None, None) => self.repository.to_owned(),
        }
    }

    /// The manifest `digest` of the same repository.
    pub fn at(&self, digest: &str) -> String {
        format!("{}@{digest}", self.repository)
    }
}

fn is_tag(tag: &str) -> bool {
    (1..=128).contains(&tag.len())
        && tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && tag
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// True when `digest` is `sha256:` and 64 lower-case hexadecimal digits; the digits are safe as a file name.
pub fn is_digest(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64
            && hex
                .chars()
                .all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(locator: &str) -> RegistryReference<'_> {
        match Reference::parse(locator) {
            Ok(Reference::Registry(reference)) => reference,
            other => panic!("`{locator}`: {other:?}"),
        }
    }

    #[test]
    fn references_have_a_registry_a_name_and_a_tag_or_a_digest() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let plain = registry("docker.io/library/mysql:8.4");
        assert_eq!(plain.repository, "docker.io/library/mysql");
        assert_eq!(plain.exact(), "docker.io/library/mysql:8.4");
        let pinned = format!("127.0.0.1:5000/mariadb:10.11@{digest}");
        let pinned = registry(&pinned);
        assert_eq!((pinned.host, pinned.tag), ("127.0.0.1:5000", Some("10.11")));
        assert_eq!(pinned.exact(), format!("127.0.0.1:5000/mariadb@{digest}"));
    }

    #[test]
    fn a_layout_is_a_path_with_or_without_a_tag() {
        let layout = |folder, tag| {
            Ok(Reference::Layout {
                folder: Path::new(folder),
                tag,
            })
        };
        assert_eq!(Reference::parse("/srv/x"), layout("/srv/x", None));
        assert_eq!(
            Reference::parse("/srv/x:8.4"),
            layout("/srv/x", Some("8.4"))
        );
        assert_eq!(Reference::parse("/srv:a/x"), layout("/srv:a/x", None));
    }

    #[test]
    fn what_is_no_image_says_how_one_is_written() {
        for (locator, part) in [
            ("mysql:8.4", "docker.io/library/mysql:8.4"),
            ("library/mysql:8.4", "names no registry"),
            ("docker.io/library/mysql", "has no tag"),
            ("docker.io/library/my sql:8", "is not HOST/NAME:TAG"),
            ("docker.io/../mysql:8", "is not HOST/NAME:TAG"),
            ("docker.io/mysql@sha256:12", "64 hexadecimal digits"),
            ("--help", "names no registry"),
            ("-o.x/y:1", "names no registry"),
            ("/srv/x:-", "tag"),
        ] {
            let error = Reference::parse(locator).unwrap_err();
            assert!(error.contains(part), "`{locator}`: {error}");
        }
        assert!(names_user("u:secret@registry.example/x:1"));
        assert!(!names_user("registry.example/x@sha256:0"));
        assert!(!names_user("x@sha256:0") && !names_user("/srv/a@b"));
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for host in [
            "localhost",
            "localhost:5000",
            "127.0.0.1:5000",
            "[::1]:5000",
        ] {
            assert!(registry(&format!("{host}/x:1")).is_loopback(), "{host}");
        }
        for host in ["localhost.example.org", "127.0.0.1.nip.io", "10.0.0.1:5000"] {
            assert!(!registry(&format!("{host}/x:1")).is_loopback(), "{host}");
        }
    }
}
