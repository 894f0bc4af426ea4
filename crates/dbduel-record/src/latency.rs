//! Latency histograms and their log, `latency.hlog`.
//!
//! The log is a HdrHistogram interval log (version 1.3), readable by any tool for that format. Values are nanoseconds
//! with three significant digits; every histogram of the project has the same bounds, so that neither recording nor
//! merging can fail. The lines are written and read here because the writer of `hdrhistogram` begins a new log instead
//! of appending, and its reader allocates before the bounds are checked.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::names::{percent_decode, percent_encode};

/// Smallest distinguishable latency: 1 µs.
pub const LOWEST_NS: u64 = 1_000;
/// Largest recordable latency: one hour. Longer ones are recorded as this.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Significant decimal digits.
pub const DIGITS: u8 = 3;

/// First bytes of a compressed histogram (V2); the compressed part follows after its length.
const COMPRESSED_COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
const COMPRESSED_HEADER_BYTES: usize = 8;
/// Bytes of a histogram (V2) before its counts.
const HEADER_BYTES: usize = 40;
/// Upper bound of the bytes of a histogram's counts with the bounds above: 23,552 counts of up to 9 bytes.
const COUNTS_BYTES_MAX: u64 = 1 << 18;

/// An empty histogram with the project's bounds.
#[must_use]
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS).expect("the bounds above are valid")
}

/// The histogram as compressed V2 payload in base64.
#[must_use]
pub fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory does not fail");
    STANDARD.encode(bytes)
}

/// The histogram that [`encode`] wrote.
///
/// # Errors
/// Says which layer rejected the text (base64 or the histogram's own format), or that its bounds are not the
/// project's.
pub fn decode(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD
        .decode(text)
        .map_err(|error| format!("not base64: {error}"))?;
    check_header(&bytes)?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("not a HdrHistogram: {error:?}"))
}

/// Checks the fields by which the reader of a histogram allocates before it has seen a count.
fn check_header(bytes: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("not a HdrHistogram: {error}");
    let mut header = [0; HEADER_BYTES];
    if bytes.starts_with(&COMPRESSED_COOKIE) {
        let compressed = bytes.get(COMPRESSED_HEADER_BYTES..).unwrap_or_default();
        ZlibDecoder::new(compressed)
            .read_exact(&mut header)
            .map_err(failed)?;
    } else {
        let mut start = bytes;
        start.read_exact(&mut header).map_err(failed)?;
    }
    // The cookie, the length of the counts, an offset, the digits, the bounds.
    let number = |at: usize, length: usize| {
        let digits = header[at..at + length].iter();
        digits.fold(0_u64, |number, &digit| number << 8 | u64::from(digit))
    };
    let (counts_bytes, digits, lowest, highest) =
        (number(4, 4), number(12, 4), number(16, 8), number(24, 8));
    if (lowest, highest, digits) != (LOWEST_NS, HIGHEST_NS, u64::from(DIGITS)) {
        return Err(format!(
            "a histogram from {lowest} to {highest} ns with {digits} digits, where all are from {LOWEST_NS} to {HIGHEST_NS} ns \
             with {DIGITS}"
        ));
    }
    if counts_bytes > COUNTS_BYTES_MAX {
        return Err(format!(
            "a histogram of {counts_bytes} bytes; the limit is {COUNTS_BYTES_MAX}"
        ));
    }
    Ok(())
}

/// A histogram as it is written to the log. A few kilobytes where the counters themselves take 200, so that the
/// thousands of a long record fit into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    payload: String,
    max_ns: u64,
}

impl Packed {
    /// Packs a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            payload: encode(histogram),
            max_ns: histogram.max(),
        }
    }

    /// The unpacked histogram.
    #[must_use]
    pub fn unpack(&self) -> Histogram<u64> {
        decode(&self.payload).expect("a payload is checked before it is packed")
    }
}

/// One line of the log: the latencies of one class in one slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Block of the slice.
    pub block: u32,
    /// Position of the slice in its block.
    pub position: u32,
    /// Name of the contender.
    pub contender: String,
    /// Clients of the load level.
    pub clients: u32,
    /// Transaction class.
    pub class: String,
    /// Start of the measured part, seconds since 1970-01-01 UTC.
    pub start_s: f64,
    /// Length of the measured part, seconds.
    pub length_s: f64,
    /// Latencies of the committed transactions, nanoseconds.
    pub histogram: Packed,
}

