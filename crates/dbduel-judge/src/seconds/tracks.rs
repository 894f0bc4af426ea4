//! Second-by-second readings of the samplers along the timeline: the series beside the throughput.
//!
//! Thinned like the timeline so that a day fits a page. Checkpoints that freed much of a log at once are marked.

use dbduel_record::event::SliceId;
use dbduel_record::rows::SecondRow;
use serde::Serialize;

use crate::evidence::Evidence;
use crate::summary::Ran;

/// Values of one track at most; neighbours are merged to get there.
const VALUES_MAX: usize = 360;
/// Pieces of one track at most.
const PIECES_MAX: usize = 180;
/// A checkpoint is marked when one second of it frees this share of the log.
const CHECKPOINT_SHARE: f64 = 0.1;
/// Marked checkpoints at most.
const CHECKPOINTS_MAX: usize = 200;

/// The quantity of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrackQuantity {
    /// Processors that the server keeps busy.
    ServerProcessors,
    /// Bytes per second that the server reads from the device.
    ServerReadBytesPerS,
    /// Bytes per second that the server writes to the device.
    ServerWrittenBytesPerS,
    /// Share of the time in which some work on the machine waited for a disk.
    DiskPressure,
    /// Share of the time in which some work on the machine waited for a processor.
    ProcessorPressure,
    /// Pages that the engine flushes per second.
    PagesFlushedPerS,
    /// Bytes of the log that the last checkpoint does not cover.
    CheckpointAgeBytes,
}

impl TrackQuantity {
    /// Every quantity, in the order of a report.
    pub const ALL: [TrackQuantity; 7] = [
        TrackQuantity::ServerProcessors,
        TrackQuantity::ServerReadBytesPerS,
        TrackQuantity::ServerWrittenBytesPerS,
        TrackQuantity::DiskPressure,
        TrackQuantity::ProcessorPressure,
        TrackQuantity::PagesFlushedPerS,
        TrackQuantity::CheckpointAgeBytes,
    ];

    /// The source, the metrics that are summed, and whether they are divided by the second's length.
    fn readings(self) -> (&'static str, &'static [&'static str], bool) {
        match self {
            TrackQuantity::ServerProcessors => ("server", &["cpu_user_s", "cpu_system_s"], true),
            TrackQuantity::ServerReadBytesPerS => ("server", &["device_read_bytes"], true),
            TrackQuantity::ServerWrittenBytesPerS => ("server", &["device_write_bytes"], true),
            TrackQuantity::DiskPressure => ("host", &["pressure_io_some_s"], true),
            TrackQuantity::ProcessorPressure => ("host", &["pressure_cpu_some_s"], true),
            TrackQuantity::PagesFlushedPerS => ("engine", &["pages_flushed_count"], true),
            TrackQuantity::CheckpointAgeBytes => ("engine", &["checkpoint_age_bytes"], false),
        }
    }
}

/// One quantity of one contender at one level over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Track {
    /// Index into the plan's levels.
    pub level: usize,
    /// Index into `Summary::contenders`.
    pub contender: usize,
    /// The quantity.
    pub quantity: TrackQuantity,
    /// Stretches without a gap, one per slice unless slices had to be merged.
    pub pieces: Vec<Piece>,
}

/// Values in equal steps from a moment on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Piece {
    /// Start, seconds of the timeline.
    pub start_s: f64,
    /// Length, seconds.
    pub length_s: f64,
    /// The values.
    pub values: Vec<f64>,
}

/// A second in which much of a server's log was freed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// Index into the plan's levels.
    pub level: usize,
    /// Index into `Summary::contenders`.
    pub contender: usize,
    /// When, seconds of the timeline.
    pub at_s: f64,
    /// Bytes of the log that it freed.
    pub freed_bytes: f64,
}

/// The tracks of all slices, in the order of levels, contenders and quantities; none that is zero throughout.
pub fn tracks(evidence: &Evidence<'_>, ran: &[(Ran, SliceId)]) -> Vec<Track> {
    let plan = evidence.plan();
    let mut tracks = Vec::new();
    for level in 0..plan.levels.len() {
        for contender in 0..plan.contenders.len() {
            for quantity in TrackQuantity::ALL {
                let own = ran
                    .iter()
                    .filter(|(ran, _)| ran.level == level && ran.contender == contender);
                let pieces: Vec<Piece> = own
                    .filter_map(|(ran, slice)| piece(ran, evidence.seconds(*slice), quantity))
                    .collect();
                let mut values = pieces.iter().flat_map(|piece| &piece.values);
                if values.any(|value| *value > 0.0) {
                    tracks.push(Track {
                        level,
                        contender,
                        quantity,
                        pieces: thin(pieces).into_iter().map(shortened).collect(),
                    });
                }
            }
        }
    }
    tracks
}

fn piece(ran: &Ran, rows: &[&SecondRow], quantity: TrackQuantity) -> Option<Piece> {
    let (source, metrics, is_rate) = quantity.readings();
    let own = rows
        .iter()
        .filter(|row| row.source == source && metrics.contains(&row.metric.as_str()));
    let (mut values, mut end_s, mut length_s) = (Vec::new(), f64::NEG_INFINITY, 0.0);
    for row in own {
        let value = match is_rate {
            true if row.length_s > 0.0 => row.value / row.length_s,
            true => continue,
            false => row.value,
        };
        if !value.is_finite() {
            continue;
        }
        // Time that goes back means that the slice was run again.
        if row.offset_s < end_s {
            values.clear();
            length_s = 0.0;
        }
        match values.last_mut() {
            // Metrics of one look end at the same moment.
            Some(last) if row.offset_s == end_s => *last += value,
            _ => {
                values.push(value);
                length_s += row.length_s;
            }
        }
        end_s = row.offset_s;
    }
    (!values.is_empty()).then(|| Piece {
        start_s: ran.start_s + (end_s - length_s).max(0.0),
        length_s: length_s.min(ran.length_s),
        values,
    })
}

