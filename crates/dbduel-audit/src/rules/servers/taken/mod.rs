//! R17: requested settings that are not in effect.
//!
//! Servers show a setting under another name, in other words, rounded or completed; only a change of meaning is
//! reported. Whether durability then differs is decided by its facts. The lab uses this check too, for servers that
//! it has just started, so that there is one answer.

mod meaning;

use dbduel_record::event::Severity;

use super::{Contender, Hit};
use crate::evidence::ServerEvidence;
use crate::options::{OptionFate, OptionForm, option_fate, other_name};
use crate::server::Product;
use crate::table::table;
use crate::value::{Value, variable_name};
use meaning::is_taken;

/// A requested setting that is not in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTaken<'a> {
    /// Its name, as variables have it.
    pub name: &'a str,
    /// The request and its result: `max_connections = 500 became 214`.
    pub complaint: String,
}

/// Requested settings that are not in effect, without those that the server probably rejects; empty when the server's
/// variables were not read.
#[must_use]
pub fn not_taken(server: &ServerEvidence) -> Vec<NotTaken<'_>> {
    if server.variables.is_empty() {
        return Vec::new();
    }
    let is_refused = |name: &str| {
        let mut refused = server.refused.iter();
        refused.any(|one| one.is_inferred && variable_name(&one.option) == name)
    };
    let asked = server.asked.iter();
    asked
        .filter(|(name, _)| !is_refused(name))
        .filter_map(|(name, asked)| {
            Some(NotTaken {
                name,
                complaint: complaint(server, name, asked)?,
            })
        })
        .collect()
}

pub fn rule(contender: &Contender<'_>) -> Option<Hit> {
    let wrong = not_taken(contender.server());
    let (names, complaints): (Vec<&str>, Vec<&str>) = wrong
        .iter()
        .map(|one| (one.name, one.complaint.as_str()))
        .unzip();
    (!wrong.is_empty()).then(|| {
        let what = format!(
            "ignored or changed requested settings: {}",
            complaints.join(", ")
        );
        // A run that shows something else than its file had another file, or was changed by hand.
        let is_of_another_file = contender.server().is_asked_by_file;
        let remedy = match is_of_another_file {
            true => "Publish the option file that the run had.",
            false => "Correct the name or value for this server, or remove it.",
        };
        let mut hit = Hit::new(what, remedy).from(contender, &names);
        hit.severity = is_of_another_file.then_some(Severity::Doubt);
        hit
    })
}

/// The result of a setting, when it is not the requested one.
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
        Effective::NotThere => Some(format!("{shown} does not exist")),
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

fn effective<'a>(server: &'a ServerEvidence, name: &str) -> Effective<'a> {
    let value = |name: &str| server.variables.get(name).map(String::as_str);
    if let Some(shown) = value(name) {
        return Effective::Shown(shown);
    }
    let of_prefix = |prefix: &str| name.strip_prefix(prefix).and_then(value);
    if let Some(shown) = of_prefix("skip_").or_else(|| of_prefix("disable_")) {
        return Effective::Opposite(shown);
    }
    let other = || other_name(name).and_then(value);
    if let Some(shown) = of_prefix("enable_").or_else(other) {
        return Effective::Shown(shown);
    }
    if is_no_variable(server, name) || server.is_predicted && table().is_unrecorded(name) {
        return Effective::NoVariable;
    }
    match option_fate(server.product, server.version, name) {
        OptionFate::Taken { name, form } => match (value(&name), form) {
            (Some(shown), OptionForm::Off) => Effective::Opposite(shown),
            (Some(shown), OptionForm::Plain | OptionForm::On) => Effective::Shown(shown),
            (_, OptionForm::Bound) | (None, _) => Effective::NoVariable,
        },
        OptionFate::Unknown if is_custom(server, name) => Effective::NoVariable,
        OptionFate::Ignored
        | OptionFate::Refused(_)
        | OptionFate::ProbablyRefused(_)
        | OptionFate::Unknown => Effective::NotThere,
    }
}

/// True for a custom setting of PostgreSQL (`my.own_setting`), which the server keeps and SHOW ALL does not list. The settings of a
/// loaded extension are listed, so one that is missing among them does not exist.
fn is_custom(server: &ServerEvidence, name: &str) -> bool {
    let Some((class, _)) = name.split_once('.') else {
        return false;
    };
    let is_of_class = |variable: &String| {
        let rest = variable.strip_prefix(class);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    server.product == Product::PostgreSql && !server.variables.keys().any(is_of_class)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Defaults;
    use crate::predict::set_option;

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
    fn lost(recorded: &str, asked: (&str, &str), shown: &[(&str, &str)], words: &str) {
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

    /// Predictions, in which an option without a variable of its name must change the variable that it stands for.
    #[test]
    fn what_a_file_sets_under_another_name_is_taken() {
        for (recorded, option, value, variable, shown) in [
            (
                "mariadb-10.11.19",
                "table_cache",
                "4000",
                "table_open_cache",
                "4000",
            ),
            (
                "mysql-5.6.24",
                "transaction-read-only",
                "1",
                "tx_read_only",
                "ON",
            ),
            ("postgresql-17.11", "my.own_setting", "3", "jit", "on"),
        ] {
            let mut server = server(recorded, &[]);
            set_option(&mut server, option, Some(value)).unwrap();
            assert_eq!(not_taken(&server), [], "{recorded}: {option}");
            assert_eq!(server.variables[variable], shown, "{recorded}: {option}");
        }
        let mut server = server("mariadb-10.11.19", &[]);
        for (option, value) in [("table_cache", "300"), ("table_open_cache", "400")] {
            set_option(&mut server, option, Some(value)).unwrap();
        }
        set_option(&mut server, "skip-log-bin", None).unwrap();
        set_option(&mut server, "log-bin", Some("bin")).unwrap();
        assert_eq!(not_taken(&server), [], "the later line counts");
    }

    #[test]
    fn a_custom_setting_does_not_exist_only_in_the_class_of_a_loaded_extension() {
        let asked = ("auto_explain.log_mni_duration", "1");
        taken("postgresql-17.11", asked, ("jit", "on"));
        lost(
            "postgresql-17.11",
            asked,
            &[("auto_explain.log_min_duration", "-1")],
            "auto_explain.log_mni_duration = 1 does not exist",
        );
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
            lost(mysql, (name, asked), &[(name, shown)], &words);
        }
        lost(
            mysql,
            ("skip_log_bin", ""),
            &[("log_bin", "ON")],
            "skip_log_bin is not in effect",
        );
        lost(
            mysql,
            ("innodb_use_mtflush", "1"),
            &[],
            "innodb_use_mtflush = 1 does not exist",
        );
    }
}
