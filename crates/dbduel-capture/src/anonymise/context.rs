//! Where in a statement a literal is: some are no data but say how data are read, and stay.

use dbduel_sql::Kind;

/// Functions with an argument that names a format, a unit, a setting or an object, and its place.
const FORMATS: [(&str, usize); 22] = [
    ("date_format", 1),
    ("time_format", 1),
    ("str_to_date", 1),
    ("get_format", 1),
    ("convert_tz", 1),
    ("convert_tz", 2),
    ("to_char", 1),
    ("to_date", 1),
    ("to_timestamp", 1),
    ("to_number", 1),
    ("date_trunc", 0),
    ("date_part", 0),
    ("timezone", 0),
    ("encode", 1),
    ("decode", 1),
    ("nextval", 0),
    ("currval", 0),
    ("setval", 0),
    ("current_setting", 0),
    ("set_config", 0),
    ("pg_get_serial_sequence", 0),
    ("pg_get_serial_sequence", 1),
];
/// Longest argument of these that stays, bytes.
const FORMAT_BYTES_MAX: usize = 64;
/// Types whose parentheses hold a length.
const TYPES: [&str; 16] = [
    "char",
    "character",
    "varchar",
    "varying",
    "nchar",
    "nvarchar",
    "binary",
    "varbinary",
    "bit",
    "decimal",
    "numeric",
    "dec",
    "float",
    "double",
    "time",
    "timestamp",
];
/// Settings whose values are words of the server. Other strings in a `SET` are replaced.
const SETTINGS: [&str; 22] = [
    "sql_mode",
    "names",
    "charset",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "time_zone",
    "timezone",
    "zone",
    "tx_isolation",
    "transaction_isolation",
    "optimizer_switch",
    "search_path",
    "client_encoding",
    "datestyle",
    "intervalstyle",
    "standard_conforming_strings",
    "bytea_output",
    "client_min_messages",
    "default_transaction_isolation",
    "lock_timeout",
];
/// Settings whose numbers are data.
const DATA_SETTINGS: [&str; 5] = [
    "timestamp",
    "insert_id",
    "last_insert_id",
    "rand_seed1",
    "rand_seed2",
];
/// Words behind which a query is, in a definition of a table and in a `SET`.
const QUERIES: [&str; 3] = ["select", "where", "values"];
/// Words behind which `SET STATEMENT … FOR` has its statement.
const STATEMENTS: [&str; 6] = ["for", "select", "insert", "update", "delete", "replace"];
/// Words before the scope or the name of a setting.
const SCOPES: [&str; 5] = ["session", "local", "global", "persist", "set"];
/// Types to which a string is cast that names an object or a length of time.
const CASTS: [&str; 6] = [
    "regclass", "regtype", "regproc", "regrole", "name", "interval",
];

/// What a statement is, as far as it decides about literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementForm {
    /// Data.
    Plain,
    /// A `SET`.
    Setting,
    /// A `SHOW`: its patterns are of names.
    Show,
    /// The definition of a table, an index, a type or a sequence: its numbers are lengths.
    Table,
    /// The definition of a routine, or `DO`: its text may be code.
    Routine,
    /// `PREPARE … FROM 'text'`, `EXECUTE IMMEDIATE 'text'`.
    Prepare,
}

impl StatementForm {
    /// The form of a statement of that kind which begins with these words.
    pub(super) fn of(kind: Kind, words: &[Vec<u8>]) -> Self {
        let is = |place: usize, wanted: &str| {
            let word = words.get(place);
            word.is_some_and(|word| word == wanted.as_bytes())
        };
        let has = |wanted: &[&str]| {
            let mut words = words.iter().skip(1);
            words.any(|word| wanted.iter().any(|one| word == one.as_bytes()))
        };
        match kind {
            Kind::Set => StatementForm::Setting,
            Kind::Show if is(0, "show") => StatementForm::Show,
            Kind::Prepare | Kind::Execute => StatementForm::Prepare,
            Kind::Definition if has(&["function", "procedure", "trigger", "event", "package"]) => {
                StatementForm::Routine
            }
            Kind::Definition if has(&["view", "rule", "policy"]) => StatementForm::Plain,
            Kind::Definition => StatementForm::Table,
            Kind::Other if is(0, "do") => StatementForm::Routine,
            Kind::Show
            | Kind::Read
            | Kind::Write
            | Kind::Begin
            | Kind::Commit
            | Kind::Rollback
            | Kind::Savepoint
            | Kind::Use
            | Kind::Deallocate
            | Kind::Call
            | Kind::Lock
            | Kind::Other => StatementForm::Plain,
        }
    }
}

/// Parentheses: the word before them, and how many commas there were in them.
#[derive(Debug)]
struct Frame {
    word: Vec<u8>,
    commas: usize,
}

/// What precedes a literal.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) form: StatementForm,
    frames: Vec<Frame>,
    /// The last two words, each empty where none was.
    words: [Vec<u8>; 2],
    /// True where the last token is a word.
    is_after_word: bool,
    /// The setting that is being set; empty for a user variable and outside of a `SET`.
    setting: Vec<u8>,
    awaits_setting: bool,
}

impl Context {
    pub(super) fn new(form: StatementForm) -> Self {
        Context {
            form,
            frames: Vec::new(),
            words: [Vec::new(), Vec::new()],
            is_after_word: false,
            setting: Vec::new(),
            awaits_setting: form == StatementForm::Setting,
        }
    }