fn thin(pieces: Vec<Piece>) -> Vec<Piece> {
    let values: usize = pieces.iter().map(|piece| piece.values.len()).sum();
    if values <= VALUES_MAX && pieces.len() <= PIECES_MAX {
        return pieces;
    }
    if pieces.len() <= PIECES_MAX {
        // Every piece rounds up, so one value per piece is set aside.
        let merged = values.div_ceil(VALUES_MAX - pieces.len());
        return pieces
            .into_iter()
            .map(|piece| Piece {
                values: piece.values.chunks(merged).map(mean).collect(),
                ..piece
            })
            .collect();
    }
    let merged = pieces.len().div_ceil(PIECES_MAX);
    pieces.chunks(merged).map(merge).collect()
}

/// The piece with digits that a chart can show, so that files stay small.
fn shortened(piece: Piece) -> Piece {
    let tenths = |seconds: f64| (seconds * 10.0).round() / 10.0;
    let digits = |value: f64| {
        if value == 0.0 {
            return 0.0;
        }
        let unit = 10_f64.powi(value.abs().log10().floor() as i32 - 3);
        if unit < 1.0 {
            (value * unit.recip()).round() / unit.recip().round()
        } else {
            (value / unit).round() * unit
        }
    };
    Piece {
        start_s: tenths(piece.start_s),
        length_s: tenths(piece.length_s).max(0.1),
        values: piece.values.into_iter().map(digits).collect(),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Neighbouring pieces as one with their mean over time.
fn merge(pieces: &[Piece]) -> Piece {
    let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
    let weight_s: f64 = pieces.iter().map(|piece| piece.length_s).sum();
    let sum: f64 = pieces
        .iter()
        .map(|piece| mean(&piece.values) * piece.length_s)
        .sum();
    Piece {
        start_s: first.start_s,
        length_s: last.start_s + last.length_s - first.start_s,
        values: vec![sum / weight_s.max(f64::MIN_POSITIVE)],
    }
}

/// Bytes of a contender's redo log, as its variables have it.
fn log_bytes(evidence: &Evidence<'_>, contender: usize) -> Option<f64> {
    let variables = &evidence.record.contenders.get(contender)?.variables_before;
    let number = |name: &str| variables.get(name)?.parse::<f64>().ok();
    let of_files = || {
        let files = number("innodb_log_files_in_group").unwrap_or(1.0);
        Some(number("innodb_log_file_size")? * files)
    };
    number("innodb_redo_log_capacity")
        .or_else(of_files)
        .filter(|bytes| *bytes > 0.0)
}

/// The checkpoints that freed much at once, in the order of time.
pub fn checkpoints(evidence: &Evidence<'_>, ran: &[(Ran, SliceId)]) -> Vec<Checkpoint> {
    let mut marked = Vec::new();
    for contender in 0..evidence.plan().contenders.len() {
        let own: Vec<&(Ran, SliceId)> = ran
            .iter()
            .filter(|(ran, _)| ran.contender == contender)
            .collect();
        let of = |metric: &'static str| {
            own.iter().flat_map(move |(ran, slice)| {
                let rows = evidence.seconds(*slice).iter();
                rows.filter(move |row| row.source == "engine" && row.metric == metric)
                    .map(move |row| (ran, *row))
            })
        };
        let Some(capacity) = log_bytes(evidence, contender) else {
            continue;
        };
        let large = of("checkpoint_advance_bytes")
            .filter(|(_, row)| row.value >= CHECKPOINT_SHARE * capacity);
        marked.extend(large.map(|(ran, row)| Checkpoint {
            level: ran.level,
            contender,
            at_s: ran.start_s + row.offset_s,
            freed_bytes: row.value,
        }));
    }
    marked.sort_by(|one, other| other.freed_bytes.total_cmp(&one.freed_bytes));
    marked.truncate(CHECKPOINTS_MAX);
    marked.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(count: usize, values: usize) -> Vec<Piece> {
        (0..count)
            .map(|index| Piece {
                start_s: 20.0 * index as f64,
                length_s: 15.0,
                values: vec![index as f64; values],
            })
            .collect()
    }

    #[test]
    fn many_values_are_merged_and_their_mean_stays() {
        for (count, values) in [(10, 15), (40, 15), (180, 15), (5000, 15), (5000, 1)] {
            let whole = pieces(count, values);
            let thinned = thin(whole.clone());
            let kept: usize = thinned.iter().map(|piece| piece.values.len()).sum();
            assert!(kept <= VALUES_MAX, "{count} × {values}: {kept}");
            let mean_of = |pieces: &[Piece]| {
                let sum: f64 = pieces.iter().map(|piece| mean(&piece.values)).sum();
                sum / pieces.len() as f64
            };
            // The last group may be smaller than the others.
            let (before, after) = (mean_of(&whole), mean_of(&thinned));
            assert!((after / before - 1.0).abs() < 0.02, "{before} {after}");
        }
    }

    #[test]
    fn digits_that_no_chart_shows_are_left_out() {
        let piece = shortened(Piece {
            start_s: 1.26,
            length_s: 0.01,
            values: vec![0.0, 123_456_789.0, 1.23456, 0.000_123_456],
        });
        assert_eq!((piece.start_s, piece.length_s), (1.3, 0.1));
        assert_eq!(piece.values, [0.0, 123_500_000.0, 1.235, 0.000_123_5]);
    }
}
