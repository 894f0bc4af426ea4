//! A dump with other values: those that an anonymous capture has for the same ones.
//!
//! The dump is read twice: first its definitions, whose names and listed values stay, then all of it. One statement or row is in memory.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use dbduel_capture::anonymise::{Dropped, Replacer, Rewriter, learn as learn_definition};
use dbduel_sql::Syntax;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::input::open;
use crate::reader::{Piece, Reader};
use crate::{DumpError, Format};

/// Buffer of the output, and of the rows of COPY, bytes.
const BUFFER: usize = 256 << 10;
/// What psql and the clients of MySQL do, beside their delimiter.
const COMMAND: Dropped = Dropped("a command of a client");

/// What became of a dump's statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Anonymised {
    /// Statements that were written.
    pub statements: u64,
    /// Rows of COPY that were written.
    pub copied_rows: u64,
    /// Bytes that were read, decompressed.
    pub bytes: u64,
    /// Statements that were dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Those of them that bring rows, by reason: the tables lack these rows.
    pub dropped_with_rows: BTreeMap<&'static str, u64>,
    /// Rows of the COPY statements among these.
    pub dropped_copied_rows: u64,
}

/// Called with the bytes of the file that were read so far; its error ends the work.
pub type Observe<'a> = dyn FnMut(u64) -> io::Result<()> + 'a;

/// Has the replacer keep the names and the listed values of a dump's definitions.
///
/// # Errors
/// When the file cannot be read or is no dump.
pub fn learn(
    path: &Path,
    replacer: &mut Replacer,
    observe: &mut Observe<'_>,
) -> Result<(), DumpError> {
    let mut observe = |bytes| observe(bytes);
    let (format, input) = open(path, &mut observe)?;
    let syntax = syntax_of(format);
    let mut reader = Reader::new(path, input, syntax);
    while let Some(piece) = reader.advance()? {
        match piece {
            Piece::Statement => learn_definition(reader.text(), syntax, replacer),
            Piece::Copy => {
                let mut rows = reader.rows();
                io::copy(&mut rows, &mut io::sink()).map_err(crate::input::unreadable(path))?;
            }
            Piece::Command if syntax.is_mysql => reader.set_delimiter()?,
            Piece::Command | Piece::Sandbox => {}
        }
    }
    Ok(())
}

/// Writes a dump with the replacer's values to the new file `target`, compressed with gzip; only its owner may read it.
///
/// # Errors
/// When the dump cannot be read, or `target` exists or cannot be written. A part of it may remain.
pub fn anonymise(
    path: &Path,
    target: &Path,
    replacer: &mut Replacer,
    observe: &mut Observe<'_>,
) -> Result<Anonymised, DumpError> {
    let failed = |source| DumpError::Write {
        path: target.to_owned(),
        source,
    };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)
        .map_err(failed)?;
    let mut observe = |bytes| observe(bytes);
    let (format, input) = open(path, &mut observe)?;
    let syntax = syntax_of(format);
    let encoder = GzEncoder::new(BufWriter::with_capacity(BUFFER, file), Compression::fast());
    let mut work = Work {
        reader: Reader::new(path, input, syntax),
        rewriter: Rewriter::of_dump(replacer, syntax),
        out: BufWriter::with_capacity(BUFFER, encoder),
        delimiter: b";".to_vec(),
        text: Vec::new(),
        found: Anonymised::default(),
        path,
        target,
    };
    work.all(format)?;
    let Work { out, found, .. } = work;
    let close = || -> io::Result<()> {
        let encoder = out.into_inner()?;
        let file = encoder.finish()?.into_inner()?;
        file.sync_all()
    };
    close().map_err(failed)?;
    Ok(found)
}

fn syntax_of(format: Format) -> Syntax {
    match format {
        Format::MySql => Syntax::MYSQL,
        Format::PostgreSql | Format::PostgreSqlArchive => Syntax::POSTGRESQL,
    }
}

/// A dump that is being copied.
struct Work<'a, 'r, W: Write> {
    reader: Reader<'a>,
    rewriter: Rewriter<'r>,
    out: W,
    delimiter: Vec<u8>,
    text: Vec<u8>,
    found: Anonymised,
    path: &'a Path,
    target: &'a Path,
}

