//! Evidence about one server: its variables, counters, connections, build.
//!
//! Pure data; its source is only named, for messages.

use std::collections::BTreeMap;

use dbduel_record::facts::{Build, Proof};
use dbduel_text::Version;
use dbduel_text::percent;
use serde::{Deserialize, Serialize};

use super::defaults::DefaultsBasis;
use super::forms::{self, in_one_form, version_among};
use super::options::other_spellings;
use super::server::Product;
use super::value::{Value, option_value, variable_name};
use crate::session::SetByClients;

/// Counters of statements that read or change rows.
const STATEMENTS: [&str; 5] = [
    "com_select",
    "com_insert",
    "com_update",
    "com_delete",
    "com_replace",
];

/// Names with the values that a server shows; names are in lower case.
pub type Texts = BTreeMap<String, String>;

/// Evidence about one contender. Parts that were not read are empty or absent.
#[derive(Debug, Clone)]
pub struct ServerEvidence {
    /// Name of the contender.
    pub name: String,
    /// Product of the server.
    pub product: Product,
    /// Its version, for comparisons.
    pub version: Version,
    /// The version as the server writes it.
    pub version_text: String,
    /// Source of the evidence, for messages.
    pub source: String,
    /// True when `variables` follow from defaults and an option file and were not read back.
    pub is_predicted: bool,
    /// How well `variables` are known when they follow from defaults.
    pub basis: DefaultsBasis,
    /// `SHOW GLOBAL VARIABLES` before the run, or at any time.
    pub variables: Texts,
    /// The same after the run.
    pub variables_after: Texts,
    /// `SHOW GLOBAL STATUS` before the run, or before its last stint: counters restart with the server.
    pub status_before: Texts,
    /// The same after the run.
    pub status_after: Texts,
    /// Counters of earlier stints, each with both ends.
    pub earlier_stints: Vec<[Texts; 2]>,
    /// Stints whose counters are lost, because the server ended before they were read.
    pub stints_lost: u32,
    /// `SHOW SESSION VARIABLES` on a connection of the load.
    pub session: Texts,
    /// Session settings that the workload's clients make; they override the server's.
    pub set_by_clients: Vec<SetByClients>,
    /// Requested settings.
    pub asked: Texts,
    /// True when a published option file requests them, beside variables of the same run.
    pub is_asked_by_file: bool,
    /// Lines of its option file that the server rejects.
    pub refused: Vec<RefusedOption>,
    /// The settings of its option file and the effect of each, where nothing else shows that.
    pub file_settings: Vec<FileSetting>,
    /// Files that its option file includes and that are missing.
    pub missing_includes: Vec<MissingInclude>,
    /// Measured on the running server: `buffer_pools`, how many there really are.
    pub probe: Texts,
    /// How the load talks to the server.
    pub connection: Connection,
    /// Names of active plugins.
    pub plugins: Vec<String>,
    /// `SHOW CREATE TABLE` of the workload's tables.
    pub schema: Option<String>,
    /// The engine's status text before the run.
    pub engine_status_before: Option<String>,
    /// The same after the run.
    pub engine_status_after: Option<String>,
    /// The server's error log.
    pub error_log: Option<String>,
    /// Which build it is.
    pub build: Option<Build>,
    /// Result of the power cuts before the contest.
    pub proof: Option<Proof>,
    /// Data and indexes by the sizes of their files, bytes; without redo, undo, log and system files.
    pub data_bytes: Option<u64>,
    /// Seconds that the server worked during the run. Its own uptime also counts while it is frozen.
    pub active_s: Option<f64>,
    /// Name of the agent whose machine it runs on, where that is not the machine of the contest.
    pub host: Option<String>,
}

/// A line of an option file that its server rejects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedOption {
    /// Its file, line and column: `my.cnf:3:1`.
    pub place: String,
    /// Name of the option as written.
    pub option: String,
    /// The reason, a sentence without its full stop.
    pub why: String,
    /// True when that is inferred from the nearest recorded series.
    pub is_inferred: bool,
}

/// A setting of an option file and its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSetting {
    /// Its file, line and column: `my.cnf:3:1`.
    pub place: String,
    /// Name as written.
    pub name: String,
    /// How the server handles it.
    pub fate: FileSettingFate,
    /// The variable that shows it; absent for an option that is not a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Value of that variable after this line, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
}

/// How a server handles a setting of its option file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FileSettingFate {
    /// It is in effect.
    Taken,
    /// It is accepted and changes nothing.
    Ignored,
    /// The server does not start with it.
    Refused,
    /// Nothing is known of the option: one of a plugin or an extension, or of a series that is not recorded.
    Unknown,
}

