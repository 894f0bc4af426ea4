//! What the logs of MySQL and MariaDB have in common: the header of a log file, and names of accounts.

use super::LogProduct;
use super::text::{find, number, without_line_end};

/// The server that wrote a log, as its header has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogServer {
    pub(super) product: LogProduct,
    /// Major, minor and patch.
    pub(super) version: (u32, u32, u32),
}

/// Finds the three lines that a server writes whenever it opens a log: at its start and at FLUSH LOGS, so also in the middle of a file.
#[derive(Debug, Default)]
pub(super) struct HeaderFinder {
    lines: u8,
    at: usize,
    server: Option<LogServer>,
}

impl HeaderFinder {
    /// Takes the line that begins at `at` of its buffer. After the third line of a header: where the first begins, and the server.
    pub(super) fn push(&mut self, line: &[u8], at: usize) -> Option<(usize, LogServer)> {
        let line = without_line_end(line);
        if line.ends_with(b"started with:")
            && let Some(server) = server_of(line)
        {
            *self = Self {
                lines: 1,
                at,
                server: Some(server),
            };
            return None;
        }
        if self.lines == 0 {
            return None;
        }
        // `Tcp port: 3306  Unix socket: …`, on Windows `TCP Port: 3306, Named Pipe: …`.
        let is_port = |line: &[u8]| {
            let start = line.get(..9);
            start.is_some_and(|start| start.eq_ignore_ascii_case(b"tcp port:"))
        };
        match self.lines {
            1 if is_port(line) => self.lines = 2,
            2 if line.starts_with(b"Time") && line.ends_with(b"Argument") => {
                self.lines = 0;
                return self.server.map(|server| (self.at, server));
            }
            _ => self.lines = 0,
        }
        None
    }

    /// To be called when the buffer was emptied.
    pub(super) fn buffer_emptied(&mut self) {
        self.at = 0;
    }
}

/// `mysqld, Version: 10.11.19-MariaDB-0+deb12u1 (Debian 12). started with:`.
fn server_of(line: &[u8]) -> Option<LogServer> {
    let mark = b", Version: ";
    let at = find(line, mark)? + mark.len();
    let mut numbers = line[at..]
        .split(|byte| !byte.is_ascii_digit())
        .map(|digits| number(digits).and_then(|value| u32::try_from(value).ok()));
    let mut next = || numbers.next().flatten();
    let product = match find(&line[at..], b"MariaDB") {
        Some(_) => LogProduct::Mariadb,
        None => LogProduct::Mysql,
    };
    Some(LogServer {
        product,
        version: (next()?, next().unwrap_or(0), next().unwrap_or(0)),
    })
}

/// Login name in `priv[login] @ host [address]`.
pub(super) fn login_name(user_host: &[u8]) -> &[u8] {
    let end = find(user_host, b"] @ ").unwrap_or(user_host.len());
    let names = &user_host[..end];
    let start = names.iter().position(|byte| *byte == b'[');
    start.map_or(names, |start| &names[start + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_its_server() {
        let mut finder = HeaderFinder::default();
        let first = b"/usr/sbin/mariadbd, Version: 11.8.9-MariaDB-0+deb13u1 from Debian (x). started with:\n";
        assert_eq!(finder.push(first, 7), None);
        assert_eq!(finder.push(b"Tcp port: 0  Unix socket: SOCKET\n", 60), None);
        let found = finder.push(b"Time\t\t    Id Command\tArgument\n", 90);
        let server = LogServer {
            product: LogProduct::Mariadb,
            version: (11, 8, 9),
        };
        assert_eq!(found, Some((7, server)));
        assert_eq!(finder.push(b"Time\t\t    Id Command\tArgument\n", 90), None);
    }

    #[test]
    fn the_login_name_is_in_brackets() {
        assert_eq!(login_name(b"root[shop] @ localhost []"), b"shop");
        assert_eq!(login_name(b"[root] @ localhost []"), b"root");
        assert_eq!(login_name(b""), b"");
    }
}
