//! Manifests of images: OCI's and Docker's, which have the same fields, and the lists of manifests for several machines.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use dbduel_record::foreign;
use serde::Deserialize;

use super::super::super::digest::{self, Digests};
use super::reference::is_digest;

/// Size limit of a manifest; registries refuse larger ones than 4 MiB.
const MANIFEST_BYTES_MAX: u64 = 8 << 20;
/// Limit of nested lists; more than two levels are not in use.
const DEPTH_MAX: usize = 4;
/// The annotation with a layout's tag.
const TAG: &str = "org.opencontainers.image.ref.name";

/// The parts of one image.
#[derive(Debug)]
pub struct Manifest {
    /// `sha256:…` of the manifest.
    pub digest: String,
    pub digests: Digests,
    /// Lowest layer first.
    pub layers: Vec<Descriptor>,
}

/// A file of an image by its digest.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// `sha256:…`.
    pub digest: String,
    /// Bytes as fetched.
    #[serde(default)]
    pub size: u64,
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Platform {
    os: String,
    architecture: String,
}

/// Fields of a manifest or a list of manifests.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    layers: Option<Vec<Descriptor>>,
    #[serde(default)]
    manifests: Option<Vec<Descriptor>>,
}

impl Descriptor {
    /// Its file in the folder `blobs`.
    ///
    /// # Errors
    /// The digest is not a lower-case SHA-256.
    pub fn blob(&self, blobs: &Path) -> Result<PathBuf> {
        match self.digest.strip_prefix("sha256:") {
            Some(hex) if is_digest(&self.digest) => Ok(blobs.join(hex)),
            _ => bail!(
                "the manifest names a file by `{}`; only SHA-256 digests are supported",
                self.digest
            ),
        }
    }
}

/// Reads a manifest, and of a list the one for this machine. `read` returns the bytes of a digest.
///
/// # Errors
/// A manifest cannot be read or parsed, or there is none for this machine.
pub fn resolve(first: &[u8], read: &dyn Fn(&str) -> Result<Vec<u8>>) -> Result<Manifest> {
    let mut bytes = first.to_vec();
    for _ in 0..DEPTH_MAX {
        let document: Document =
            serde_json::from_slice(&bytes).context("could not parse the manifest of the image")?;
        if let Some(layers) = document.layers {
            let digests = digest::of(&bytes[..]).context("could not read the manifest")?;
            return Ok(Manifest {
                digest: format!("sha256:{}", digests.sha256),
                digests,
                layers,
            });
        }
        let Some(manifests) = document.manifests else {
            bail!(
                "the image has a manifest of schema version 1, without layers; push it again with a current tool"
            );
        };
        bytes = read(&for_this_machine(&manifests)?.digest)?;
    }
    bail!("the image's manifest lists are nested more than {DEPTH_MAX} deep")
}

/// The image for this machine's architecture.
fn for_this_machine(manifests: &[Descriptor]) -> Result<&Descriptor> {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let fits = |descriptor: &&Descriptor| match &descriptor.platform {
        Some(platform) => platform.os == "linux" && platform.architecture == architecture,
        None => manifests.len() == 1,
    };
    manifests.iter().find(fits).with_context(|| {
        let there: Vec<String> = manifests
            .iter()
            .filter_map(|one| one.platform.as_ref())
            .map(|one| format!("{}/{}", one.os, one.architecture))
            .collect();
        format!(
            "the image has no linux/{architecture}, only {}",
            there.join(", ")
        )
    })
}

