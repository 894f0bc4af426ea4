//! Container images: pulled by the machine's own `skopeo` with its logins, mirrors, proxies and certificates, or read
//! from a layout on disk. Their layers become a private tree; no container runs.

mod layers;
mod manifest;
mod reference;
mod skopeo;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::super::digest;
use super::{Artifact, FetchContext, Fetched, Source};
use manifest::{Descriptor, Manifest};
use reference::Reference;

pub use reference::names_user;

/// `oci:docker.io/library/mysql:8.4`, `oci:/srv/mysql-8.4`.
pub const SOURCE: Source = Source {
    scheme: "oci",
    about: "A container image from a registry, pulled with `skopeo`, or an image layout at /FOLDER[:TAG]; its server runs without a container.",
    example: "oci:docker.io/library/mysql:8.4",
    is_in_place: false,
    check,
    fetch,
};

/// An image whose layers are on this machine.
struct Image {
    /// Name with the digest of its manifest.
    name: String,
    /// The manifest from the registry or the layout.
    manifest: Manifest,
    /// Folder of the layers, named by digest.
    blobs: PathBuf,
    /// Files that are not needed once the layers are applied.
    leftovers: Vec<PathBuf>,
}

fn check(locator: &str) -> Result<(), String> {
    Reference::parse(locator).map(|_| ())
}

fn fetch(locator: &str, context: &FetchContext<'_>) -> Result<Fetched> {
    let image = match Reference::parse(locator).map_err(anyhow::Error::msg)? {
        Reference::Layout { folder, tag } => {
            let manifest = manifest::of_layout(folder, tag)?;
            Image {
                name: format!("{locator} {}", manifest.digest),
                manifest,
                blobs: folder.join("blobs/sha256"),
                leftovers: Vec::new(),
            }
        }
        Reference::Registry(reference) => skopeo::pull(&reference, context)?,
    };
    let mut artifacts = vec![Artifact {
        name: image.name,
        digests: image.manifest.digests,
    }];
    let layers = &image.manifest.layers;
    for (number, layer) in layers.iter().enumerate() {
        let blob = layer.blob(&image.blobs)?;
        let is_ours = !image.leftovers.is_empty();
        artifacts.push(checked(layer, &blob, is_ours)?);
        context.progress.stage(&format!(
            "unpacking layer {} of {}",
            number + 1,
            layers.len()
        ));
        layers::apply(&blob, context.staging, context.progress)
            .with_context(|| format!("could not unpack the layer {}", layer.digest))?;
    }
    Ok(Fetched {
        tree: context.staging.to_path_buf(),
        daemon: None,
        artifacts,
        leftovers: image.leftovers,
    })
}

/// Verifies that `blob` has the digest of its layer in the manifest.
fn checked(layer: &Descriptor, blob: &Path, is_ours: bool) -> Result<Artifact> {
    let digests = digest::of_file(blob)?;
    if format!("sha256:{}", digests.sha256) != layer.digest {
        if is_ours {
            // So that the next try fetches it again.
            let _ = fs::remove_file(blob);
        }
        bail!(
            "`{}` is not the layer that its manifest names: its SHA-256 is {}, expected {}; {}",
            blob.display(),
            digests.sha256,
            layer.digest,
            match is_ours {
                true => "it was removed; try again",
                false => "create the layout again",
            }
        );
    }
    Ok(Artifact {
        name: "layer".to_owned(),
        digests,
    })
}
