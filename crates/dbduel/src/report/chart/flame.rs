//! What a server's processors did, as a flame graph that hangs from its threads: width is the share of samples.

use crate::judge::Summary;
use crate::judge::summary::{Flame, Frame};
use crate::report::words;

use super::frame::titled;
use super::number_of;
use super::style::{CHARACTER, colour, fitted};
use super::svg::Anchor;

const ROW: f64 = 17.0;
/// Narrower frames are not drawn, and narrower ones than this have no name.
const WIDTH_MIN: f64 = 0.7;
const NAMED_MIN: f64 = 5.0 * CHARACTER;

/// Draws the graph of one contender.
#[must_use]
pub fn flame(summary: &Summary, flame: &Flame, width: f64) -> String {
    let title = fitted(&format!("Stacks of {}", flame.contender), 0.6 * width);
    let mut svg = titled(width, &title, "");
    let note = format!("{} samples", words::count(flame.samples));
    svg.text((width, 14.0), Anchor::End, "small", &note);
    let class = colour(number_of(summary, &flame.contender));
    let per_sample = width / flame.samples.max(1) as f64;
    let mut deepest = 0;
    for frame in &flame.frames {
        let wide = frame.samples as f64 * per_sample;
        if wide < WIDTH_MIN {
            continue;
        }
        deepest = deepest.max(frame.depth);
        let place = (
            frame.before as f64 * per_sample,
            26.0 + ROW * frame.depth as f64,
        );
        svg.rect(
            place,
            ((wide - 0.6).max(0.4), ROW - 1.0),
            &format!("frame {} {class}", shade(frame)),
            &format!(
                "{}: {} of the samples",
                frame.name,
                words::share(frame.samples as f64 / flame.samples.max(1) as f64)
            ),
        );
        if wide >= NAMED_MIN {
            let name = (place.0 + 4.0, place.1 + 12.0);
            let text = fitted(&frame.name, wide - 6.0);
            svg.text(name, Anchor::Start, "frame-name", &text);
        }
    }
    let height = 26.0 + ROW * (deepest + 1) as f64 + 6.0;
    let label = format!(
        "Flame graph of {}: functions by their share of sampled processor time, threads at the top",
        flame.contender
    );
    svg.finish(height, &label)
}

/// Threads are strong; below them two shades alternate, so that neighbours are distinguishable.
fn shade(frame: &Frame) -> &'static str {
    match frame.depth {
        0 => "threads",
        depth if depth % 2 == 0 => "even",
        _ => "odd",
    }
}
