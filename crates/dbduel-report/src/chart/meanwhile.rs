//! Servers and machine over time: small multiples below the throughput chart, on the same time axis.
//!
//! Every strip has its own scale from zero to its largest value; a quantity without readings has no strip.

use dbduel_judge::Summary;
use dbduel_judge::summary::{Duel, Track, TrackQuantity};

use crate::words;

use super::frame::{Plot, titled};
use super::overtime::{SINCE, shade_uncounted, steps, time_axis};
use super::scale::{Scale, nice_end};
use super::style::{colour, legend};
use super::svg::{Anchor, Svg, polyline};
use super::{name_of, names};

/// Height of a strip with its heading, and of its plot.
const STRIP: f64 = 74.0;
const PLOT: f64 = 46.0;
/// Maximum number of pieces of a chart that carry tooltips; keeps the page of a day small.
const TITLED_MAX: usize = 700;

/// Draws the chart; `None` without per-second readings.
#[must_use]
pub fn meanwhile(summary: &Summary, duel: &Duel, width: f64) -> Option<String> {
    let timeline = &summary.timeline;
    let tracks: Vec<&Track> = timeline
        .tracks
        .iter()
        .filter(|track| track.level == duel.level)
        .collect();
    let shown: Vec<TrackQuantity> = TrackQuantity::ALL
        .into_iter()
        .filter(|quantity| tracks.iter().any(|track| track.quantity == *quantity))
        .collect();
    if shown.is_empty() {
        return None;
    }
    let title = format!("Servers and machine, {}", duel.label);
    let mut svg = titled(width, &title, "");
    let top = legend(&mut svg, &names(summary)) - 6.0;
    let all = Plot {
        left: 66.0,
        top,
        right: width - 8.0,
        bottom: top + STRIP * shown.len() as f64,
    };
    let time = Scale::linear((0.0, timeline.length_s), all.across());
    svg.begin_group("time-axis");
    time_axis(&mut svg, all, &time, timeline.length_s, SINCE);
    svg.end_group();
    let strips: Vec<(TrackQuantity, Plot)> = shown
        .iter()
        .enumerate()
        .map(|(index, quantity)| (*quantity, strip(all, index)))
        .collect();
    let scales: Vec<Scale> = strips
        .iter()
        .map(|(quantity, plot)| {
            let end = end_of(*quantity, largest(&tracks, *quantity));
            frame(&mut svg, *quantity, *plot, end);
            Scale::linear((0.0, end), plot.upwards())
        })
        .collect();
    svg.begin_stretch(
        (all.left, all.top - 8.0),
        (all.right - all.left, all.bottom - all.top + 8.0),
        timeline.length_s,
    );
    shade_uncounted(&mut svg, summary, all, &time);
    let pieces: usize = tracks.iter().map(|track| track.pieces.len()).sum();
    for ((quantity, _), scale) in strips.iter().zip(&scales) {
        for track in tracks.iter().filter(|track| track.quantity == *quantity) {
            draw(&mut svg, summary, track, (&time, scale), pieces);
        }
    }
    svg.end_group();
    Some(svg.finish(
        all.bottom + 36.0,
        &format!(
            "Servers and machine at {}, second by second: {}",
            duel.label,
            shown.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ")
        ),
    ))
}

fn strip(all: Plot, index: usize) -> Plot {
    let bottom = all.top + STRIP * (index + 1) as f64;
    Plot {
        top: bottom - PLOT,
        bottom,
        ..all
    }
}

/// Draws heading, base line and the two ends of the scale.
fn frame(svg: &mut Svg, quantity: TrackQuantity, plot: Plot, end: f64) {
    let heading = (plot.left, plot.top - 8.0);
    svg.text(heading, Anchor::Start, "small strong halo", name(quantity));
    for (value, y) in [(0.0, plot.bottom), (end, plot.top)] {
        svg.line((plot.left, y), (plot.right, y), "grid");
        let label = (plot.left - 7.0, y + 4.0);
        svg.text(label, Anchor::End, "tick", &amount(quantity, value));
    }
}

fn draw(
    svg: &mut Svg,
    summary: &Summary,
    track: &Track,
    (time, values): (&Scale, &Scale),
    pieces: usize,
) {
    let class = colour(track.contender);
    let mut places = Vec::new();
    for piece in &track.pieces {
        match piece.values.as_slice() {
            // A line as long as the time that it stands for.
            [value] => {
                let y = values.held(*value);
                places.push((time.at(piece.start_s), y));
                places.push((time.at(piece.start_s + piece.length_s), y));
            }
            several => {
                let points = steps(piece.start_s, piece.length_s, several);
                places.extend(points.map(|(at_s, value)| (time.at(at_s), values.held(value))));
            }
        }
        places.push((f64::NAN, f64::NAN));
    }
    svg.path(&polyline(places), &format!("curve strip {class}"), "");
    if pieces > TITLED_MAX {
        return;
    }
    for piece in &track.pieces {
        let mean = piece.values.iter().sum::<f64>() / piece.values.len().max(1) as f64;
        let (from, to) = (
            time.at(piece.start_s),
            time.at(piece.start_s + piece.length_s),
        );
        let y = values.held(mean);
        svg.path(
            &polyline([(from, y), (to, y)]),
            &format!("curve touch {class}"),
            &format!(
                "{} from {}: {} {} on average over {}",
                name_of(summary, track.contender),
                words::duration(piece.start_s),
                name(track.quantity),
                amount(track.quantity, mean),
                words::duration(piece.length_s)
            ),
        );
    }
}

fn largest(tracks: &[&Track], quantity: TrackQuantity) -> f64 {
    let own = tracks.iter().filter(|track| track.quantity == quantity);
    let values = own.flat_map(|track| track.pieces.iter().flat_map(|piece| &piece.values));
    values.copied().fold(0.0, f64::max)
}

/// Rounded end of a scale, in the unit of its labels.
fn end_of(quantity: TrackQuantity, largest: f64) -> f64 {
    let is_bytes = matches!(
        quantity,
        TrackQuantity::ServerReadBytesPerS
            | TrackQuantity::ServerWrittenBytesPerS
            | TrackQuantity::CheckpointAgeBytes
    );
    let factor = if is_bytes {
        words::bytes_unit(largest).0
    } else {
        1.0
    };
    factor * nice_end(largest / factor, 2)
}

fn name(quantity: TrackQuantity) -> &'static str {
    match quantity {
        TrackQuantity::ServerProcessors => "processors used by the server",
        TrackQuantity::ServerReadBytesPerS => "read from the device per second",
        TrackQuantity::ServerWrittenBytesPerS => "written to the device per second",
        TrackQuantity::DiskPressure => "time with work waiting for a disk",
        TrackQuantity::ProcessorPressure => "time with work waiting for a processor",
        TrackQuantity::PagesFlushedPerS => "pages flushed per second",
        TrackQuantity::CheckpointAgeBytes => "checkpoint age",
    }
}

fn amount(quantity: TrackQuantity, value: f64) -> String {
    match quantity {
        TrackQuantity::ServerProcessors | TrackQuantity::PagesFlushedPerS => words::trimmed(value),
        TrackQuantity::ServerReadBytesPerS
        | TrackQuantity::ServerWrittenBytesPerS
        | TrackQuantity::CheckpointAgeBytes => words::bytes_tick(value),
        TrackQuantity::DiskPressure | TrackQuantity::ProcessorPressure => words::share(value),
    }
}
