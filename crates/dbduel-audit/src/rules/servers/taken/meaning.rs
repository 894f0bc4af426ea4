//! Decides whether the value that a server shows means the requested one.
//!
//! Covers rounding, completion and renaming of values, not where they are shown.

use crate::evidence::ServerEvidence;
use crate::predict::is_left_to_the_server;
use crate::takes::word_at;
use crate::value::{Value, is_in_effect, option_value};

/// Sizes are rounded to blocks; a value as near as this is the one asked for (a rule of thumb).
const ROUNDING: f64 = 0.005;

/// True when a server that shows `effective` for the variable `name` does what was requested.
pub fn is_taken(server: &ServerEvidence, name: &str, asked: &str, effective: &str) -> bool {
    let asked = asked.trim().trim_matches(['"', '\'']);
    if is_in_effect(asked, effective) {
        return true;
    }
    let switch = |text: &str| Value::read(text).switch();
    // An option without a value switches on; a log's name does too.
    if asked.is_empty() && switch(effective) != Some(false) {
        return name != "sql_mode" || effective.is_empty();
    }
    if name.starts_with("log_") && switch(effective) == Some(true) && switch(asked).is_none() {
        return true;
    }
    let number = |text: &str| Value::read(&option_value(text)).number();
    if let Some(wanted) = number(asked) {
        let leaves_it_to_the_server =
            wanted < 0.0 || is_left_to_the_server(name, &wanted.to_string());
        return match number(effective) {
            // More threads than connections are never kept.
            Some(got) if name == "thread_cache_size" && got < wanted => server
                .number("max_connections")
                .is_some_and(|connections| connections <= got),
            Some(got) => leaves_it_to_the_server || (got - wanted).abs() <= ROUNDING * wanted.abs(),
            None => word_at(server, name, wanted as usize)
                .is_some_and(|word| word.eq_ignore_ascii_case(effective)),
        };
    }
    match name {
        "sql_mode" => has_modes(asked, effective),
        "optimizer_switch" | "optimizer_trace" => has_flags(asked, effective),
        _ => is_charset(asked, effective) || is_path(asked, effective),
    }
}

/// True when `effective` is `asked` with its combinations, such as TRADITIONAL, spelled out.
fn has_modes(asked: &str, effective: &str) -> bool {
    const COMBINATIONS: &[&str] = &[
        "ANSI",
        "DB2",
        "MAXDB",
        "MSSQL",
        "MYSQL323",
        "MYSQL40",
        "ORACLE",
        "POSTGRESQL",
        "TRADITIONAL",
    ];
    let modes = |text: &str| -> Vec<String> {
        let modes = text.split(',').map(|mode| mode.trim().to_uppercase());
        modes.filter(|mode| !mode.is_empty()).collect()
    };
    let (asked, effective) = (modes(asked), modes(effective));
    let has_combination = asked
        .iter()
        .any(|mode| COMBINATIONS.contains(&mode.as_str()));
    has_combination && asked.iter().all(|mode| effective.contains(mode))
}

/// True when every flag that was asked for is set like that; the others have their defaults.
fn has_flags(asked: &str, effective: &str) -> bool {
    let effective: Vec<&str> = effective.split(',').map(str::trim).collect();
    asked.split(',').map(str::trim).all(|flag| {
        flag.is_empty()
            || flag.eq_ignore_ascii_case("default")
            || flag.ends_with("=default")
            || effective.iter().any(|set| set.eq_ignore_ascii_case(flag))
    })
}

/// True when both name one character set or collation: `utf8` is what servers show as `utf8mb3` today.
fn is_charset(asked: &str, effective: &str) -> bool {
    let full = |name: &str| {
        let lower = name.to_ascii_lowercase();
        match lower.strip_prefix("utf8") {
            Some(rest) if rest.is_empty() || rest.starts_with('_') => format!("utf8mb3{rest}"),
            _ => lower,
        }
    };
    full(asked) == full(effective)
}

/// True when both name one file or folder: servers complete paths and add endings.
fn is_path(asked: &str, effective: &str) -> bool {
    let bare = |path: &str| {
        path.trim_end_matches('/')
            .trim_start_matches("./")
            .to_owned()
    };
    let (asked, effective) = (bare(asked), bare(effective));
    let is_file = asked.contains('/') || effective.contains('/') || effective.contains('.');
    let stem = effective
        .rsplit_once('.')
        .map_or(effective.as_str(), |(stem, _)| stem);
    let is_end = |whole: &str| {
        whole == asked
            || whole
                .strip_suffix(asked.as_str())
                .is_some_and(|rest| rest.ends_with('/'))
    };
    is_file && !asked.is_empty() && (is_end(&effective) || is_end(stem))
}
