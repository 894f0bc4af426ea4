//! Container images: made here of a fetched server, pushed to a registry on loopback, pulled and run.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dbduel_record::Record;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::bare_server::free_port;
use super::harness::skip;
use super::lab::{home, servers_left, short_experiment};

const SERVER: &str = "mariadb-10.11";

/// What the registry of the test and its client come in.
fn has_tools(test: &str) -> bool {
    let missing: Vec<&str> = ["docker-registry", "skopeo"]
        .into_iter()
        .filter(|tool| {
            let mut command = Command::new(tool);
            command
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.status().is_err()
        })
        .collect();
    if !missing.is_empty() {
        skip(&format!("{test} needs {}", missing.join(" and ")));
    }
    missing.is_empty()
}

/// A registry on loopback; ends with the value.
struct Registry {
    process: Child,
    port: u16,
    folder: PathBuf,
}

impl Registry {
    fn start(folder: PathBuf) -> Self {
        let port = free_port();
        std::fs::create_dir(&folder).unwrap();
        let config = folder.join("config.yml");
        let text = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:{port}\n",
            folder.display()
        );
        std::fs::write(&config, text).unwrap();
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let registry = Registry {
            process,
            port,
            folder,
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "no registry on port {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
        registry
    }

    fn name(&self, image: &str) -> String {
        format!("127.0.0.1:{}/{image}", self.port)
    }

    fn push(&self, layout: &Path, image: &str) {
        self.push_as(layout, image, "oci");
    }

    /// Pushes with a manifest of OCI (`oci`) or of Docker (`v2s2`).
    fn push_as(&self, layout: &Path, image: &str, format: &str) {
        let pushed = Command::new("skopeo")
            .args([
                "--insecure-policy",
                "copy",
                "--quiet",
                "--dest-tls-verify=false",
                "--format",
                format,
            ])
            .arg(format!("oci:{}:image", layout.display()))
            .arg(format!("docker://{}", self.name(image)))
            .output()
            .unwrap();
        assert!(pushed.status.success(), "{}", text_of(&pushed));
    }

    /// The file in which the registry keeps a blob.
    fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").unwrap();
        let blobs = self.folder.join("docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn text_of(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// An image layout with these layers in gzip, tagged `image`. Returns the digests of manifest and layers.
fn layout(folder: &Path, layers: &[Vec<u8>]) -> Vec<String> {
    let blobs = folder.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    let put = |bytes: &[u8]| -> (String, usize) {
        let hex: String = Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        std::fs::write(blobs.join(&hex), bytes).unwrap();
        (format!("sha256:{hex}"), bytes.len())
    };
    let descriptor = |kind: &str, (digest, size): &(String, usize)| -> Value {
        json!({ "mediaType": format!("application/vnd.oci.image.{kind}"), "digest": digest, "size": size })
    };
    let layers: Vec<(String, usize)> = layers.iter().map(|layer| put(layer)).collect();
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let config = json!({
        "os": "linux", "architecture": architecture, "config": {},
        "rootfs": { "type": "layers", "diff_ids": layers.iter().map(|layer| &layer.0).collect::<Vec<_>>() },
    });
    let config = put(config.to_string().as_bytes());
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("config.v1+json", &config),
        "layers": layers.iter().map(|layer| descriptor("layer.v1.tar+gzip", layer)).collect::<Vec<_>>(),
    });
    let manifest = put(manifest.to_string().as_bytes());
    let mut listed = descriptor("manifest.v1+json", &manifest);
    listed["annotations"] = json!({ "org.opencontainers.image.ref.name": "image" });
    let index = json!({ "schemaVersion": 2, "manifests": [listed] });
    std::fs::write(folder.join("index.json"), index.to_string()).unwrap();
    std::fs::write(
        folder.join("oci-layout"),
        "{\"imageLayoutVersion\": \"1.0.0\"}",
    )
    .unwrap();
    let layers = layers.into_iter().map(|layer| layer.0);
    std::iter::once(manifest.0).chain(layers).collect()
}

/// A layer of what lies in a folder.
fn packed(folder: &Path) -> Vec<u8> {
    let tar = Command::new("tar")
        .args(["--create", "--use-compress-program=gzip -1", "--directory"])
        .arg(folder)
        .arg(".")
        .output()
        .unwrap();
    assert!(
        tar.status.success(),
        "{}",
        String::from_utf8_lossy(&tar.stderr)
    );
    tar.stdout
}

