//! R17: settings that were asked for and are not in effect.
//!
//! Servers show a setting under another name, in other words, rounded or completed; only what changes
//! its meaning is told. Whether durability then differs is for the facts about it to say.

use super::{Hit, Look};
use crate::judge::audit::evidence::ServerEvidence;
use crate::judge::audit::takes::word_at;
use crate::judge::audit::value::{Value, is_in_effect, option_value};

/// Sizes are rounded to blocks; a value as near as this is the one asked for (a rule of thumb).
const ROUNDING: f64 = 0.005;

pub(super) fn not_taken(look: &Look<'_>) -> Option<Hit> {
    let server = look.server();
    if server.variables.is_empty() {
        return None;
    }
    let wrong: Vec<(&str, String)> = server
        .asked
        .iter()
        .filter_map(|(name, asked)| Some((name.as_str(), complaint(server, name, asked)?)))
        .collect();
    let (names, complaints): (Vec<&str>, Vec<&str>) = wrong
        .iter()
        .map(|(name, complaint)| (*name, complaint.as_str()))
        .unzip();
    (!wrong.is_empty()).then(|| {
        let what = format!("did not take what was asked for: {}", complaints.join(", "));
        let remedy = "Correct the name or value for this server, or leave it out.";
        Hit::new(what, remedy).from(look, &names)
    })
}

/// What became of a setting, when that is not what was asked for.
fn complaint(server: &ServerEvidence, name: &str, asked: &str) -> Option<String> {
    let shown = if asked.is_empty() {
        name.to_owned()
    } else {
        format!("{name} = {asked}")
    };
    match effective(server, name) {
        Effective::Shown(value) if is_taken(server, name, asked, value) => None,
        Effective::Shown(value) => Some(format!("{shown} became {value}")),
        Effective::Opposite(value) => {
            let wants_off = Value::read(asked).switch() != Some(false);
            let is_on = Value::read(value).switch() == Some(true);
            (wants_off == is_on).then(|| format!("{shown} is not in effect"))
        }
        Effective::NoVariable => None,
        Effective::NotThere => Some(format!("{shown} does not exist there")),
    }
}

/// Where a server shows a setting.
enum Effective<'a> {
    /// Under this value.
    Shown(&'a str),
    /// In a variable that means the opposite: `skip-log-bin` in `log_bin`.
    Opposite(&'a str),
    /// The option acts at start and is no variable.
    NoVariable,
    /// Nowhere, though it is a variable's name.
    NotThere,
}

/// Options whose variable has another name.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("default_character_set", "character_set_server"),
    ("default_collation", "collation_server"),
    ("default_time_zone", "time_zone"),
    ("key_buffer", "key_buffer_size"),
    ("log_slow_query", "slow_query_log"),
    ("storage_engine", "default_storage_engine"),
    ("table_cache", "table_open_cache"),
    ("transaction_isolation", "tx_isolation"),
    ("transaction_read_only", "tx_read_only"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
];

fn effective<'a>(server: &'a ServerEvidence, name: &str) -> Effective<'a> {
    let value = |name: &str| server.variables.get(name).map(String::as_str);
    if let Some(shown) = value(name) {
        return Effective::Shown(shown);
    }
    let of_prefix = |prefix: &str| name.strip_prefix(prefix).and_then(value);
    if let Some(shown) = of_prefix("skip_").or_else(|| of_prefix("disable_")) {
        return Effective::Opposite(shown);
    }
    let other = OTHER_NAMES
        .iter()
        .find(|(option, _)| *option == name)
        .and_then(|(_, variable)| value(variable));
    if let Some(shown) = of_prefix("enable_").or(other) {
        return Effective::Shown(shown);
    }
    if is_no_variable(server, name) {
        return Effective::NoVariable;
    }
    // Servers take the beginning of an option's name while it is unambiguous.
    let mut longer = server
        .variables
        .range(name.to_owned()..)
        .take_while(|(variable, _)| variable.starts_with(name));
    match (longer.next(), longer.next()) {
        (Some((_, only)), None) => Effective::Shown(only),
        _ => Effective::NotThere,
    }
}

