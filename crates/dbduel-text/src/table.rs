//! Tables of text: cells in columns, for a terminal and for Markdown.
//!
//! A row is a list of cells; the first row is the head. Column 0 is left-aligned, as are those in `left`; others are
//! right-aligned.

/// A row of texts.
#[must_use]
pub fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

/// The rows as lines for a terminal, columns two blanks apart.
#[must_use]
pub fn columns(rows: &[Vec<String>], left: &[usize]) -> String {
    let lines = aligned(rows, left);
    let lines = lines.map(|cells| format!("{}\n", cells.join("  ").trim_end()));
    lines.collect()
}

/// The rows, all as long as the head, as a table in Markdown.
#[must_use]
pub fn markdown(rows: &[Vec<String>], left: &[usize]) -> String {
    let Some(head) = rows.first() else {
        return String::new();
    };
    let mut lines: Vec<String> = aligned(rows, left)
        .map(|cells| format!("| {} |\n", cells.join(" | ")))
        .collect();
    let rules = (0..head.len()).map(|column| match is_left(column, left) {
        true => "---",
        false => "--:",
    });
    let rules: Vec<&str> = rules.collect();
    lines.insert(1, format!("| {} |\n", rules.join(" | ")));
    lines.concat()
}

fn is_left(column: usize, left: &[usize]) -> bool {
    column == 0 || left.contains(&column)
}

/// The cells of each row, filled up to the width of their columns.
fn aligned(rows: &[Vec<String>], left: &[usize]) -> impl Iterator<Item = Vec<String>> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width).collect();
    rows.iter().map(move |row| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match is_left(column, left) {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        cells.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [
            row(&["model", "cuts", "note"]),
            row(&["all", "12", "none"]),
            row(&["längst", "1,000"]),
        ];
        assert_eq!(
            columns(&rows, &[2]),
            "model    cuts  note\nall        12  none\nlängst  1,000\n"
        );
        assert_eq!(
            markdown(&rows[..2], &[2]),
            "| model | cuts | note |\n| --- | --: | --- |\n| all   |   12 | none |\n"
        );
        assert_eq!(columns(&[], &[]), "");
        assert_eq!(markdown(&[], &[]), "");
    }
}
