//! Colours, shapes and dashes of contenders, and the style sheet of all charts.
//!
//! Colour never carries information alone: every contender has a shape and a dash pattern of its own as well. The
//! colours follow Okabe and Ito (2008), darkened for white and lightened for black paper, so that people with any kind
//! of colour vision can distinguish them.

use super::svg::{Anchor, Pixel, Svg};

/// Number of colours; shapes and dashes repeat with the same period.
pub const COLOURS: usize = 8;

/// Marks smaller than this have no rim, pixels.
const SMALLEST_WITH_RIM: f64 = 2.6;

/// Average width of a character of the charts' text, pixels.
pub const CHARACTER: f64 = 6.6;

/// The style sheet: used once in a page, and inside every chart that is a file of its own.
pub const STYLE: &str = include_str!("chart.css");

/// The class that gives a contender its colour.
#[must_use]
pub fn colour(contender: usize) -> String {
    format!("c{}", contender % COLOURS)
}

/// The contender's shape around a point, as a path.
#[must_use]
pub fn marker(contender: usize, (x, y): (f64, f64), radius: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", Pixel(x + dx * radius), Pixel(y + dy * radius));
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<String> = corners.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
        format!("M{}Z", corners.join("L"))
    };
    match contender % COLOURS {
        0 => {
            let r = Pixel(radius);
            format!(
                "M{}A{r} {r} 0 1 0 {}A{r} {r} 0 1 0 {}Z",
                at(-1.0, 0.0),
                at(1.0, 0.0),
                at(-1.0, 0.0)
            )
        }
        1 => polygon(&[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)]),
        2 => polygon(&[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)]),
        3 => polygon(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
        4 => polygon(&[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)]),
        5 => polygon(&[
            (-0.4, -1.1),
            (0.4, -1.1),
            (0.4, -0.4),
            (1.1, -0.4),
            (1.1, 0.4),
            (0.4, 0.4),
            (0.4, 1.1),
            (-0.4, 1.1),
            (-0.4, 0.4),
            (-1.1, 0.4),
            (-1.1, -0.4),
            (-0.4, -0.4),
        ]),
        6 => polygon(&[
            (-0.5, -1.0),
            (0.5, -1.0),
            (1.1, 0.0),
            (0.5, 1.0),
            (-0.5, 1.0),
            (-1.1, 0.0),
        ]),
        _ => polygon(&[(-1.1, -0.6), (1.1, -0.6), (1.1, 0.6), (-1.1, 0.6)]),
    }
}

/// Draws the contender's mark at a point; a small one without a rim, which would cover it.
pub fn mark(svg: &mut Svg, contender: usize, point: (f64, f64), radius: f64, title: &str) {
    let size = if radius < SMALLEST_WITH_RIM {
        " tiny"
    } else {
        ""
    };
    let class = format!("mark{size} {}", colour(contender));
    svg.path(&marker(contender, point, radius), &class, title);
}

/// Draws an interval across a bar. Its edge has the colour of the paper, so that it stands out from a bar of any colour.
pub fn interval_on_bar(svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
    for class in ["doubt edge", "doubt"] {
        svg.line(from, to, class);
    }
}

/// Radius of marks of which `count` share `width` pixels, each with `room` times its share.
#[must_use]
pub fn mark_radius(width: f64, count: usize, room: f64) -> f64 {
    (room * width / count.max(1) as f64).clamp(1.6, 4.2)
}

/// A name shortened to what fits into `width` pixels. Beginning and end stay, since names of contenders often begin alike.
#[must_use]
pub fn fitted(name: &str, width: f64) -> String {
    let most = (width / CHARACTER).floor().max(2.0) as usize;
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let end = (most - 1) / 2;
    let start: String = name.chars().take(most - 1 - end).collect();
    let end: String = name.chars().skip(name.chars().count() - end).collect();
    format!("{start}…{end}")
}

/// Draws a legend below the title and returns where it ends, pixels from the top.
pub fn legend(svg: &mut Svg, names: &[&str]) -> f64 {
    let (mut left, mut top) = (0.0, 36.0);
    for (contender, name) in names.iter().enumerate() {
        let text = fitted(name, svg.width() - 24.0);
        let width = 22.0 + CHARACTER * text.chars().count() as f64 + 16.0;
        if left + width > svg.width() && left > 0.0 {
            left = 0.0;
            top += 18.0;
        }
        mark(svg, contender, (left + 6.0, top - 4.0), 4.5, name);
        svg.text((left + 17.0, top), Anchor::Start, "label", &text);
        left += width;
    }
    top + 8.0
}

/// A chart as a file of its own, with the style sheet inside.
#[must_use]
pub fn standalone(svg: &str) -> String {
    svg.replacen(
        '>',
        &format!("><style>{STYLE}</style><rect class=\"paper\" width=\"100%\" height=\"100%\"/>"),
        1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_of_a_period_has_a_shape_of_its_own() {
        let shapes: std::collections::BTreeSet<String> = (0..COLOURS)
            .map(|contender| marker(contender, (0.0, 0.0), 5.0))
            .collect();
        assert_eq!(shapes.len(), COLOURS);
        for contender in 0..COLOURS {
            assert!(
                STYLE.contains(&format!(".{}", colour(contender))),
                "no colour for {contender}"
            );
        }
    }

    #[test]
    fn the_style_sheet_may_stand_inside_xml() {
        assert!(!STYLE.contains(['<', '&']));
    }

    #[test]
    fn long_names_keep_their_beginning_and_their_end() {
        assert_eq!(fitted("short", 100.0), "short");
        assert_eq!(fitted("no-doublewrite", 80.0), "no-dou…write");
        assert_eq!(fitted("no-doublewrite-no-checksums", 80.0), "no-dou…ksums");
        assert_eq!(fitted("long", 1.0), "l…");
    }
}