/// The manifest of a layout's only image, or of the one with a tag.
///
/// # Errors
/// There is no layout, no such image, or several to choose from.
pub fn of_layout(folder: &Path, tag: Option<&str>) -> Result<Manifest> {
    let blobs = folder.join("blobs/sha256");
    let index = read(&folder.join("index.json")).with_context(|| {
        format!(
            "`{}` is not an OCI image layout; `skopeo copy docker://IMAGE oci:FOLDER:TAG` creates one",
            folder.display()
        )
    })?;
    let document: Document = serde_json::from_slice(&index)
        .with_context(|| format!("could not parse `{}`", folder.join("index.json").display()))?;
    let images = document.manifests.unwrap_or_default();
    let tags: Vec<&str> = images
        .iter()
        .filter_map(|image| image.annotations.get(TAG).map(String::as_str))
        .collect();
    let chosen = match tag {
        Some(tag) => images
            .iter()
            .find(|image| image.annotations.get(TAG).is_some_and(|one| one == tag)),
        None if images.len() == 1 => images.first(),
        None => None,
    };
    let Some(chosen) = chosen else {
        bail!(
            "`{}` has {} images{}; name one of them: `oci:{0}:TAG`",
            folder.display(),
            images.len(),
            match tags.is_empty() {
                true => String::new(),
                false => format!(", tagged {}", tags.join(", ")),
            }
        );
    };
    let read = |digest: &str| {
        let named = Descriptor {
            digest: digest.to_owned(),
            size: 0,
            platform: None,
            annotations: Default::default(),
        };
        let path = named.blob(&blobs)?;
        let bytes = read(&path)?;
        let found = digest::of(&bytes[..])?.sha256;
        if !digest.ends_with(&found) {
            bail!(
                "`{}` does not match its name: its SHA-256 is {found}",
                path.display()
            );
        }
        Ok(bytes)
    };
    resolve(&read(&chosen.digest)?, &read)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    foreign::read(path, MANIFEST_BYTES_MAX)
        .with_context(|| format!("could not read `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The layers of an image whose manifests are `documents`, the first one asked for by tag.
    fn layers(documents: &[serde_json::Value]) -> Result<Vec<String>> {
        let text = |number: usize| documents[number].to_string().into_bytes();
        let read = |digest: &str| Ok(text(digest.parse().unwrap()));
        let manifest = resolve(&text(0), &read)?;
        assert_eq!(manifest.digest.len(), "sha256:".len() + 64);
        Ok(manifest
            .layers
            .into_iter()
            .map(|layer| layer.digest)
            .collect())
    }

    fn list(images: &[(&str, &str, &str)]) -> serde_json::Value {
        let images: Vec<_> = images
            .iter()
            .map(|(os, architecture, digest)| {
                json!({ "digest": digest, "platform": { "os": os, "architecture": architecture } })
            })
            .collect();
        json!({ "manifests": images })
    }

    #[test]
    fn of_a_list_the_image_for_this_machine_is_taken() {
        let ours = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let image =
            json!({ "layers": [{ "digest": "a", "size": 1 }, { "digest": "b", "size": 2 }] });
        let other = json!({ "layers": [] });
        assert_eq!(layers(std::slice::from_ref(&image)).unwrap(), ["a", "b"]);
        // Builders add attestations as images of an unknown machine.
        let listed = list(&[
            ("unknown", "unknown", "2"),
            ("linux", "s390x", "2"),
            ("linux", ours, "1"),
        ]);
        assert_eq!(layers(&[listed, image, other]).unwrap(), ["a", "b"]);
        let error = layers(&[list(&[("windows", "amd64", "0"), ("linux", "s390x", "0")])]);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("only windows/amd64, linux/s390x"), "{error}");
    }

    #[test]
    fn lists_without_end_and_manifests_of_the_first_version_are_refused() {
        let error = |document| layers(&[document]).unwrap_err().to_string();
        let endless = json!({ "manifests": [{ "digest": "0" }] });
        assert!(error(endless).contains("deep"));
        assert!(error(json!({ "fsLayers": [] })).contains("version 1"));
        assert!(error(json!("text")).contains("could not parse"));
    }

    #[test]
    fn only_digests_by_sha_256_are_names_of_files() {
        let blob = |digest: &str| {
            let descriptor = json!({ "digest": digest });
            let descriptor: Descriptor = serde_json::from_value(descriptor).unwrap();
            descriptor
                .blob(Path::new("/blobs"))
                .map_err(|error| error.to_string())
        };
        let hex = "0".repeat(64);
        assert_eq!(
            blob(&format!("sha256:{hex}")),
            Ok(Path::new("/blobs").join(&hex))
        );
        assert!(
            blob("sha256:../../etc/passwd")
                .unwrap_err()
                .contains("only SHA-256 digests")
        );
        assert!(blob(&format!("sha512:{hex}")).is_err());
    }
}
