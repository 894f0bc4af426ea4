//! Tables as Apache Parquet, as little of the format as every reader understands: one row group, one page per
//! column, plain encoding, no compression, every column optional.
//!
//! The metadata are structures of Thrift's compact protocol (parquet.thrift and the Parquet format's own
//! specification, version 2.10, say which fields have which numbers). A crate for the format is much larger
//! than what is needed of it here.

use super::table::{Cell, Kind, Table};

const MAGIC: &[u8] = b"PAR1";

/// Numbers of the format's enumerations.
const DATA_PAGE: i64 = 0;
const PLAIN: i64 = 0;
const RUN_LENGTHS: i64 = 3;
const UNCOMPRESSED: i64 = 0;
const OPTIONAL: i64 = 1;
const UTF8: i64 = 0;

/// The file's bytes.
pub fn bytes(table: &Table) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let chunks: Vec<Chunk> = (0..table.columns.len())
        .map(|column| {
            let page = page(table, column);
            let chunk = Chunk {
                offset: file.len(),
                bytes: page.len(),
            };
            file.extend(page);
            chunk
        })
        .collect();
    let metadata = metadata(table, &chunks);
    file.extend(&metadata);
    file.extend((metadata.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    file
}

/// Where a column is in the file.
struct Chunk {
    offset: usize,
    bytes: usize,
}

fn type_of(kind: Kind) -> i64 {
    match kind {
        Kind::Whole => 2,
        Kind::Real => 5,
        Kind::Text => 6,
    }
}

/// A column's page with its header.
fn page(table: &Table, column: usize) -> Vec<u8> {
    let cells = || table.rows.iter().map(|row| &row[column]);
    let levels = levels(cells().map(|cell| *cell != Cell::Missing));
    let mut body = (levels.len() as u32).to_le_bytes().to_vec();
    body.extend(levels);
    for cell in cells() {
        match cell {
            Cell::Whole(value) => body.extend(value.to_le_bytes()),
            Cell::Real(value) => body.extend(value.to_le_bytes()),
            Cell::Text(text) => {
                body.extend((text.len() as u32).to_le_bytes());
                body.extend(text.as_bytes());
            }
            Cell::Missing => {}
        }
    }
    let mut header = Structure::default();
    header.whole(1, DATA_PAGE);
    header.whole(2, body.len() as i64);
    header.whole(3, body.len() as i64);
    let mut values = Structure::default();
    values.whole(1, table.rows.len() as i64);
    values.whole(2, PLAIN);
    values.whole(3, RUN_LENGTHS);
    values.whole(4, RUN_LENGTHS);
    header.structure(5, values);
    let mut page = header.end();
    page.extend(body);
    page
}

/// Which rows have a value, as runs: a length, doubled, and one byte for what repeats.
fn levels(present: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut runs: Vec<(bool, u64)> = Vec::new();
    for is_present in present {
        match runs.last_mut() {
            Some((last, length)) if *last == is_present => *length += 1,
            _ => runs.push((is_present, 1)),
        }
    }
    let mut bytes = Vec::new();
    for (is_present, length) in runs {
        varint(&mut bytes, length << 1);
        bytes.push(u8::from(is_present));
    }
    bytes
}

fn metadata(table: &Table, chunks: &[Chunk]) -> Vec<u8> {
    let rows = table.rows.len() as i64;
    let mut root = Structure::default();
    root.text(4, table.name);
    root.whole(5, table.columns.len() as i64);
    let mut schema = vec![root];
    schema.extend(table.columns.iter().map(|(name, kind)| {
        let mut column = Structure::default();
        column.whole(1, type_of(*kind));
        column.whole(3, OPTIONAL);
        column.text(4, name);
        if *kind == Kind::Text {
            column.whole(6, UTF8);
        }
        column
    }));
    let columns = table
        .columns
        .iter()
        .zip(chunks)
        .map(|((name, kind), chunk)| {
            let mut about = Structure::default();
            about.whole(1, type_of(*kind));
            about.wholes(2, &[PLAIN, RUN_LENGTHS]);
            about.texts(3, &[name]);
            about.whole(4, UNCOMPRESSED);
            about.long(5, rows);
            about.long(6, chunk.bytes as i64);
            about.long(7, chunk.bytes as i64);
            about.long(9, chunk.offset as i64);
            let mut column = Structure::default();
            column.long(2, chunk.offset as i64);
            column.structure(3, about);
            column
        });
    let mut group = Structure::default();
    group.structures(1, columns.collect());
    let size: usize = chunks.iter().map(|chunk| chunk.bytes).sum();
    group.long(2, size as i64);
    group.long(3, rows);
    let mut file = Structure::default();
    file.whole(1, 1);
    file.structures(2, schema);
    file.long(3, rows);
    file.structures(4, vec![group]);
    file.text(6, concat!("dbduel ", env!("CARGO_PKG_VERSION")));
    file.end()
}

/// Kinds of fields in Thrift's compact protocol.
const WHOLE: u8 = 5;
const LONG: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCTURE: u8 = 12;

/// A structure of Thrift's compact protocol. Fields are added in the order of their numbers.
#[derive(Default)]
struct Structure {
    bytes: Vec<u8>,
    last: u8,
}

impl Structure {
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn whole(&mut self, number: u8, value: i64) {
        self.field(number, WHOLE);
        varint(&mut self.bytes, zigzag(value));
    }

    fn long(&mut self, number: u8, value: i64) {
        self.field(number, LONG);
        varint(&mut self.bytes, zigzag(value));
    }

    fn text(&mut self, number: u8, text: &str) {
        self.field(number, BINARY);
        binary(&mut self.bytes, text);
    }

    fn structure(&mut self, number: u8, inner: Structure) {
        self.field(number, STRUCTURE);
        self.bytes.extend(inner.end());
    }

    fn list(&mut self, number: u8, length: usize, kind: u8) {
        self.field(number, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(&mut self.bytes, length as u64);
        }
    }

    fn wholes(&mut self, number: u8, values: &[i64]) {
        self.list(number, values.len(), WHOLE);
        for value in values {
            varint(&mut self.bytes, zigzag(*value));
        }
    }

    fn texts(&mut self, number: u8, texts: &[&str]) {
        self.list(number, texts.len(), BINARY);
        for text in texts {
            binary(&mut self.bytes, text);
        }
    }

    fn structures(&mut self, number: u8, inner: Vec<Structure>) {
        self.list(number, inner.len(), STRUCTURE);
        for one in inner {
            self.bytes.extend(one.end());
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(bytes: &mut Vec<u8>, text: &str) {
    varint(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

/// Small numbers of either sign as small numbers without one.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Seven bits per byte, the lowest first.
fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_as_the_protocol_says() {
        let packed = |value: i64| {
            let mut bytes = Vec::new();
            varint(&mut bytes, zigzag(value));
            bytes
        };
        assert_eq!(packed(0), [0]);
        assert_eq!(packed(-1), [1]);
        assert_eq!(packed(1), [2]);
        assert_eq!(packed(150), [0xac, 0x02]);
        assert_eq!(packed(i64::MIN).len(), 10);
    }

    #[test]
    fn rows_without_a_value_are_runs() {
        let present = [true, true, true, false, true];
        assert_eq!(levels(present.into_iter()), [6, 1, 2, 0, 2, 1]);
        assert_eq!(levels(std::iter::repeat_n(true, 100)), [0xc8, 0x01, 1]);
        assert!(levels(std::iter::empty()).is_empty());
    }

    #[test]
    fn a_file_ends_with_the_length_of_its_metadata() {
        let mut table = Table::new("one", &[("text", Kind::Text), ("value", Kind::Real)]);
        table.push(vec![Cell::from("ä"), Cell::Missing]);
        let file = bytes(&table);
        assert!(file.starts_with(MAGIC) && file.ends_with(MAGIC));
        let at = file.len() - 8;
        let length = u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let metadata = &file[at - length..at];
        // Its first field is the version, its second a list of three structures: root and columns.
        assert_eq!(metadata[..4], [0x15, 0x02, 0x19, 0x3c]);
        assert_eq!(metadata.last(), Some(&0));
    }
}
