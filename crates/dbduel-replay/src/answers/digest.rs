//! What is kept of an answer: counts, classes of types, and digests of its values with a key.

use std::ops::Range;

use blake3::Hasher;
use dbduel_driver::{Column, Row, Sink, Summary, type_class};
use dbduel_record::answers::{Rows, TypeClass};
use dbduel_sql::answers::{OrderElement, OrderKey};

/// Bytes of a digest.
const DIGEST_BYTES: usize = 16;
/// What stands before a value, and in the place of NULL.
const VALUE: u8 = 1;
const NULL: u8 = 0;

/// Where the columns of the order are in an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OrderColumns<'a> {
    /// Where the elements name them.
    Named(&'a [OrderElement]),
    /// Those that no name finds are added behind this many columns.
    Added(&'a [OrderElement], usize),
}

impl OrderColumns<'_> {
    /// Places of the columns; `None` where an element names none of them, and without any.
    pub(crate) fn places(self, names: &[Vec<u8>]) -> Option<Vec<usize>> {
        let (elements, mut added) = match self {
            OrderColumns::Named(elements) => (elements, None),
            OrderColumns::Added(elements, first) => (elements, Some(first..usize::MAX)),
        };
        let own = match &added {
            Some(added) => names.get(..added.start).unwrap_or_default(),
            None => names,
        };
        let mut next = || added.as_mut().and_then(Iterator::next);
        let places: Option<Vec<usize>> = elements
            .iter()
            .map(|element| column_of(element, own).or_else(&mut next))
            .collect();
        places.filter(|places| !places.is_empty())
    }
}

/// The column of an answer that an element of the order names.
fn column_of(element: &OrderElement, names: &[Vec<u8>]) -> Option<usize> {
    match &element.key {
        OrderKey::Column(place) => Some(*place).filter(|place| *place < names.len()),
        OrderKey::Name(name) => names.iter().position(|own| own == name),
        OrderKey::Expression => None,
    }
}

/// The text with columns for what the answer of `names` does not show of its order; `None` where it shows all, and where none can be added.
pub(crate) fn with_order_columns(
    text: &[u8],
    elements: &[OrderElement],
    columns_end: Option<usize>,
    names: &[Vec<u8>],
) -> Option<Vec<u8>> {
    let columns_end = columns_end?;
    let missing: Vec<Range<usize>> = elements
        .iter()
        .filter(|element| column_of(element, names).is_none())
        .map(|element| element.bytes.clone())
        .collect();
    if missing.is_empty() || missing.iter().any(|bytes| bytes.start < columns_end) {
        return None;
    }
    let (head, tail) = text.split_at_checked(columns_end)?;
    let mut longer = head.to_vec();
    for bytes in missing {
        longer.extend_from_slice(b", ");
        longer.extend_from_slice(text.get(bytes)?);
        longer.push(b' ');
    }
    longer.extend_from_slice(tail);
    Some(longer)
}

/// Takes the rows of an answer.
pub(crate) struct Digester<'a> {
    key: &'a [u8; 32],
    is_postgresql: bool,
    order: OrderColumns<'a>,
    /// Places of the columns of the order; known with the first row.
    places: Option<Vec<usize>>,
    pub(crate) names: Vec<Vec<u8>>,
    columns: Vec<TypeClass>,
    rows: u64,
    set: u128,
    set_without_floats: u128,
    sequence: Hasher,
    keys: Hasher,
    /// Room for a row.
    row: Vec<u8>,
    without_floats: Vec<u8>,
    /// True where a row could not be read.
    is_unreadable: bool,
}

impl<'a> Digester<'a> {
    pub(crate) fn new(key: &'a [u8; 32], is_postgresql: bool, order: OrderColumns<'a>) -> Self {
        Digester {
            key,
            is_postgresql,
            order,
            places: None,
            names: Vec::new(),
            columns: Vec::new(),
            rows: 0,
            set: 0,
            set_without_floats: 0,
            sequence: Hasher::new_keyed(key),
            keys: Hasher::new_keyed(key),
            row: Vec::new(),
            without_floats: Vec::new(),
            is_unreadable: false,
        }
    }

    /// Digest of the order's columns; `None` where they are not among the columns.
    pub(crate) fn order_keys(&self) -> Option<String> {
        let is_known = self.places.is_some() || self.order.places(&self.names).is_some();
        is_known.then(|| hex(self.keys.finalize().as_bytes()))
    }

    /// What is kept; `None` where the answer could not be read.
    pub(crate) fn finish(self, summary: &Summary) -> Option<Rows> {
        let keys = self.order_keys();
        (!self.is_unreadable).then(|| Rows {
            rows: self.rows,
            affected: summary.affected_rows,
            warnings: summary.warnings,
            set: format!("{:032x}", self.set),
            set_without_floats: format!("{:032x}", self.set_without_floats),
            sequence: hex(self.sequence.finalize().as_bytes()),
            keys,
            columns: self.columns,
        })
    }

    fn digest(&self, bytes: &[u8]) -> u128 {
        let digest = blake3::keyed_hash(self.key, bytes);
        let mut start = [0; DIGEST_BYTES];
        start.copy_from_slice(&digest.as_bytes()[..DIGEST_BYTES]);
        u128::from_le_bytes(start)
    }
}

impl Sink for Digester<'_> {
    fn column(&mut self, column: &Column<'_>) {
        self.names.push(column.name.to_ascii_lowercase());
        self.columns.push(type_class(column, self.is_postgresql));
    }

    fn row(&mut self, row: &Row<'_>) {
        if self.rows == 0 {
            self.places = self.order.places(&self.names);
        }
        self.rows += 1;
        self.row.clear();
        self.without_floats.clear();
        for (place, value) in row.values().enumerate() {
            let Ok(value) = value else {
                self.is_unreadable = true;
                return;
            };
            let start = self.row.len();
            put(&mut self.row, value.as_bytes());
            let class = self.columns.get(place).copied();
            if class != Some(TypeClass::Float) {
                self.without_floats.extend_from_slice(&self.row[start..]);
            }
            if self
                .places
                .as_ref()
                .is_some_and(|places| places.contains(&place))
            {
                let mut key = self.row[start..].to_vec();
                // Most collations order letters of either case alike: rows that differ in it only are ties.
                if class == Some(TypeClass::Text) {
                    key.make_ascii_lowercase();
                }
                self.keys.update(&key);
            }
        }
        let whole = self.digest(&self.row);
        self.set = self.set.wrapping_add(whole);
        let without = self.digest(&self.without_floats);
        self.set_without_floats = self.set_without_floats.wrapping_add(without);
        self.sequence.update(&whole.to_le_bytes());
    }
}

/// Appends a value with its length; `None` is NULL.
fn put(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.push(NULL),
        Some(bytes) => {
            out.push(VALUE);
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

fn hex(digest: &[u8; 32]) -> String {
    let bytes = digest.iter().take(DIGEST_BYTES);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}
