//! A writer of SVG that always produces well-formed XML.
//!
//! Shapes carry class names only; the style sheet sets their colours in light, dark and print.

use std::fmt::Write as _;

/// Text with the five characters that XML gives a meaning replaced, and those that XML forbids dropped.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                escaped.push(' ');
            }
            character => escaped.push(character),
        }
    }
    escaped
}

/// Alignment of a text relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing under construction, in pixels from the top left.
#[derive(Debug, Clone)]
pub struct Svg {
    width: f64,
    body: String,
}

impl Svg {
    /// An empty drawing of this width; the height is known at the end.
    #[must_use]
    pub fn new(width: f64) -> Self {
        Self {
            width,
            body: String::new(),
        }
    }

    /// Its width, pixels.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.width
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let class = escape(class);
        let _ = writeln!(
            self.body,
            r#"<line x1="{}" y1="{}" x2="{}" y2="{}" class="{class}"/>"#,
            Pixel(x1),
            Pixel(y1),
            Pixel(x2),
            Pixel(y2)
        );
    }

    /// A rectangle; negative sizes become zero.
    pub fn rect(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        class: &str,
        title: &str,
    ) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        let _ = writeln!(
            self.body,
            r#"<rect x="{}" y="{}" width="{}" height="{}" class="{}"{}"#,
            Pixel(x),
            Pixel(y),
            Pixel(width),
            Pixel(height),
            escape(class),
            closed("rect", title)
        );
    }

    /// A path in SVG's own notation, of a polyline or a marker.
    pub fn path(&mut self, data: &str, class: &str, title: &str) {
        let _ = writeln!(
            self.body,
            r#"<path d="{}" class="{}"{}"#,
            escape(data),
            escape(class),
            closed("path", title)
        );
    }

    /// A text on its baseline.
    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            r#"<text x="{}" y="{}" text-anchor="{anchor}" class="{}">{}</text>"#,
            Pixel(x),
            Pixel(y),
            escape(class),
            escape(text)
        );
    }

    /// Begins a part whose shapes a reader may stretch along the horizontal axis. `seconds` is the time
    /// between the left and the right edge of the rectangle that they are drawn in.
    pub fn begin_stretch(&mut self, at: (f64, f64), size: (f64, f64), seconds: f64) {
        let _ = writeln!(
            self.body,
            r#"<g class="stretch" data-left="{}" data-top="{}" data-width="{}" data-height="{}" data-seconds="{}">"#,
            Pixel(at.0),
            Pixel(at.1),
            Pixel(size.0),
            Pixel(size.1),
            Pixel(seconds)
        );
    }

    /// Begins a group, which [`Svg::end_group`] ends.
    pub fn begin_group(&mut self, class: &str) {
        let _ = writeln!(self.body, r#"<g class="{}">"#, escape(class));
    }

    /// Ends the group begun last.
    pub fn end_group(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// The finished drawing with a description for screen readers.
    #[must_use]
    pub fn finish(self, height: f64, label: &str) -> String {
        let Self { width, body } = self;
        let (width, height, label) = (Pixel(width), Pixel(height), escape(label));
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{label}">
{body}</svg>
"#
        )
    }
}

/// End of an element: with a tooltip inside, or closed at once.
fn closed(element: &str, title: &str) -> String {
    if title.is_empty() {
        "/>".to_owned()
    } else {
        format!("><title>{}</title></{element}>", escape(title))
    }
}

/// A path through points; points that are not finite break it.
#[must_use]
pub fn polyline(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut data = String::new();
    let mut is_open = false;
    for (x, y) in points {
        if !(x.is_finite() && y.is_finite()) {
            is_open = false;
            continue;
        }
        let _ = write!(
            data,
            "{}{} {}",
            if is_open { "L" } else { "M" },
            Pixel(x),
            Pixel(y)
        );
        is_open = true;
    }
    data
}

/// A coordinate with at most one decimal; a non-finite one is written as zero.
pub struct Pixel(pub f64);

impl std::fmt::Display for Pixel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = if self.0.is_finite() {
            (self.0 * 10.0).round() / 10.0
        } else {
            0.0
        };
        // No minus before a zero.
        write!(out, "{}", tenths + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let mut svg = Svg::new(10.0);
        svg.text(
            (0.0, 0.0),
            Anchor::Start,
            "label",
            "</text><script>alert('\"&')</script>\u{0}",
        );
        svg.rect((0.0, 0.0), (1.0, -1.0), "bar", "a < b");
        let text = svg.finish(10.0, "\"><script>");
        assert!(
            !text.contains("<script") && !text.contains('\u{0}'),
            "{text}"
        );
        assert!(text.contains("<title>a &lt; b</title>"));
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        let text = |value: f64| Pixel(value).to_string();
        assert_eq!(
            [text(1.26), text(2.0), text(-0.01), text(f64::NAN)],
            ["1.3", "2", "0", "0"]
        );
        assert_eq!(
            polyline([(0.0, 1.0), (2.0, 3.0), (f64::NAN, 0.0), (5.0, 5.0)]),
            "M0 1L2 3M5 5"
        );
    }
}
