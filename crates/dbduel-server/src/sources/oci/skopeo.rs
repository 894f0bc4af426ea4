//! Pulls images of registries with `skopeo`. Fetches the manifest first, so that the size is known and all layers have
//! the digests of one moment even if the tag moves; layers that are present are not fetched again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::super::super::command::{Finished, Tool, quote};
use super::super::FetchContext;
use super::Image;
use super::manifest::{self, Manifest};
use super::reference::RegistryReference;

const REMEDY: &str = "install the package `skopeo`, it pulls images";
const DEADLINE: Duration = Duration::from_secs(4 * 3600);
/// Timeout for fetching a manifest.
const MANIFEST_DEADLINE: Duration = Duration::from_secs(120);

/// Fetches the manifest and the layers.
///
/// # Errors
/// There is no `skopeo`, the registry cannot be reached or refuses, or it has no such image; the text quotes it and
/// says what to do.
pub fn pull(reference: &RegistryReference<'_>, context: &FetchContext<'_>) -> Result<Image> {
    let name = reference.exact();
    context.progress.stage(&format!("asking for {name}"));
    let first = raw(reference, &name)?;
    let manifest = manifest::resolve(first.as_bytes(), &|digest| {
        raw(reference, &reference.at(digest)).map(String::into_bytes)
    })?;
    let layout = layout_of(reference, &manifest, context)?;
    let blobs = layout.join("blobs/sha256");
    if !manifest
        .layers
        .iter()
        .all(|layer| layer.blob(&blobs).is_ok_and(|blob| blob.is_file()))
    {
        context.progress.stage(&format!("pulling {name}"));
        let total = manifest.layers.iter().map(|layer| layer.size).sum();
        let copied = skopeo()
            .with(|command| {
                command.args(["copy", "--quiet", "--retry-times", "2"]);
                // The layers must keep their digests.
                command.arg("--dest-oci-accept-uncompressed-layers");
                if reference.is_loopback() {
                    command.arg("--src-tls-verify=false");
                }
                command
                    .arg(format!("docker://{}", reference.at(&manifest.digest)))
                    .arg(format!("oci:{}:image", layout.display()));
            })
            .watching(&layout, Some(total), context.progress)
            .run(DEADLINE)?;
        explain(reference, &name, &copied).with_context(|| {
            format!(
                "could not pull `{name}`; received layers are kept in `{}` for the next try",
                layout.display()
            )
        })?;
    }
    Ok(Image {
        name: format!("{name} {}", manifest.digest),
        manifest,
        blobs,
        leftovers: vec![layout],
    })
}

/// A folder for the layers of one manifest.
fn layout_of(
    reference: &RegistryReference<'_>,
    manifest: &Manifest,
    context: &FetchContext<'_>,
) -> Result<PathBuf> {
    let key = blake3::hash(reference.at(&manifest.digest).as_bytes());
    let folder = context
        .home
        .downloads()
        .join("oci")
        .join(&key.to_hex()[..16]);
    fs::create_dir_all(&folder)
        .with_context(|| format!("could not create `{}`", folder.display()))?;
    Ok(folder)
}

/// The bytes of a manifest or a list, verified against its digest.
fn raw(reference: &RegistryReference<'_>, name: &str) -> Result<String> {
    let inspected = skopeo()
        .with(|command| {
            command.args(["inspect", "--raw"]);
            if reference.is_loopback() {
                command.arg("--tls-verify=false");
            }
            command.arg(format!("docker://{name}"));
        })
        .run(MANIFEST_DEADLINE)?;
    explain(reference, name, &inspected)
        .with_context(|| format!("could not get the manifest of `{name}`"))?;
    Ok(inspected.stdout)
}

/// `skopeo`, with this machine's image trust policy, if any.
fn skopeo() -> Tool<'static> {
    let own = std::env::var_os("HOME").map(PathBuf::from);
    let own = own.map(|home| home.join(".config/containers/policy.json"));
    let has_policy = Path::new("/etc/containers/policy.json").is_file()
        || own.is_some_and(|policy| policy.is_file());
    Tool::new("skopeo", REMEDY).with(|command| {
        if !has_policy {
            command.arg("--insecure-policy");
        }
    })
}

/// The failure and what to do, by the output of `skopeo`.
fn explain(reference: &RegistryReference<'_>, name: &str, finished: &Finished) -> Result<()> {
    if finished.status.success() {
        return Ok(());
    }
    let said = &finished.stderr;
    let host = reference.host;
    let lower = said.to_lowercase();
    // Words only: numbers of a protocol stand in digests and ports too.
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let advice = if says(&["did not match", "digest mismatch"]) {
        "the received bytes do not match the manifest; none of them were used. Try again; if that fails again, push \
         the image again"
            .to_owned()
    } else if says(&["manifest unknown", "name unknown", "not found"]) {
        format!("the registry has no `{name}`; check its name and tag")
    } else if says(&[
        "unauthorized",
        "authentication required",
        "denied",
        "forbidden",
    ]) {
        format!(
            "the registry requires a login, or there is no such image: run `skopeo login {host}` first; dbduel uses its login file"
        )
    } else if says(&["toomanyrequests", "too many requests"]) {
        format!("the registry limits pulls for now: run `skopeo login {host}`, or try again later")
    } else if says(&["certificate", "http response to https"]) {
        "only a registry on this machine may lack a valid certificate; install one on the registry, or put its CA \
         certificate into /etc/containers/certs.d"
            .to_owned()
    } else {
        format!(
            "check that `{host}` is reachable, and set `HTTPS_PROXY` if a proxy is needed. Otherwise run `skopeo copy \
             docker://{name} oci:FOLDER:image` on another machine, copy the folder here and name it `oci:/FOLDER`"
        )
    };
    bail!("{advice} ({}){}", finished.status, quote(said))
}

#[cfg(test)]
mod tests {
    use super::super::reference::Reference;
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    #[track_caller]
    fn check(said: &str, expected: &str) {
        let Ok(Reference::Registry(reference)) = Reference::parse("h.example:4010/x:1") else {
            panic!("it is a reference");
        };
        let finished = Finished {
            status: ExitStatus::from_raw(256),
            stdout: String::new(),
            stderr: said.to_owned(),
        };
        let error = explain(&reference, "h.example:4010/x:1", &finished)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected) && error.contains(said), "{error}");
    }

    #[test]
    fn what_the_client_said_becomes_advice() {
        let digests = "expected sha256:8bec401429, got sha256:403";
        check(
            &format!("Digest did not match, {digests}"),
            "push the image again",
        );
        check(
            "reading manifest 2 in h/x: manifest unknown",
            "check its name and tag",
        );
        check(
            "unauthorized: authentication required",
            "skopeo login h.example:4010",
        );
        check(
            "toomanyrequests: You have reached your pull rate limit",
            "try again later",
        );
        check(
            "x509: certificate signed by unknown authority",
            "valid certificate",
        );
        check(
            "http: server gave HTTP response to HTTPS client",
            "valid certificate",
        );
        check(
            "dial tcp 10.0.0.1:4010: connect: connection refused",
            "is reachable",
        );
    }
}