impl<W: Write> Work<'_, '_, W> {
    fn all(&mut self, format: Format) -> Result<(), DumpError> {
        // By which dumps are recognised.
        let head = match format {
            Format::MySql => "-- MySQL dump, its values replaced by dbduel\n",
            Format::PostgreSql | Format::PostgreSqlArchive => {
                "-- PostgreSQL database dump, its values replaced by dbduel\n"
            }
        };
        self.write(head.as_bytes())?;
        while let Some(piece) = self.reader.advance()? {
            match piece {
                Piece::Statement => {
                    self.statement()?;
                }
                Piece::Copy => self.copy()?,
                Piece::Command if format == Format::MySql => self.delimiter()?,
                Piece::Command => self.drop_one(COMMAND),
                // The loader needs no protection from commands of a client.
                Piece::Sandbox => {}
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DumpError> {
        self.out
            .write_all(bytes)
            .map_err(|source| DumpError::Write {
                path: self.target.to_owned(),
                source,
            })
    }

    fn drop_one(&mut self, why: Dropped) {
        *self.found.dropped.entry(why.0).or_default() += 1;
    }

    /// Writes a statement; false where it is dropped.
    fn statement(&mut self) -> Result<bool, DumpError> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let source = self.reader.text();
        self.found.bytes += source.len() as u64;
        let rewritten = self.rewriter.rewrite(source, &mut text);
        match rewritten {
            Ok(()) => {
                text.extend_from_slice(&self.delimiter);
                text.push(b'\n');
                self.write(&text)?;
                self.found.statements += 1;
            }
            Err(why) => {
                let begins = |word: &[u8]| {
                    let head = source.get(..word.len()).unwrap_or_default();
                    head.eq_ignore_ascii_case(word)
                };
                let brings_rows = [&b"INSERT"[..], b"REPLACE", b"COPY"]
                    .into_iter()
                    .any(begins);
                if brings_rows {
                    *self.found.dropped_with_rows.entry(why.0).or_default() += 1;
                }
                self.drop_one(why);
            }
        }
        self.text = text;
        Ok(rewritten.is_ok())
    }

    /// Writes a COPY with its rows.
    fn copy(&mut self) -> Result<(), DumpError> {
        let is_written = self.statement()?;
        let mut rows = BufReader::with_capacity(BUFFER, self.reader.rows());
        let (mut row, mut replaced, mut value) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            row.clear();
            let length = rows
                .read_until(b'\n', &mut row)
                .map_err(crate::input::unreadable(self.path))?;
            if length == 0 {
                break;
            }
            self.found.bytes += length as u64;
            if !is_written {
                self.found.dropped_copied_rows += 1;
                continue;
            }
            replaced.clear();
            copy_row(&row, self.rewriter.replacer(), &mut value, &mut replaced);
            self.found.copied_rows += 1;
            self.out
                .write_all(&replaced)
                .map_err(|source| DumpError::Write {
                    path: self.target.to_owned(),
                    source,
                })?;
        }
        match is_written {
            true => self.write(b"\\.\n"),
            false => Ok(()),
        }
    }

    fn delimiter(&mut self) -> Result<(), DumpError> {
        self.reader.set_delimiter()?;
        let line = self.reader.text().to_vec();
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        self.delimiter = words.nth(1).unwrap_or(b";").to_vec();
        self.write(&[b"DELIMITER ", &self.delimiter[..], b"\n"].concat())
    }
}

/// Appends a row of COPY with other values. `value` is a buffer.
fn copy_row(row: &[u8], replacer: &mut Replacer, value: &mut Vec<u8>, out: &mut Vec<u8>) {
    let line = row.strip_suffix(b"\n").unwrap_or(row);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    for (place, field) in line.split(|byte| *byte == b'\t').enumerate() {
        if place > 0 {
            out.push(b'\t');
        }
        if field == b"\\N" {
            out.extend_from_slice(field);
            continue;
        }
        value.clear();
        decode_field(field, value);
        let from = out.len();
        replacer.value(value, out);
        // Behind the field, so that no further buffer is needed.
        let replaced = out.split_off(from);
        encode_field(&replaced, out);
    }
    out.push(b'\n');
}

/// Escapes of a field of COPY, and what they stand for.
const ESCAPES: [(u8, u8); 7] = [
    (b'b', 8),
    (b't', b'\t'),
    (b'n', b'\n'),
    (b'v', 0x0b),
    (b'f', 0x0c),
    (b'r', b'\r'),
    (b'\\', b'\\'),
];

fn decode_field(field: &[u8], value: &mut Vec<u8>) {
    let mut rest = field;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        let Some((escape, behind)) = behind.split_first().filter(|_| *byte == b'\\') else {
            value.push(*byte);
            continue;
        };
        rest = behind;
        let coded = match escape {
            b'0'..=b'7' => Some((0, 8, 3)),
            b'x' if behind.first().is_some_and(u8::is_ascii_hexdigit) => Some((1, 16, 2)),
            _ => None,
        };
        if let Some((skipped, radix, most)) = coded {
            let text = &field[field.len() - behind.len() - 1 + skipped..];
            let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
            let digits = text.iter().take(most).take_while(is_digit);
            let (mut code, mut count) = (0_u32, 0);
            for digit in digits {
                code = code * radix + char::from(*digit).to_digit(radix).unwrap_or_default();
                count += 1;
            }
            value.push((code & 0xff) as u8);
            rest = &text[count..];
            continue;
        }
        let known = ESCAPES.iter().find(|(sign, _)| sign == escape);
        value.push(known.map_or(*escape, |(_, byte)| *byte));
    }
}