/// Two layers with a server: its package; and the C library of this machine with an absolute link to its loader, as in the
/// images of distributions, and a whiteout for a plugin of the package.
fn server_layers(dir: &Path) -> [Vec<u8>; 2] {
    let package = home().join("servers").join(SERVER);
    let daemon = package.join("usr/sbin/mariadbd");
    let libraries = Command::new("ldd")
        .arg(&daemon)
        .env("LD_LIBRARY_PATH", package.join("usr/lib/x86_64-linux-gnu"))
        .output()
        .unwrap();
    let listed = String::from_utf8_lossy(&libraries.stdout).into_owned();
    let files: Vec<&Path> = listed
        .split_ascii_whitespace()
        .filter(|word| word.starts_with('/') && !Path::new(word).starts_with(&package))
        .map(Path::new)
        .collect();
    let upper = dir.join("upper");
    let folder = upper.join("lib/system");
    std::fs::create_dir_all(&folder).unwrap();
    let mut loader = None;
    for file in files {
        let name = file.file_name().unwrap();
        std::fs::copy(file, folder.join(name)).unwrap();
        if name.to_string_lossy().starts_with("ld-linux") {
            loader = Some(name.to_owned());
        }
    }
    let loader = loader.expect("the daemon is linked dynamically");
    std::fs::create_dir_all(upper.join("lib64")).unwrap();
    std::os::unix::fs::symlink(
        Path::new("/lib/system").join(&loader),
        upper.join("lib64").join(&loader),
    )
    .unwrap();
    std::fs::create_dir_all(upper.join("etc/ld.so.conf.d")).unwrap();
    std::fs::write(
        upper.join("etc/ld.so.conf.d/system.conf"),
        "# A list.\n/lib/system\n",
    )
    .unwrap();
    let plugins = upper.join("usr/lib/mysql/plugin");
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::write(plugins.join(".wh.ha_rocksdb.so"), "").unwrap();
    [packed(&package), packed(&upper)]
}