/// A file or directory that an option file includes and that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingInclude {
    /// File and line of the directive: `my.cnf:3`.
    pub place: String,
    /// The included path.
    pub target: String,
}

/// How the load talks to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connection {
    /// Encrypted.
    pub tls: Option<bool>,
    /// `unix socket` or `tcp`.
    pub transport: Option<String>,
    /// The protocol compresses.
    pub compression: Option<bool>,
    /// Statements are prepared on the server.
    pub prepared: Option<bool>,
}

impl Connection {
    /// The load's connections as a record describes them.
    #[must_use]
    pub fn of(recorded: &dbduel_record::facts::Connection) -> Self {
        Connection {
            tls: recorded
                .tls_cipher
                .as_ref()
                .map(|cipher| !cipher.is_empty()),
            transport: recorded.transport.clone(),
            compression: recorded.compression,
            prepared: recorded.prepared,
        }
    }
}

impl ServerEvidence {
    /// Evidence with a name and a version only.
    #[must_use]
    pub fn new(name: &str, product: Product, version: Version) -> Self {
        ServerEvidence {
            name: name.to_owned(),
            product,
            version,
            version_text: version.to_string(),
            source: String::new(),
            is_predicted: false,
            basis: DefaultsBasis::default(),
            variables: Texts::new(),
            variables_after: Texts::new(),
            status_before: Texts::new(),
            status_after: Texts::new(),
            earlier_stints: Vec::new(),
            stints_lost: 0,
            session: Texts::new(),
            set_by_clients: Vec::new(),
            asked: Texts::new(),
            is_asked_by_file: false,
            refused: Vec::new(),
            file_settings: Vec::new(),
            missing_includes: Vec::new(),
            probe: Texts::new(),
            connection: Connection::default(),
            plugins: Vec::new(),
            schema: None,
            engine_status_before: None,
            engine_status_after: None,
            error_log: None,
            build: None,
            proof: None,
            data_bytes: None,
            active_s: None,
            host: None,
        }
    }

    /// Evidence of variables, which say themselves which server it is.
    ///
    /// `None` when they have no version.
    #[must_use]
    pub fn of_variables(name: &str, mut variables: Texts) -> Option<Self> {
        let (product, version_text) = version_among(&variables)?;
        let version_text = version_text.to_owned();
        let version = product.parse_version(version_text.split(' ').next()?)?;
        let mut evidence = Self::new(name, product, version);
        evidence.version_text = version_text;
        // How it was built is no setting.
        for of_the_build in ["cflags", "compile_options"] {
            if let Some(value) = variables.remove(of_the_build) {
                evidence.probe.insert(of_the_build.to_owned(), value);
            }
        }
        in_one_form(&mut variables, product, version);
        evidence.variables = variables;
        Some(evidence)
    }

    /// Adds what the server showed after the run.
    pub fn show_after(&mut self, mut variables: Texts) {
        in_one_form(&mut variables, self.product, self.version);
        self.variables_after = variables;
    }

    /// Keeps a requested setting, under the name and in the form that variables have. It replaces earlier requests for
    /// the same setting under another name.
    pub fn ask(&mut self, name: &str, value: &str) {
        let name = variable_name(name);
        for other in other_spellings(&name) {
            self.asked.remove(&other);
        }
        let value = forms::canonical(self.product, &name, value, self.version)
            .unwrap_or_else(|_| value.to_owned());
        self.asked.insert(name, value);
    }

    /// A number among the variables.
    #[must_use]
    pub fn number(&self, variable: &str) -> Option<f64> {
        Value::read(self.variables.get(variable)?).number()
    }

    /// Increase of a counter during the run, summed over its stints. `None` when an end of a stint is missing, the
    /// counter went backwards, or the server was restarted between the two readings.
    #[must_use]
    pub fn delta(&self, counter: &str) -> Option<f64> {
        let mut total = rise(&self.status_before, &self.status_after, counter)?;
        for [before, after] in &self.earlier_stints {
            total += rise(before, after, counter)?;
        }
        Some(total)
    }

    /// Increase of a column of a view, summed over the rows whose names begin with `view` and end with `.column`.
    #[must_use]
    pub fn delta_of_all(&self, view: &str, column: &str) -> Option<f64> {
        let is_of = |name: &&String| {
            name.strip_prefix(view)
                .and_then(|rest| rest.rsplit_once('.'))
                .is_some_and(|(_, found)| found == column)
        };
        let mut rows = self.status_after.keys().filter(is_of).peekable();
        rows.peek()?;
        // A row that came meanwhile counts from zero.
        let rises = rows.map(|name| match self.status_before.contains_key(name) {
            true => self.delta(name),
            false => self.after(name),
        });
        rises.sum()
    }

    /// A counter or gauge after the run.
    #[must_use]
    pub fn after(&self, counter: &str) -> Option<f64> {
        Value::read(self.status_after.get(counter)?).number()
    }

