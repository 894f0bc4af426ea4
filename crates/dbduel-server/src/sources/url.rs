//! A vendor's archive on a web server, fetched by the machine's own `curl` with its proxies and certificates.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::command::{Tool, quote};
use super::super::{digest, unpack};
use super::{FetchContext, Fetched, Source, unpacked};

const DEADLINE: Duration = Duration::from_secs(4 * 3600);
/// Timeout for querying a size.
const SIZE_DEADLINE: Duration = Duration::from_secs(60);
const REMEDY: &str = "install the package `curl`, it fetches this server";
/// Exit status of `curl` when the server cannot continue a download.
const CANNOT_CONTINUE: i32 = 33;
/// Prefix of a checksum after the address.
const CHECKSUM: &str = "#sha256=";

/// `url:https://…/mysql-8.4.6-linux-glibc2.28-x86_64.tar.xz#sha256=…`.
pub const SOURCE: Source = Source {
    scheme: "url",
    about: "An archive on a web server, fetched with `curl`; an interrupted download is resumed. Without #sha256=… the digest is only recorded.",
    example: "url:https://example.org/mysql-8.4.6-linux-glibc2.28-x86_64.tar.xz",
    is_in_place: false,
    check,
    fetch,
};

/// The parts of a locator.
struct Download<'a> {
    address: &'a str,
    file: &'a str,
    sha256: Option<&'a str>,
}

impl<'a> Download<'a> {
    fn parse(locator: &'a str) -> Result<Self, String> {
        let (address, sha256) = match locator.split_once(CHECKSUM) {
            Some((address, sha256)) => (address, Some(sha256)),
            None => (locator, None),
        };
        let encrypted = address.strip_prefix("https://");
        let Some(rest) = encrypted.or_else(|| address.strip_prefix("http://")) else {
            return Err(format!(
                "`{address}` does not begin with https:// or http://"
            ));
        };
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some(character) = address.chars().find(|c| !c.is_ascii_graphic() || *c == '#') {
            return Err(format!("`{address}` contains the character `{character}`"));
        }
        let path = path.split('?').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        if host.is_empty() || file.starts_with('.') || unpack::kind(Path::new(file)).is_none() {
            return Err(format!(
                "`{address}` does not end in {}",
                unpack::ENDINGS.join(", ")
            ));
        }
        let is_digest =
            |text: &str| text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit());
        match sha256 {
            Some(sha256) if !is_digest(sha256) => Err(format!(
                "`{sha256}` is not a SHA-256 digest of 64 hexadecimal digits"
            )),
            None if encrypted.is_none() => Err(format!(
                "`{address}` is not encrypted and could be changed in transit; add {CHECKSUM}DIGEST with the digest that \
                 the vendor publishes"
            )),
            sha256 => Ok(Download {
                address,
                file,
                sha256,
            }),
        }
    }
}

/// True when an address contains a login, which may include a password.
pub fn names_user(locator: &str) -> bool {
    let authority = locator
        .split_once("://")
        .map(|(_, rest)| rest.split('/').next());
    authority.flatten().is_some_and(|host| host.contains('@'))
}

fn check(locator: &str) -> Result<(), String> {
    Download::parse(locator).map(|_| ())
}

fn fetch(locator: &str, context: &FetchContext<'_>) -> Result<Fetched> {
    let download = Download::parse(locator).map_err(anyhow::Error::msg)?;
    let Download {
        address,
        file,
        sha256,
    } = download;
    // Of one address and checksum: what another one left is not continued.
    let key = &blake3::hash(locator.as_bytes()).to_hex()[..16];
    let folder = context.home.downloads().join("url").join(key);
    fs::create_dir_all(&folder)
        .with_context(|| format!("could not create `{}`", folder.display()))?;
    let archive = folder.join(file);
    if !archive.is_file() {
        download_into(&folder, address, &archive, context)?;
    }
    if let Some(expected) = sha256 {
        let found = digest::of_file(&archive)?.sha256;
        if !found.eq_ignore_ascii_case(expected) {
            let _ = fs::remove_dir_all(&folder);
            bail!(
                "`{address}` is not the expected file: its SHA-256 is {found}, expected {expected}; it was removed"
            );
        }
    }
    unpacked(locator, &archive, vec![folder], context)
}

/// Fetches `address`, or its missing part, and renames it to `archive` once complete.
fn download_into(
    folder: &Path,
    address: &str,
    archive: &Path,
    context: &FetchContext<'_>,
) -> Result<()> {
    let part = folder.join("part");
    let total = size(address).or(context.expected_bytes);
    let curl = || {
        Tool::new("curl", REMEDY)
            .with(|command| {
                command
                    .args([
                        "--fail",
                        "--silent",
                        "--show-error",
                        "--location",
                        "--netrc-optional",
                    ])
                    // A redirection leads to no file of this machine, and to nothing less safe than what was asked for.
                    .args(["--proto", "=https,http", "--proto-redir"])
                    .arg(if address.starts_with("https:") {
                        "=https"
                    } else {
                        "=https,http"
                    })
                    .args([
                        "--connect-timeout",
                        "30",
                        "--speed-limit",
                        "1000",
                        "--speed-time",
                        "60",
                    ])
                    .args(["--continue-at", "-", "--output"])
                    .arg(&part)
                    .args(["--", address]);
            })
            .watching(folder, total, context.progress)
    };
    let mut finished = curl().run(DEADLINE)?;
    if finished.status.code() == Some(CANNOT_CONTINUE) {
        fs::remove_file(&part).with_context(|| format!("could not remove `{}`", part.display()))?;
        finished = curl().run(DEADLINE)?;
    }
    if !finished.status.success() {
        bail!(
            "could not fetch `{address}` ({}){}\nThe partial download is kept and resumed by the next try; remove `{}` to \
             start over",
            finished.status,
            quote(&finished.stderr),
            folder.display()
        );
    }
    fs::rename(&part, archive).with_context(|| format!("could not rename `{}`", part.display()))
}