/// Header of the log.
#[must_use]
pub fn header(start_ms: u64) -> String {
    let start_s = start_ms as f64 / 1e3;
    format!(
        "#[Histogram log format version 1.3]\n#[StartTime: {start_s:.3} (seconds since epoch)]\n\
         #[Tags: contender/clients/class/block.position; values: ns, maxima: ms]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// One interval as a line, newline included.
///
/// A tag must not contain a comma or a space, so its names are percent-encoded.
#[must_use]
pub fn line(interval: &Interval) -> String {
    let Interval {
        block,
        position,
        contender,
        clients,
        class,
        start_s,
        length_s,
        histogram,
    } = interval;
    let (contender, class) = (percent_encode(contender), percent_encode(class));
    let max_ms = histogram.max_ns as f64 / 1e6;
    let payload = &histogram.payload;
    format!(
        "Tag={contender}/{clients}/{class}/{block}.{position},{start_s:.3},{length_s:.3},{max_ms:.3},{payload}\n"
    )
}

/// Parses one line; `None` for comments and the legend.
///
/// # Errors
/// Says what is wrong with the line.
pub fn parse_line(line: &str) -> Result<Option<Interval>, String> {
    if line.starts_with('#') || line.starts_with('"') || line.trim().is_empty() {
        return Ok(None);
    }
    let fields: Vec<&str> = line.trim_end().split(',').collect();
    let &[tag, start, length, _max, payload] = fields.as_slice() else {
        return Err(format!("{} fields instead of 5", fields.len()));
    };
    let tag = tag.strip_prefix("Tag=").ok_or("no tag")?;
    let parts: Vec<&str> = tag.rsplitn(4, '/').collect();
    let &[slice, class, clients, contender] = parts.as_slice() else {
        return Err(format!("the tag `{tag}` does not have four parts"));
    };
    let (block, position) = slice
        .split_once('.')
        .ok_or("the last part of the tag is not a slice")?;
    fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
        text.parse()
            .map_err(|_| format!("`{text}` is not a number"))
    }
    Ok(Some(Interval {
        block: number(block)?,
        position: number(position)?,
        contender: percent_decode(contender)?,
        clients: number(clients)?,
        class: percent_decode(class)?,
        start_s: number(start)?,
        length_s: number(length)?,
        histogram: Packed {
            payload: payload.to_owned(),
            max_ns: decode(payload)?.max(),
        },
    }))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::V2Serializer;

    use super::*;

    fn interval() -> Interval {
        let mut histogram = new_histogram();
        for latency in [12_000, 450_000, 7_000_000] {
            histogram.saturating_record(latency);
        }
        Interval {
            block: 3,
            position: 1,
            contender: "with/slash, and space".to_owned(),
            clients: 16,
            class: "all".to_owned(),
            start_s: 1_700_000_000.25,
            length_s: 14.5,
            histogram: Packed::of(&histogram),
        }
    }

    #[test]
    fn a_line_reads_back_as_what_was_written() {
        let written = interval();
        let read = parse_line(&line(&written)).unwrap().unwrap();
        assert_eq!(read.histogram.unpack(), written.histogram.unpack());
        assert_eq!((read.block, read.position, read.clients), (3, 1, 16));
        assert_eq!(read.contender, "with/slash, and space");
        assert_eq!(read.length_s, 14.5);
    }

    #[test]
    fn the_header_is_skipped() {
        for text in header(5).lines() {
            assert!(parse_line(text).unwrap().is_none(), "{text}");
        }
    }

    #[test]
    fn a_torn_line_never_reads_as_other_values() {
        let written = interval();
        let whole = line(&written);
        for end in 1..whole.len() - 1 {
            // Only the check sum behind the compressed data may be missing without a change of content.
            match parse_line(&whole[..end]) {
                Err(_) => {}
                Ok(read) => assert_eq!(
                    read.unwrap().histogram.unpack(),
                    written.histogram.unpack(),
                    "cut at {end}"
                ),
            }
        }
    }

    #[test]
    fn a_histogram_of_other_bounds_or_lengths_is_refused_before_room_is_made_for_it() {
        let decoded = |histogram: &Histogram<u64>, is_compressed: bool, length: Option<u32>| {
            let mut bytes = Vec::new();
            match is_compressed {
                true => V2DeflateSerializer::new()
                    .serialize(histogram, &mut bytes)
                    .unwrap(),
                false => V2Serializer::new()
                    .serialize(histogram, &mut bytes)
                    .unwrap(),
            };
            if let Some(length) = length {
                bytes[4..8].copy_from_slice(&length.to_be_bytes());
            }
            decode(&STANDARD.encode(bytes))
        };
        for is_compressed in [false, true] {
            assert!(decoded(&new_histogram(), is_compressed, None).is_ok());
            for (lowest, highest, digits) in [
                (1, HIGHEST_NS, DIGITS),
                (LOWEST_NS, u64::MAX, DIGITS),
                (LOWEST_NS, HIGHEST_NS, 5),
                (LOWEST_NS, HIGHEST_NS, 0),
            ] {
                let other = Histogram::new_with_bounds(lowest, highest, digits).unwrap();
                let why = decoded(&other, is_compressed, None).unwrap_err();
                assert!(why.contains("a histogram from "), "{why}");
            }
        }
        let why = decoded(&new_histogram(), false, Some(u32::MAX)).unwrap_err();
        assert!(why.contains("4294967295 bytes"), "{why}");
    }

    #[test]
    fn a_latency_beyond_the_bounds_is_kept_as_the_largest() {
        let mut histogram = new_histogram();
        histogram.saturating_record(u64::MAX);
        assert_eq!(histogram.len(), 1);
        assert!(histogram.max() >= HIGHEST_NS);
    }
}
