//! The system tables of servers that are initialised by their own SQL on standard input.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// One piece of what a bootstrap reads.
pub enum Piece<'a> {
    /// A statement of the lab.
    Text(&'a str),
    /// A file that must be there.
    File(&'a str),
    /// A file that some versions lack.
    Optional(&'a str),
}

/// Puts the pieces together. Every piece ends with a line end: a bootstrap reads statements by lines.
///
/// # Errors
/// A file that must be there cannot be read.
pub fn assemble(folder: &Path, pieces: &[Piece<'_>]) -> Result<Vec<u8>> {
    let mut sql = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => sql.extend_from_slice(text.as_bytes()),
            Piece::Optional(name) if !folder.join(name).is_file() => continue,
            Piece::File(name) | Piece::Optional(name) => {
                let path = folder.join(name);
                let text = fs::read(&path).with_context(|| {
                    format!("could not read the system tables of the server from `{}`; the tree is not complete", path.display())
                })?;
                sql.extend_from_slice(&text);
            }
        }
        sql.push(b'\n');
    }
    Ok(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_a_line_and_optional_ones_may_lack() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.sql"), "CREATE TABLE a (i int);").unwrap();
        let pieces = [
            Piece::Text("use mysql;"),
            Piece::File("a.sql"),
            Piece::Optional("b.sql"),
        ];
        assert_eq!(
            assemble(dir.path(), &pieces).unwrap(),
            b"use mysql;\nCREATE TABLE a (i int);\n"
        );
        let error = assemble(dir.path(), &[Piece::File("b.sql")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("b.sql") && error.contains("not complete"),
            "{error}"
        );
    }
}
