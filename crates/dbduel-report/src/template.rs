//! The templates of pages and of Markdown. A file's ending decides how every text in it is escaped; only drawings, which
//! escape their own, are marked as safe.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, State, escape_formatter};
use serde::Serialize;

use super::{chart, words};

const TEMPLATES: [(&str, &str); 14] = [
    ("bisect.html", include_str!("templates/bisect.html")),
    ("bisect.md", include_str!("templates/bisect.md")),
    ("report.html", include_str!("templates/report.html")),
    ("report.md", include_str!("templates/report.md")),
    ("suite.html", include_str!("templates/suite.html")),
    ("suite.md", include_str!("templates/suite.md")),
    ("sweep.html", include_str!("templates/sweep.html")),
    ("sweep.md", include_str!("templates/sweep.md")),
    ("table.html", include_str!("templates/table.html")),
    ("table.md", include_str!("templates/table.md")),
    ("head.html", include_str!("templates/head.html")),
    ("drawings.html", include_str!("templates/drawings.html")),
    ("fairness.html", include_str!("templates/fairness.html")),
    ("disclosure.html", include_str!("templates/disclosure.html")),
];

/// Why rendering a template cannot fail.
const COMPLETE: &str = "the template is part of the program, and a test renders every part of it";

/// The template `name` rendered with `page`.
pub(super) fn rendered(name: &str, page: &impl Serialize) -> String {
    let environment = environment();
    let template = environment.get_template(name);
    template
        .and_then(|template| template.render(Serde(page)))
        .expect(COMPLETE)
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax.expect(COMPLETE));
    environment.set_auto_escape_callback(|name| match name.ends_with(".md") {
        true => AutoEscape::Custom("markdown".into()),
        false => AutoEscape::Html,
    });
    environment.set_formatter(|out, state, value| match state.auto_escape() {
        AutoEscape::Custom(_) if value.is_safe() => Ok(write!(out, "{value}")?),
        AutoEscape::Custom(_) => Ok(out.write_str(&markdown(&value.to_string()))?),
        _ => escape_formatter(out, state, value),
    });
    environment.add_filter("prose", |state: &State, text: &str| {
        Value::from_safe_string(match state.auto_escape() {
            AutoEscape::Custom(_) => markdown_prose(text),
            _ => html_prose(text),
        })
    });
    environment.add_filter("things", words::things);
    environment.add_filter("breakable", |text: &str| {
        Value::from_safe_string(chart::escape(text).replace(',', ",<wbr>"))
    });
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect(COMPLETE);
    }
    environment
}

/// Text without markup in Markdown and HTML, fit for a table cell.
fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A mention of a user, or a link out of bare text.
            '@' => escaped.push_str("&#64;"),
            character if character.is_control() => escaped.push(' '),
            character => escaped.push(character),
        }
    }
    escaped
}

/// A sentence of ours: names in backticks are code, the rest is [`markdown`].
fn markdown_prose(text: &str) -> String {
    with_code(text, markdown, |code| {
        // Code undoes the escapes of what HTML or a link could be made of.
        let is_code = !code.trim().is_empty()
            && !code
                .chars()
                .any(|c| c.is_control() || "<>&@|[]\\`".contains(c));
        match is_code {
            true => format!("`{code}`"),
            false => format!("\\`{}\\`", markdown(code)),
        }
    })
}

/// Escaped text with names in backticks as code, and no percent sign alone on a line.
fn html_prose(text: &str) -> String {
    let code = |code: &str| format!("<code>{}</code>", chart::escape(code));
    with_code(&words::units_kept(text), chart::escape, code)
}

/// The text with `code` applied to spans between backticks and `plain` to the rest.
fn with_code(text: &str, plain: impl Fn(&str) -> String, code: impl Fn(&str) -> String) -> String {
    let mut written = String::with_capacity(text.len() + 32);
    let mut rest = 0;
    while let Some((open, close)) = next_code(text, rest) {
        written.push_str(&plain(&text[rest..open]));
        written.push_str(&code(&text[open + 1..close]));
        rest = close + 1;
    }
    written.push_str(&plain(&text[rest..]));
    written
}