    /// Passes a word.
    pub(super) fn word(&mut self, word: &[u8]) {
        let word = word.to_ascii_lowercase();
        let is_query = match self.form {
            StatementForm::Table => is_in(&word, &QUERIES),
            StatementForm::Setting => is_in(&word, &STATEMENTS),
            StatementForm::Plain
            | StatementForm::Show
            | StatementForm::Routine
            | StatementForm::Prepare => false,
        };
        if is_query {
            self.form = StatementForm::Plain;
            self.awaits_setting = false;
        }
        if self.awaits_setting && !is_in(&word, &SCOPES) {
            self.awaits_setting = false;
            self.setting.clear();
            let is_variable = word.starts_with(b"@") && !word.starts_with(b"@@");
            if !is_variable {
                let last = word.rsplit(|byte| matches!(byte, b'.' | b'@')).next();
                self.setting.extend_from_slice(last.unwrap_or_default());
            }
        } else if word == b"zone" && self.form == StatementForm::Setting {
            // SET TIME ZONE 'UTC'.
            self.setting.clone_from(&word);
        }
        let last = std::mem::replace(&mut self.words[1], word);
        self.words[0] = last;
        self.is_after_word = true;
    }

    /// Passes a sign.
    pub(super) fn sign(&mut self, sign: u8) {
        match sign {
            b'(' => {
                let word = match self.is_after_word {
                    true => self.words[1].clone(),
                    false => Vec::new(),
                };
                self.frames.push(Frame { word, commas: 0 });
            }
            b')' => {
                self.frames.pop();
            }
            b',' => match self.frames.last_mut() {
                Some(frame) => frame.commas += 1,
                None => self.awaits_setting = self.form == StatementForm::Setting,
            },
            _ => {}
        }
        self.is_after_word = false;
    }

    /// Passes any other token.
    pub(super) fn other(&mut self) {
        self.is_after_word = false;
    }

    /// Parentheses around the present place.
    pub(super) fn depth(&self) -> usize {
        self.frames.len()
    }

    /// True where the last token is this word.
    pub(super) fn is_after(&self, word: &str) -> bool {
        self.is_after_word && self.words[1] == word.as_bytes()
    }

    fn is_in_frame(&self, words: &[&str]) -> bool {
        self.frames.iter().any(|frame| is_in(&frame.word, words))
    }

    /// True where a list of a type's values or a condition on them is.
    pub(super) fn lists_values(&self) -> bool {
        self.form == StatementForm::Table && self.is_in_frame(&["enum", "set", "check"])
    }

    /// True where a string with this value stays; `cast` is the type to which it is cast at once.
    pub(super) fn keeps_text(&self, value: &[u8], cast: Option<&[u8]>) -> bool {
        let is_format = value.len() <= FORMAT_BYTES_MAX
            && self.frames.last().is_some_and(|frame| {
                let mut formats = FORMATS.iter();
                formats.any(|(name, place)| frame.word == name.as_bytes() && frame.commas == *place)
            });
        let cast = cast.map(<[u8]>::to_ascii_lowercase);
        let is_cast = |types: &[&str]| cast.as_ref().is_some_and(|cast| is_in(cast, types));
        let is_interval =
            (self.is_after("interval") || is_cast(&["interval"])) && is_interval(value);
        let is_object =
            is_cast(&CASTS) && !is_cast(&["interval"]) && value.len() <= FORMAT_BYTES_MAX;
        let is_named = self.is_after("zone")
            || self.is_after("collate")
            || self.is_after("names")
            || (self.is_after("set") && self.words[0] == b"character")
            || (self.form == StatementForm::Show && self.is_after("like"));
        let is_setting = self.form == StatementForm::Setting && is_in(&self.setting, &SETTINGS);
        self.lists_values() || is_format || is_interval || is_object || is_named || is_setting
    }

    /// True where a number stays: a length, or a setting.
    pub(super) fn keeps_number(&self) -> bool {
        let is_length = self
            .frames
            .last()
            .is_some_and(|frame| is_in(&frame.word, &TYPES));
        match self.form {
            StatementForm::Setting => {
                !self.setting.is_empty()
                    && !is_in(&self.setting, &DATA_SETTINGS)
                    && self.frames.is_empty()
            }
            StatementForm::Table => {
                let is_value = is_in(
                    &self.words[1],
                    &["default", "auto_increment", "with", "than"],
                ) || self
                    .is_in_frame(&["check", "than", "in", "from", "to", "with"]);
                is_length || !is_value
            }
            StatementForm::Plain
            | StatementForm::Show
            | StatementForm::Routine
            | StatementForm::Prepare => is_length,
        }
    }
}

fn is_in(word: &[u8], words: &[&str]) -> bool {
    words.iter().any(|one| word == one.as_bytes())
}

/// A length of time such as `7 days` or `01:30:00`.
fn is_interval(value: &[u8]) -> bool {
    const UNITS: [&str; 12] = [
        "microsecond",
        "millisecond",
        "second",
        "sec",
        "minute",
        "min",
        "hour",
        "day",
        "week",
        "month",
        "mon",
        "year",
    ];
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let text = text.to_ascii_lowercase();
    let is_number = |word: &str| {
        word.chars()
            .all(|byte| byte.is_ascii_digit() || "+-.:_ ".contains(byte))
    };
    text.split_ascii_whitespace()
        .all(|word| is_number(word) || UNITS.contains(&word.strip_suffix('s').unwrap_or(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_known() {
        for text in ["7 days", "1 hour 30 minutes", "-01:30:00", "1 mon"] {
            assert!(is_interval(text.as_bytes()), "{text}");
        }
        for text in ["7 secrets", "bob", "1 day bob"] {
            assert!(!is_interval(text.as_bytes()), "{text}");
        }
    }
}