fn encode_field(value: &[u8], out: &mut Vec<u8>) {
    for byte in value {
        match ESCAPES.iter().find(|(_, known)| known == byte) {
            Some((sign, _)) => out.extend_from_slice(&[b'\\', *sign]),
            None => out.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use dbduel_capture::anonymise::KEY_BYTES;
    use proptest::prelude::*;

    use super::*;

    fn anonymised(dump: &str) -> (String, Anonymised) {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (folder.path().join("a.sql"), folder.path().join("b.sql.gz"));
        std::fs::write(&source, dump).unwrap();
        let mut replacer = Replacer::new(&[7; KEY_BYTES]);
        learn(&source, &mut replacer, &mut |_| Ok(())).unwrap();
        let found = anonymise(&source, &target, &mut replacer, &mut |_| Ok(())).unwrap();
        let mut text = String::new();
        let mut decoder = flate2::read::GzDecoder::new(std::fs::File::open(&target).unwrap());
        decoder.read_to_string(&mut text).unwrap();
        // It is a dump again.
        let again = anonymise(
            &target,
            &folder.path().join("c.gz"),
            &mut replacer,
            &mut |_| Ok(()),
        );
        assert_eq!(again.unwrap().statements, found.statements);
        (text, found)
    }

    #[test]
    fn rows_of_a_dump_get_other_values_and_its_definitions_stay() {
        let dump = "-- MySQL dump 10.13\n-- Host: annhost    Database: shop\n\
            CREATE TABLE `person` (`name` varchar(30), `state` enum('active','gone'), `age` int) AUTO_INCREMENT=98765;\n\
            INSERT INTO `person` VALUES ('Ann \\'Lee\\'','active',98764),('name','gone',-5);\nDELIMITER ;;\n\
            /*!50003 CREATE*/ /*!50017 DEFINER=`annlee`@`annhost`*/ /*!50003 TRIGGER t BEFORE INSERT ON person FOR EACH ROW SET NEW.name = 'Boblee'; */;;\n\
            DELIMITER ;\nCREATE USER annlee;\n";
        let (text, found) = anonymised(dump);
        for secret in ["Ann", "annlee", "annhost", "Boblee", "98764", "98765"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        for kept in [
            "enum('active','gone')",
            "'active'",
            "'name'",
            "varchar(30)",
            ",-5)",
            "DELIMITER ;;",
        ] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
        assert_eq!(
            (found.statements, found.dropped.values().sum::<u64>()),
            (3, 1)
        );
        assert!(found.dropped_with_rows.is_empty(), "{found:?}");
    }

    #[test]
    fn dropped_statements_with_rows_are_counted_by_reason() {
        let dump = "-- MySQL dump 10.13\nCREATE TABLE `t` (`a` int);\nINSERT INTO `t` VALUES (1);\nCREATE USER annlee;\n\
            INSERT INTO `t` VALUES (\u{1});\n";
        let (_, found) = anonymised(dump);
        let counts: Vec<u64> = found.dropped_with_rows.values().copied().collect();
        assert_eq!((found.statements, counts), (2, vec![1]));
        assert_eq!(found.dropped.values().sum::<u64>(), 2);
        assert_eq!(found.dropped_copied_rows, 0);
    }

    #[test]
    fn rows_of_copy_get_other_values() {
        let dump = "--\n-- PostgreSQL database dump\n--\n\\restrict abc\n\
            CREATE TABLE public.person (name text, made date, note text);\n\
            ALTER TABLE public.person OWNER TO annlee;\n\
            COPY public.person (name, made, note) FROM stdin;\nAnnlee\t2026-11-28\t\\N\ntab\\there\t\\N\tBob\\\\lee\n\\.\n";
        let (text, found) = anonymised(dump);
        for secret in ["Annlee", "annlee", "2026-11-28", "there", "Bob"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert!(
            text.contains("\t\\N\n") && text.contains("\n\\.\n"),
            "{text}"
        );
        assert_eq!((found.copied_rows, found.statements), (2, 2));
    }

    proptest! {
        #[test]
        fn fields_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let (mut field, mut value) = (Vec::new(), Vec::new());
            encode_field(&bytes, &mut field);
            prop_assert!(!field.contains(&b'\t') && !field.contains(&b'\n'));
            decode_field(&field, &mut value);
            prop_assert_eq!(value, bytes);
        }
    }

    #[test]
    fn coded_bytes_of_fields_are_read() {
        let mut value = Vec::new();
        decode_field(b"a\\101\\x42\\x4g\\q\\", &mut value);
        assert_eq!(value, b"aAB\x04gq\\");
    }
}