    /// Looks a name of the fact tables up, with the text that it was found as. `host.` is not its own.
    pub fn look_up(&self, name: &str) -> Option<(String, Value)> {
        let text =
            |texts: &Texts, key: &str| texts.get(key).map(|raw| (raw.clone(), Value::read(raw)));
        let Some((place, key)) = name.split_once('.') else {
            return text(&self.variables, name);
        };
        match place {
            "status" => text(&self.status_after, key).or_else(|| text(&self.status_before, key)),
            "session" => match self.set_by_clients(key) {
                Some(set) => Some((set.value.to_owned(), Value::read(set.value))),
                None => text(&self.session, key),
            },
            "probe" => text(&self.probe, key),
            "asked" => {
                let raw = self.asked.get(key)?;
                let value = match self.product.has_innodb() {
                    true => Value::read(&option_value(raw)),
                    false => Value::read(raw),
                };
                Some((raw.clone(), value))
            }
            "connection" => self.of_connection(key),
            "table" => super::schema::look_up(self.schema.as_deref()?, key),
            "derived" => self.derived(key),
            _ => None,
        }
    }

    /// Value that clients set in their sessions; `None` when they leave the variable as it is.
    #[must_use]
    pub fn set_by_clients(&self, variable: &str) -> Option<&SetByClients> {
        let mut set = self.set_by_clients.iter();
        set.find(|set| set.variable == variable)
    }

    /// True when a source was not read at all, so that a missing name means nothing.
    pub fn knows_nothing_of(&self, place: &str) -> bool {
        match place {
            "status" => self.status_after.is_empty() && self.status_before.is_empty(),
            "session" => self.session.is_empty(),
            "probe" => self.probe.is_empty(),
            "connection" | "derived" => true,
            "table" => self.schema.is_none(),
            _ => false,
        }
    }

    fn of_connection(&self, key: &str) -> Option<(String, Value)> {
        let Connection {
            tls,
            transport,
            compression,
            prepared,
        } = &self.connection;
        let value = match key {
            "tls" => Value::Switch((*tls)?),
            "transport" => Value::Word(transport.clone()?),
            "compression" => Value::Switch((*compression)?),
            "prepared" => Value::Switch((*prepared)?),
            _ => return None,
        };
        Some((value.to_string(), value))
    }

    fn derived(&self, key: &str) -> Option<(String, Value)> {
        match key {
            "prepared" => {
                let share = self.prepared_share()?;
                let shown = format!("{} of statements by Com_stmt_execute", percent::of(share));
                Some((shown, Value::Switch(share > 0.5)))
            }
            "allocator" => {
                let built = self
                    .build
                    .as_ref()
                    .and_then(|build| build.allocator.as_deref());
                let raw = built.or_else(|| {
                    self.variables
                        .get("version_malloc_library")
                        .map(String::as_str)
                })?;
                let lower = raw.to_ascii_lowercase();
                let family = ["jemalloc", "tcmalloc", "mimalloc"]
                    .into_iter()
                    .find(|family| lower.contains(family));
                Some((raw.to_owned(), Value::word(family.unwrap_or("system"))))
            }
            _ => None,
        }
    }

    /// Statements of the run that read or changed rows; `None` when none was counted.
    #[must_use]
    pub fn statements(&self) -> Option<f64> {
        let counters = STATEMENTS.iter();
        let statements: f64 = counters.filter_map(|counter| self.delta(counter)).sum();
        (statements > 0.0).then_some(statements)
    }

    /// Share of the run's statements that were executions of prepared ones.
    #[must_use]
    pub fn prepared_share(&self) -> Option<f64> {
        let executed = self.delta("com_stmt_execute")?;
        Some((executed / self.statements()?).min(1.0))
    }
}

/// Increase of a counter between two readings of one server process.
fn rise(before: &Texts, after: &Texts, counter: &str) -> Option<f64> {
    let between = |name: &str| {
        let read = |status: &Texts| Value::read(status.get(name)?).number();
        Some(read(after)? - read(before)?)
    };
    let is_restarted = between("uptime").is_some_and(|seconds| seconds < 0.0);
    between(counter).filter(|&rise| rise >= 0.0 && !is_restarted)
}

#[cfg(test)]
mod tests {
    use crate::tests::{counters, server};

    #[test]
    fn a_counter_that_a_restart_set_back_has_no_rise() {
        let mut server = server("a", "mysql-8.0.33");
        server.status_before = counters(&[("uptime", "100"), ("com_commit", "5")]);
        server.status_after = counters(&[("uptime", "20"), ("com_commit", "500")]);
        assert_eq!(server.delta("com_commit"), None);
    }
}
