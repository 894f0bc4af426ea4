//! A writer of OpenMetrics 1.0 text.

use std::fmt::Write as _;

/// Labels of a sample: names and values.
pub(super) type Labels<'l> = [(&'l str, &'l str)];

/// A page under construction, one family after the other.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// The whole text, with the line that ends it.
    pub(super) fn end(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }

    /// Begins a family. A unit must also be the last word of the name.
    pub(super) fn family(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str) {
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if let Some(unit) = unit {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    /// Adds a sample to the family begun last.
    pub(super) fn sample(&mut self, name: &str, labels: &Labels<'_>, value: f64) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        if value.is_infinite() {
            let sign = if value > 0.0 { '+' } else { '-' };
            let _ = writeln!(self.0, " {sign}Inf");
        } else {
            let _ = writeln!(self.0, " {value}");
        }
    }
}

/// A label's value between its quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