/// The program in a home of its own, from which nothing is left.
fn program(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbduel"));
    command.arg("--home").arg(home).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Installing `server` fails, with all of `parts` in what is said.
#[track_caller]
fn refused(home: &Path, server: &str, parts: &[&str]) {
    let output = program(home, &["servers", "install", server]);
    let said = text_of(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in parts {
        assert!(said.contains(part), "{server}: no `{part}` in:\n{said}");
    }
    let left = std::fs::read_dir(home.join("servers")).unwrap().count();
    assert_eq!(left, 0, "{server}");
}

#[test(lab, needs = &[SERVER])]
fn a_server_of_an_image_duels_with_that_of_a_package() {
    if !has_tools("a duel with an image") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::start(dir.path().join("registry"));
    let digests = layout(&dir.path().join("layout"), &server_layers(dir.path()));
    registry.push(&dir.path().join("layout"), "team/mariadb:10.11");
    let private = dir.path().join("home");
    let package = format!("path:{}", home().join("servers").join(SERVER).display());
    let image = format!("oci:{}", registry.name("team/mariadb:10.11"));

    let experiment = dir.path().join("duel.toml");
    std::fs::write(&experiment, short_experiment([&package, &image], "")).unwrap();
    let experiment = experiment.to_str().unwrap();
    let plan = text_of(&program(&private, &["run", experiment, "--plan"]));
    assert!(
        plan.contains(&format!("{image} (of unknown size, from oci)")),
        "{plan}"
    );
    let results = dir.path().join("results");
    let output = program(
        &private,
        &["run", experiment, "--results", results.to_str().unwrap()],
    );
    // Decided, or undecided on a busy machine.
    let said = text_of(&output);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    let record = std::fs::read_dir(&results)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let builds: Vec<Value> = Record::open(&record)
        .unwrap()
        .plan
        .contenders
        .iter()
        .map(|contender| {
            let build = record
                .join("contenders")
                .join(&contender.name)
                .join("server-build.json");
            serde_json::from_slice(&std::fs::read(build).unwrap()).unwrap()
        })
        .collect();
    assert_eq!(builds[0]["version"], builds[1]["version"]);
    assert_eq!(builds[0]["daemon_digests"], builds[1]["daemon_digests"]);
    // Manifest and layers, as they were pushed.
    let fetched = builds[1]["artifacts"].as_array().unwrap();
    let sha256 =
        |artifact: &Value| format!("sha256:{}", artifact["digests"]["sha256"].as_str().unwrap());
    assert_eq!(fetched.iter().map(sha256).collect::<Vec<_>>(), digests);
    assert_eq!(
        fetched[0]["name"],
        format!("{} {}", registry.name("team/mariadb:10.11"), digests[0])
    );

    // It ran on its own C library, and the upper layer hid a plugin of the lower one.
    let tree = std::fs::read_dir(private.join("servers"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.file_name()
                .unwrap()
                .as_encoded_bytes()
                .starts_with(b"oci-")
        })
        .unwrap();
    let loader = std::fs::read_dir(tree.join("lib64"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    // The link was absolute, and leads to the image's own file.
    assert!(
        std::fs::read_link(&loader)
            .unwrap()
            .starts_with("../lib/system")
    );
    assert!(
        builds[1]["loader"]
            .as_str()
            .unwrap()
            .ends_with(loader.file_name().unwrap().to_str().unwrap())
    );
    assert!(!tree.join("usr/lib/mysql/plugin/ha_rocksdb.so").exists());
    assert!(
        tree.join("usr/lib/mysql/plugin")
            .read_dir()
            .unwrap()
            .count()
            > 1
    );
    assert_eq!(servers_left(), []);

    // It is here now, and so is the layout that it could have come from.
    drop(registry);
    assert!(
        program(&private, &["servers", "install", &image])
            .status
            .success()
    );
    assert_eq!(
        std::fs::read_dir(private.join("downloads/oci"))
            .unwrap()
            .count(),
        0
    );
    let layout = format!("oci:{}", dir.path().join("layout").display());
    let installed = program(&private, &["servers", "install", &layout]);
    assert!(installed.status.success(), "{}", text_of(&installed));
}

#[test]
fn images_that_cannot_be_had_or_trusted_are_refused() {
    if !has_tools("images that are refused") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let private = dir.path().join("home");
    std::fs::create_dir_all(dir.path().join("files/etc")).unwrap();
    std::fs::write(dir.path().join("files/etc/motd"), "no server").unwrap();
    let layers = [packed(&dir.path().join("files"))];
    let good = dir.path().join("good");
    let digests = layout(&good, &layers);
    let registry = Registry::start(dir.path().join("registry"));
    registry.push(&good, "files:1");
    registry.push_as(&good, "files:docker", "v2s2");
    let oci = |image: &str| format!("oci:{}", registry.name(image));

    refused(&private, &oci("files:1"), &["there is no `mariadbd`"]);
    refused(&private, &oci("files:docker"), &["there is no `mariadbd`"]);
    refused(
        &private,
        &oci("files:2"),
        &["could not get the manifest", "check its name and tag"],
    );
    refused(&private, &oci("missing:1"), &["check its name and tag"]);
    let other = format!("files@sha256:{}", "0".repeat(64));
    refused(&private, &oci(&other), &["check its name and tag"]);
    let closed = format!("oci:127.0.0.1:{}/files:1", free_port());
    refused(
        &private,
        &closed,
        &[
            "connection refused",
            "is reachable",
            "skopeo copy docker://",
        ],
    );

    // A known name means an image, here of a mirror, and promises a version.
    let containers = dir.path().join("user/.config/containers");
    std::fs::create_dir_all(&containers).unwrap();
    let text = format!(
        "[[registry]]\nprefix = \"docker.io\"\nlocation = \"{}\"\ninsecure = true\n",
        registry.name("mirror")
    );
    std::fs::write(containers.join("registries.conf"), text).unwrap();
    registry.push(&good, "mirror/library/mariadb:12");
    let installed = Command::new(env!("CARGO_BIN_EXE_dbduel"))
        .arg("--home")
        .arg(&private)
        .args(["servers", "install", "mariadb-12"])
        .env("HOME", dir.path().join("user"))
        .output()
        .unwrap();
    let said = text_of(&installed);
    assert!(
        said.contains("could not get the server `mariadb-12`"),
        "{said}"
    );
    assert!(said.contains("there is no `mariadbd`"), "{said}");
    let listed = text_of(&program(&private, &["servers", "list"]));
    assert!(
        listed.contains("image docker.io/library/mariadb:12, will be pulled"),
        "{listed}"
    );
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("  sqlite") && line.contains("built in"))
    );

    // A layer that is not what the manifest names: from a registry and on disk.
    let blob = registry.blob(&digests[1]);
    let mut bytes = std::fs::read(&blob).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&blob, &bytes).unwrap();
    let downloads = private.join("downloads/oci");
    let _ = std::fs::remove_dir_all(&downloads);
    refused(&private, &oci("files:1"), &["do not match the manifest"]);
    let damaged = dir.path().join("damaged");
    layout(&damaged, &layers);
    let hex = digests[1].strip_prefix("sha256:").unwrap();
    std::fs::write(damaged.join("blobs/sha256").join(hex), &bytes).unwrap();
    let on_disk = |folder: &Path| format!("oci:{}", folder.display());
    refused(
        &private,
        &on_disk(&damaged),
        &["is not the layer that its manifest names", &digests[1]],
    );
    refused(
        &private,
        &on_disk(&dir.path().join("files")),
        &["is not an OCI image layout"],
    );
    refused(
        &private,
        &format!("{}:other", on_disk(&good)),
        &["has 1 images, tagged image"],
    );

    // A layer that leads out of the image.
    let outside = dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let hostile = dir.path().join("hostile");
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    let path = format!("../../../../../../../..{}/evil", outside.display());
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_size(4);
    header.set_cksum();
    builder.append(&header, &b"evil"[..]).unwrap();
    layout(&hostile, &[builder.into_inner().unwrap()]);
    refused(
        &private,
        &on_disk(&hostile),
        &["could not unpack the layer", "leads outside of it"],
    );
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}
