//! The password file that PostgreSQL's own clients read: `PGPASSFILE`, or `~/.pgpass`.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::address::Address;

/// Maximum number of bytes of the file that are read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Permission bits of group and others with which libpq ignores the file.
const RIGHTS_OF_OTHERS: u32 = 0o077;

/// Socket folders that libpq calls `localhost`: PostgreSQL's default, and those of distributions.
const SOCKET_FOLDERS: &[&str] = &["/tmp", "/var/run/postgresql", "/run/postgresql"];

/// A password file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PasswordFileError {
    /// It cannot be read.
    #[error("could not read the password file `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It has a line for the server, and group or others have access to it.
    #[error(
        "`{}` has a password for this server, but PostgreSQL's clients ignore the file because group or others have access; \
         run `chmod 600 {}`", path.display(), path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
    },
}

/// The password of `user` on the server at `place`; `None` without a file or a line for it.
///
/// # Errors
/// The file cannot be read, or has a line for the server and is accessible to group or others.
pub fn password(place: &Address, user: &str) -> Result<Option<String>, PasswordFileError> {
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".pgpass"));
    match named.or_else(home) {
        Some(path) if path.is_file() => in_file(&path, place, user),
        _ => Ok(None),
    }
}

fn in_file(path: &Path, place: &Address, user: &str) -> Result<Option<String>, PasswordFileError> {
    let unreadable = |source| PasswordFileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let rights = file.metadata().map_err(unreadable)?.permissions().mode();
    let mut text = String::new();
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    let found = in_text(&text, place, user);
    if found.is_some() && rights & RIGHTS_OF_OTHERS != 0 {
        return Err(PasswordFileError::Open {
            path: path.to_owned(),
        });
    }
    Ok(found)
}

/// The password of the first line `host:port:database:user:password` that matches. The database is ignored, because a
/// role has one password for the whole cluster.
fn in_text(text: &str, place: &Address, user: &str) -> Option<String> {
    let (hosts, port): (Vec<String>, String) = match place {
        Address::Tcp { host, port } => (vec![host.clone()], port.to_string()),
        Address::Unix { path } => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let is_default = SOCKET_FOLDERS
                .iter()
                .any(|known| folder == Path::new(known));
            let mut hosts = vec![folder.display().to_string()];
            hosts.extend(is_default.then(|| "localhost".to_owned()));
            let port = path.extension().unwrap_or_default();
            (hosts, port.to_string_lossy().into_owned())
        }
        // A file has no accounts.
        Address::File { .. } => return None,
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let [host, its_port, _database, its_user, password] =
            <[String; 5]>::try_from(fields).ok()?;
        let fits = |field: &str, wanted: &str| field == "*" || field == wanted;
        let is_it = hosts.iter().any(|wanted| fits(&host, wanted))
            && fits(&its_port, &port)
            && fits(&its_user, user);
        is_it.then_some(password)
    })
}

/// The fields of a line. A backslash escapes a colon or a backslash.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let escaped = (character == '\\').then(|| characters.next()).flatten();
        match (character, escaped) {
            (':', _) if fields.len() < 5 => fields.push(String::new()),
            (character, escaped) => {
                if let Some(field) = fields.last_mut() {
                    field.push(escaped.unwrap_or(character));
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp() -> Address {
        Address::Tcp {
            host: "db.example".to_owned(),
            port: 5432,
        }
    }

    fn socket(folder: &str) -> Address {
        Address::Unix {
            path: Path::new(folder).join(".s.PGSQL.5433"),
        }
    }

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# host:port:database:user:password\n\
                    other:5432:*:ann:no\n\
                    db.example:5432:sbtest:ann:of\\:ann\\\\\n\
                    localhost:5433:*:*:of the socket\n\
                    *:*:*:ben:a:b\n";
        let of = |place: &Address, user| in_text(text, place, user);
        assert_eq!(of(&tcp(), "ann").as_deref(), Some("of:ann\\"));
        assert_eq!(of(&tcp(), "ben").as_deref(), Some("a:b"));
        assert_eq!(of(&tcp(), "eve"), None);
        let default = socket("/var/run/postgresql");
        assert_eq!(of(&default, "eve").as_deref(), Some("of the socket"));
        assert_eq!(of(&socket("/elsewhere"), "eve"), None);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_when_it_would_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        std::fs::write(&path, "*:*:*:ann:secret\n").unwrap();
        let set = |mode| {
            let rights = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, rights).unwrap();
        };
        set(0o600);
        let found = in_file(&path, &tcp(), "ann").unwrap();
        assert_eq!(found.as_deref(), Some("secret"));
        set(0o644);
        let error = in_file(&path, &tcp(), "ann").unwrap_err().to_string();
        assert!(
            error.contains("chmod 600") && !error.contains("secret"),
            "{error}"
        );
        assert_eq!(in_file(&path, &tcp(), "eve").unwrap(), None);
    }
}