/// Options that act at start and are no variables.
fn is_no_variable(server: &ServerEvidence, name: &str) -> bool {
    const STARTS: &[&str] = &[
        "binlog_do_db",
        "binlog_ignore_db",
        "early_plugin",
        "performance_schema_consumer",
        "performance_schema_instrument",
        "plugin_load",
        "replicate_",
        "skip_",
    ];
    const NAMES: &[&str] = &[
        "bootstrap",
        "character_set_client_handshake",
        "chroot",
        "console",
        "external_locking",
        "gdb",
        "innodb",
        "initialize",
        "language",
        "log_isam",
        "log_short_format",
        "log_tc",
        "memlock",
        "mysqlx",
        "old_style_user_limits",
        "safe_user_create",
        "ssl",
        "symbolic_links",
        "sysdate_is_now",
        "tc_heuristic_recover",
        "temp_pool",
        "user",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
        || NAMES.contains(&name)
        // A plugin is switched on and off by its name.
        || server.plugins.iter().any(|plugin| plugin.eq_ignore_ascii_case(name))
}

fn is_taken(server: &ServerEvidence, name: &str, asked: &str, effective: &str) -> bool {
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
        let leaves_it_to_the_server = wanted < 0.0 || wanted == 0.0 && IS_AUTO_AT_0.contains(&name);
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

/// Variables of which 0 leaves the value to the server.
const IS_AUTO_AT_0: &[&str] = &[
    "back_log",
    "innodb_buffer_pool_instances",
    "innodb_open_files",
    "open_files_limit",
    "table_definition_cache",
];

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::audit::Defaults;

    fn server(name: &str, variables: &[(&str, &str)]) -> ServerEvidence {
        let mut server = Defaults::of(name).unwrap().evidence("a").unwrap();
        for (name, value) in variables {
            server
                .variables
                .insert((*name).to_owned(), (*value).to_owned());
        }
        server
    }

    /// A setting, how the server shows it, and that it is what was asked for.
    #[track_caller]
    fn taken(recorded: &str, asked: (&str, &str), shown: (&str, &str)) {
        let server = server(recorded, &[shown]);
        assert_eq!(complaint(&server, asked.0, asked.1), None);
    }

    #[track_caller]
    fn not_taken(recorded: &str, asked: (&str, &str), shown: &[(&str, &str)], words: &str) {
        let server = server(recorded, shown);
        assert_eq!(complaint(&server, asked.0, asked.1).as_deref(), Some(words));
    }

    #[test]
    fn what_is_shown_under_another_name_is_taken() {
        let mysql = "mysql-5.6.24";
        taken(mysql, ("skip_log_bin", ""), ("log_bin", "OFF"));
        taken(
            mysql,
            ("skip_external_locking", ""),
            ("skip_external_locking", "ON"),
        );
        taken(
            mysql,
            ("skip_name_resolve", "1"),
            ("skip_name_resolve", "ON"),
        );
        taken(
            mysql,
            ("transaction_isolation", "READ-COMMITTED"),
            ("tx_isolation", "READ-COMMITTED"),
        );
        taken(
            mysql,
            ("key_buffer", "16M"),
            ("key_buffer_size", "16777216"),
        );
        taken(
            mysql,
            ("innodb_buffer_pool_siz", "1G"),
            ("innodb_buffer_pool_size", "1073741824"),
        );
        for option in [
            "plugin_load_add",
            "performance_schema_instrument",
            "user",
            "replicate_do_db",
        ] {
            taken(mysql, (option, "x"), ("version", "5.6.24"));
        }
    }

    #[test]
    fn what_is_shown_in_other_words_is_taken() {
        let mysql = "mysql-8.0.33";
        for (name, asked, shown) in [
            ("innodb_file_per_table", "", "ON"),
            ("log_bin", "mysql-bin", "ON"),
            ("innodb_flush_method", "4", "O_DIRECT"),
            ("table_definition_cache", "-1", "2000"),
            ("max_allowed_packet", "1000000", "999424"),
            ("thread_cache_size", "100000", "151"),
            (
                "optimizer_switch",
                "mrr=off",
                "index_merge=on,mrr=off,mrr_cost_based=on",
            ),
            ("character_set_server", "utf8", "utf8mb3"),
            ("collation_server", "utf8_bin", "utf8mb3_bin"),
            ("datadir", "/var/lib/mysql", "/var/lib/mysql/"),
            ("pid_file", "mysqld.pid", "/var/lib/mysql/mysqld.pid"),
            ("log_error", "db1", "./db1.err"),
            (
                "sql_mode",
                "TRADITIONAL",
                "STRICT_TRANS_TABLES,NO_ZERO_DATE,TRADITIONAL",
            ),
            ("sql_mode", "", ""),
        ] {
            taken(mysql, (name, asked), (name, shown));
        }
        taken(
            "mysql-5.6.24",
            ("query_cache_type", "2"),
            ("query_cache_type", "DEMAND"),
        );
    }

    #[test]
    fn what_means_something_else_is_told() {
        let mysql = "mysql-8.0.33";
        for (name, asked, shown) in [
            ("innodb_flush_log_at_trx_commit", "3", "2"),
            ("innodb_buffer_pool_size", "1200M", "2147483648"),
            ("innodb_flush_method", "0", "O_DIRECT"),
            ("innodb_doublewrite", "ON", "OFF"),
            ("optimizer_switch", "mrr=off", "mrr=on"),
            ("sql_mode", "ANSI_QUOTES", "ANSI_QUOTES,NO_ZERO_DATE"),
            ("sql_mode", "", "NO_ZERO_DATE"),
            ("character_set_server", "utf8", "utf8mb4"),
            ("datadir", "/var/lib/mysql", "/srv/mysql/"),
            ("max_connections", "500", "214"),
        ] {
            let words = if asked.is_empty() {
                format!("{name} became {shown}")
            } else {
                format!("{name} = {asked} became {shown}")
            };
            not_taken(mysql, (name, asked), &[(name, shown)], &words);
        }
        not_taken(
            mysql,
            ("skip_log_bin", ""),
            &[("log_bin", "ON")],
            "skip_log_bin is not in effect",
        );
        not_taken(
            mysql,
            ("innodb_use_mtflush", "1"),
            &[],
            "innodb_use_mtflush = 1 does not exist there",
        );
    }
}