/// The file's size in bytes, as reported by the server.
fn size(address: &str) -> Option<u64> {
    let answer = Tool::new("curl", REMEDY)
        .with(|command| {
            command
                .args([
                    "--head",
                    "--netrc-optional",
                    "--fail",
                    "--silent",
                    "--location",
                    "--max-time",
                    "30",
                ])
                .args(["--", address]);
        })
        .run(SIZE_DEADLINE)
        .ok()?;
    // Each redirection has headers of its own; the last are the file's.
    let mut lengths = answer.stdout.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    lengths.next_back().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use dbduel_test_attribute::needs_program;

    use super::super::super::home::Home;
    use super::super::super::progress::Silent;
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    #[track_caller]
    fn refused(locator: &str, part: &str) {
        let error = check(locator).unwrap_err();
        assert!(error.contains(part), "`{locator}`: {error}");
    }

    #[test]
    fn what_is_not_an_archive_on_a_web_server_is_refused() {
        let digest = "0".repeat(64);
        assert_eq!(check(SOURCE.example.strip_prefix("url:").unwrap()), Ok(()));
        assert_eq!(
            check(&format!("http://h/x.tar.gz{CHECKSUM}{digest}")),
            Ok(())
        );
        assert_eq!(check("https://h/x.tar.gz?version=2"), Ok(()));
        refused("ftp://h/x.tar.gz", "https://");
        refused("file:///etc/x.tar.gz", "https://");
        refused("https://h/x.exe", "does not end in");
        refused("https://h", "does not end in");
        refused("http://h/x.tar.gz", "could be changed in transit");
        refused("https://h/x.tar.gz#sha256=12", "64 hexadecimal digits");
        refused("https://h/a b.tar.gz", "the character");
    }

    /// What a server was asked for: method and first byte.
    type Requests = Arc<Mutex<Vec<(String, usize)>>>;

    /// Serves `body` on loopback: the first answer with content breaks off in the middle, later ones begin where they are asked
    /// to. Returns the port and what was asked for: method and first byte.
    fn serve(body: Vec<u8>) -> (u16, Requests) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut is_broken = true;
            for stream in listener.incoming().map_while(Result::ok) {
                let (method, from) = answer(&stream, &body, &mut is_broken);
                noted.lock().unwrap().push((method, from));
            }
        });
        (port, asked)
    }

    fn answer(mut stream: &TcpStream, body: &[u8], is_broken: &mut bool) -> (String, usize) {
        let mut from = 0;
        let mut method = String::new();
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if method.is_empty() {
                method = line.split(' ').next().unwrap().to_owned();
            }
            if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
                from = range.trim_end_matches('-').parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let rest = &body[from..];
        let status = match from {
            0 => "200 OK".to_owned(),
            _ => format!(
                "206 Partial Content\r\nContent-Range: bytes {from}-{}/{}",
                body.len() - 1,
                body.len()
            ),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            rest.len()
        );
        // A client that has gone away is judged by its exit status.
        let _ = stream.write_all(head.as_bytes());
        if method == "GET" {
            let sent = if *is_broken {
                rest.len() / 2
            } else {
                rest.len()
            };
            *is_broken = false;
            let _ = stream.write_all(&rest[..sent]);
        }
        (method, from)
    }

    #[test]
    #[needs_program("curl")]
    fn a_broken_download_is_continued_and_a_wrong_checksum_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        // Random bytes, so that the archive is about as large as they are.
        let noise: Vec<u8> = (0..200_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        fs::create_dir(at("server")).unwrap();
        fs::write(at("server/mysqld"), &noise).unwrap();
        let packed = Command::new("tar")
            .args(["-czf", "server.tar.gz", "server"])
            .current_dir(dir.path())
            .status();
        assert!(packed.unwrap().success());
        let body = fs::read(at("server.tar.gz")).unwrap();
        let sha256 = digest::of_file(&at("server.tar.gz")).unwrap().sha256;
        let (port, asked) = serve(body.clone());
        let home = Home::new(at("home"));
        fs::create_dir(at("staging")).unwrap();
        let fetch = |sha256: &str| {
            let context = FetchContext {
                home: &home,
                staging: &at("staging"),
                expected_bytes: None,
                progress: &Silent,
            };
            super::fetch(
                &format!("http://127.0.0.1:{port}/server.tar.gz{CHECKSUM}{sha256}"),
                &context,
            )
        };
        let broken = fetch(&sha256).unwrap_err().to_string();
        assert!(broken.contains("resumed by the next try"), "{broken}");
        let fetched = fetch(&sha256).unwrap();
        assert_eq!(fetched.artifacts[0].digests.sha256, sha256);
        assert_eq!(fs::read(at("staging/server/mysqld")).unwrap(), noise);
        let gets: Vec<usize> = asked
            .lock()
            .unwrap()
            .iter()
            .filter(|(method, _)| method == "GET")
            .map(|(_, from)| *from)
            .collect();
        assert_eq!(gets, [0, body.len() / 2]);
        let wrong = fetch(&"0".repeat(64)).unwrap_err().to_string();
        assert!(
            wrong.contains(&format!("its SHA-256 is {sha256}")),
            "{wrong}"
        );
    }
}