/// Positions of the next two backticks from `start` on that enclose code.
///
/// Names are set so and may hold backticks themselves, so a backtick opens only at the start of a word and closes only
/// at the end of one. One without a partner is an ordinary character.
fn next_code(text: &str, start: usize) -> Option<(usize, usize)> {
    let before = |at: usize| text[..at].chars().next_back();
    let after = |at: usize| text[at + 1..].chars().next();
    let opens = |at: usize| {
        !before(at).is_some_and(|c| c.is_alphanumeric() || c == '`')
            && after(at).is_some_and(|c| !c.is_whitespace())
    };
    let closes = |at: usize| {
        !after(at).is_some_and(|c| c.is_alphanumeric() || c == '`')
            && !before(at).is_some_and(char::is_whitespace)
    };
    let places: Vec<usize> = text[start..]
        .match_indices('`')
        .map(|(at, _)| start + at)
        .collect();
    let mut open = None;
    for at in places {
        match open {
            Some(first) if at > first + 1 && closes(at) => return Some((first, at)),
            Some(first) if at == first + 1 => {}
            // After a space a word begins, so what was open before it had no partner.
            Some(_) if opens(at) && before(at).is_some_and(char::is_whitespace) => open = Some(at),
            None if opens(at) => open = Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::table::{Cell, Column, Group, MARKDOWN, NAME, NUMBER, PAGE, Row, SUMS, Table};

    /// The table as the template of its format renders it, without blanks at the ends of lines.
    fn table_as(ending: &str, table: &Table) -> String {
        let environment = environment();
        let source = format!("{{% from 'table.{ending}' import table %}}{{{{ table(t) }}}}");
        let name = format!("page.{ending}");
        let page = std::collections::BTreeMap::from([("t", table)]);
        let template = environment.template_from_named_str(&name, &source);
        let text = template.unwrap().render(Serde(page)).unwrap();
        text.lines()
            .map(|line| line.trim().to_owned() + "\n")
            .collect()
    }

    #[test]
    fn a_table_has_the_same_cells_in_every_format() {
        let only = |only: &'static str, head: &str| Column {
            only,
            ..Column::from((NUMBER, head))
        };
        let below = Column {
            is_below: true,
            ..Column::from(("", "group"))
        };
        let columns = vec![
            Column::from((NAME, "name|s")),
            below,
            Column::from((NUMBER, "ratio")),
            only(PAGE, "extra"),
            only(MARKDOWN, "blocks"),
        ];
        let first = Row {
            details: vec!["1 failed".to_owned(), "`a` stalls".to_owned()],
            ..Row::from_iter([
                Cell {
                    tag: "requested",
                    ..Cell::code("a_b")
                },
                Cell::from("point"),
                Cell::answer("faster", "▲ +5.0 %".to_owned(), "4–6 %".to_owned()),
                Cell::from("7"),
                Cell::from("9 blocks"),
            ])
        };
        let second = Row {
            class: SUMS,
            ..["mean", "", "<1>", "", ""]
                .map(Cell::from)
                .into_iter()
                .collect()
        };
        let table = Table {
            class: "kind",
            columns,
            groups: vec![Group {
                head: "1 client".to_owned(),
                rows: vec![first, second],
            }],
        };
        assert_eq!(
            table_as("md", &table),
            "| name\\|s | group | ratio | blocks |\n\
             | --- | --- | ---: | ---: |\n\
             | a\\_b (requested) | point | ▲ +5.0 %<br><sub>4–6 %</sub> | 9 blocks |\n\
             | *mean* |  | &lt;1&gt; |  |\n"
        );
        let html = table_as("html", &table);
        for part in [
            "<table class=\"kind\">",
            "<th class=\"name\">name|s, group</th><th class=\"n\">ratio</th><th class=\"n\">extra</th>",
            "<tr class=\"head\"><th colspan=\"3\" scope=\"colgroup\"><span>1 client</span></th></tr>",
            "<td class=\"name\"><code>a_b</code> <span class=\"tag\">requested</span><small>point</small></td>\
             <td class=\"n faster\"><span class=\"pill\">▲ +5.0 %</span><small><span class=\"whole\">4–6 %</span></small></td>\
             <td class=\"n\">7</td>",
            "<td colspan=\"3\"><span>1 failed · <code>a</code> stalls</span></td>",
            "<td class=\"n\">&lt;1&gt;</td>",
        ] {
            assert!(html.contains(part), "no {part} in {html}");
        }
        assert!(!html.contains("blocks"), "{html}");
    }

    #[test]
    fn names_with_backticks_are_set_as_code_and_swallow_no_words() {
        for (text, html) in [
            ("use `a` and `b`.", "use <code>a</code> and <code>b</code>."),
            (
                "`a`b` is slow, `c` is not",
                "<code>a`b</code> is slow, <code>c</code> is not",
            ),
            ("``a` is slow", "<code>`a</code> is slow"),
            ("`a`` is slow", "<code>a`</code> is slow"),
            (
                "``` is slow, `c` too",
                "<code>`</code> is slow, <code>c</code> too",
            ),
            (
                "`a` b` is slow, `c` is not",
                "<code>a</code> b` is slow, <code>c</code> is not",
            ),
            (
                "`a is slower than `c` here",
                "`a is slower than <code>c</code> here",
            ),
            ("a`b is slow; `c`: not", "a`b is slow; <code>c</code>: not"),
            ("one ` alone, `<b>`", "one ` alone, <code>&lt;b&gt;</code>"),
            ("`` and `", "`` and `"),
            ("(`ä`), 5 %", "(<code>ä</code>), 5\u{a0}%"),
        ] {
            assert_eq!(html_prose(text), html, "{text}");
        }
    }

    #[test]
    fn what_is_quoted_is_code_and_the_rest_stays_text() {
        for (text, expected) in [
            ("`a_b` writes *less*", "`a_b` writes \\*less\\*"),
            ("`<script>` & <b>", "\\`&lt;script&gt;\\` &amp; &lt;b&gt;"),
            ("an odd ` and _", "an odd \\` and \\_"),
            ("`` twice ``", "\\`\\` twice \\`\\`"),
            ("`a\nb`", "\\`a b\\`"),
        ] {
            assert_eq!(markdown_prose(text), expected, "{text}");
        }
    }
}
