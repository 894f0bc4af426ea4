//! Parses the words of a command line into values of options.

use std::collections::BTreeMap;
use std::fs;

use dbduel_lua::{DeclaredOption, OptionKind, OptionValue};
use dbduel_text::nearest;

use super::Stop;
use super::logger::Logger;
use super::table::{Section, Spec};

/// Most configuration files that may include one another.
const CONFIG_FILES_MAX: usize = 16;

/// An option as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its name without hyphens at the front, with underscores.
    pub name: String,
    /// The text after `=`.
    pub value: Option<String>,
    origin: Origin,
}

/// Where an option was written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// On the command line; the word.
    Word(String),
    /// In a configuration file; file and line.
    File(String),
}

impl Written {
    fn new(text: &str, origin: Origin) -> Self {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.trim().to_owned())),
            None => (text, None),
        };
        Written {
            name: key(name.trim()),
            value,
            origin,
        }
    }

    /// True for an option of the command line, which must be known.
    pub fn is_from_a_word(&self) -> bool {
        matches!(self.origin, Origin::Word(_))
    }

    /// Its form in messages.
    fn shown(&self) -> String {
        match &self.origin {
            Origin::Word(word) => word.clone(),
            Origin::File(place) => match &self.value {
                Some(value) => format!("--{}={value} ({place})", self.name),
                None => format!("--{} ({place})", self.name),
            },
        }
    }

    /// The warning for an unknown option of a configuration file, which has no effect.
    pub fn ignore(&self, voice: Logger) {
        let shown = self.shown();
        voice.warning(&format!("unknown option {shown} is ignored"));
    }

    /// The error for an unknown option, with the nearest name.
    pub fn refuse_unknown(&self, nearest: Option<&str>) -> Stop {
        let hint = nearest.map_or_else(String::new, |name| format!("; did you mean --{name}?"));
        Stop::Usage(format!("invalid option: {}{hint}", self.shown()))
    }

    /// The error for a switch that is neither on nor off, in sysbench's words.
    pub fn refuse(&self) -> Stop {
        Stop::Usage(format!("invalid option: {}", self.shown()))
    }

    /// The error for any other value that the option does not accept.
    pub fn refuse_value(&self, takes: &str) -> Stop {
        let shown = self.shown();
        Stop::Usage(format!("invalid option: {shown}; it takes {takes}"))
    }
}

/// The words, sorted but not parsed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The options, in order; configuration files have been read in their place.
    pub options: Vec<Written>,
    /// The test or script.
    pub test: Option<String>,
    /// The command.
    pub command: Option<String>,
}

impl Words {
    /// Sorts the words.
    ///
    /// # Errors
    /// Too many words, or a configuration file that cannot be read.
    pub fn sort(words: &[String]) -> Result<Self, Stop> {
        let mut sorted = Words::default();
        let mut files = 0;
        for word in words {
            let Some(option) = word.strip_prefix("--") else {
                let place = match (&sorted.test, &sorted.command) {
                    (None, _) => &mut sorted.test,
                    (_, None) => &mut sorted.command,
                    _ => {
                        return Err(Stop::Usage(format!(
                            "Unrecognized command line argument: {word}"
                        )));
                    }
                };
                *place = Some(word.clone());
                continue;
            };
            let written = Written::new(option, Origin::Word(word.clone()));
            sorted.put(written, &mut files)?;
        }
        // `--test=NAME run`: the only word is the command.
        let named = sorted
            .options
            .iter()
            .rev()
            .find(|option| option.name == "test");
        if let Some(named) = named.and_then(|option| option.value.as_ref()) {
            if let Some(word) = sorted.test.take() {
                if sorted.command.is_some() {
                    return Err(Stop::Usage(format!(
                        "Unrecognized command line argument: {word}; the test was named by --test"
                    )));
                }
                sorted.command = Some(word);
            }
            sorted.test = Some(named.clone());
        }
        Ok(sorted)
    }

    fn put(&mut self, written: Written, files: &mut usize) -> Result<(), Stop> {
        if written.name != "config_file" {
            self.options.push(written);
            return Ok(());
        }
        let path = written.value.unwrap_or_default();
        *files += 1;
        if *files > CONFIG_FILES_MAX {
            return Err(Stop::Fatal(format!(
                "more than {CONFIG_FILES_MAX} configuration files; does `{path}` include itself?"
            )));
        }
        let text = fs::read_to_string(&path).map_err(|error| {
            Stop::Fatal(format!("could not read --config-file '{path}': {error}"))
        })?;
        for (number, line) in (1..).zip(text.lines()) {
            let place = format!("{path}:{number}");
            let line = without_quotes(line)
                .ok_or_else(|| Stop::Fatal(format!("{place}: a quotation mark is not closed")))?;
            let line = line.trim();
            // A line of a section, as option files of servers have them, says nothing to a client.
            if !line.is_empty() && !line.starts_with('[') {
                let text = line.trim_start_matches("--");
                self.put(Written::new(text, Origin::File(place)), files)?;
            }
        }
        Ok(())
    }
}

/// A line of a configuration file without its comment, and without the quotation marks around values; none when one of them
/// is not closed.
fn without_quotes(line: &str) -> Option<String> {
    let mut text = String::new();
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (None, '#') => break,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => text.push(letter),
        }
    }
    quote.is_none().then_some(text)
}

/// The name under which an option is known, whichever way it is written.
pub fn key(name: &str) -> String {
    name.replace('-', "_")
}

/// Options with values of their types.
#[derive(Debug, Default)]
pub struct ParsedOptions {
    values: BTreeMap<String, OptionValue>,
    written: Vec<Written>,
}

impl ParsedOptions {
    /// Reads the options that are in the sections, and returns the others.
    ///
    /// # Errors
    /// A value of another type.
    pub fn read(sections: &[Section], options: Vec<Written>) -> Result<(Self, Vec<Written>), Stop> {
        let specs = || sections.iter().flat_map(|section| section.options);
        let (known, unknown) = options
            .into_iter()
            .partition(|option| specs().any(|spec| key(spec.name) == option.name));
        Ok((Self::of(specs(), known)?, unknown))
    }

    /// Reads options of a test, which must all be known, apart from those of configuration files.
    ///
    /// # Errors
    /// An option that is unknown, or a value of another type.
    pub fn read_all(
        specs: &[&'static [Spec]],
        options: Vec<Written>,
        voice: Logger,
    ) -> Result<Self, Stop> {
        let all = || specs.iter().copied().flatten();
        for option in &options {
            if all().any(|spec| key(spec.name) == option.name) {
                continue;
            }
            if !option.is_from_a_word() {
                option.ignore(voice);
                continue;
            }
            let names = all().map(|spec| spec.name);
            return Err(option.refuse_unknown(nearest(&option.name, names)));
        }
        Self::of(all(), options)
    }

    fn of<'a>(specs: impl Iterator<Item = &'a Spec>, written: Vec<Written>) -> Result<Self, Stop> {
        let mut values = BTreeMap::new();
        for spec in specs {
            let name = key(spec.name);
            let last = written.iter().rev().find(|written| written.name == name);
            let text = match last {
                Some(written) => written.value.as_deref(),
                None => spec.default,
            };
            // An option without a default is off, 0 or empty; given bare, a switch is on.
            let text = match (last, text, spec.kind) {
                (None, None, OptionKind::Bool) => Some("off"),
                _ => text,
            };
            let value = spec
                .kind
                .read(text)
                .map_err(|takes| match (spec.kind, last) {
                    (OptionKind::Bool, Some(written)) => written.refuse(),
                    (OptionKind::Size, _) => Stop::Fatal(format!(
                        "Invalid value for {}: {}",
                        spec.name,
                        text.unwrap_or_default()
                    )),
                    _ => Stop::Usage(format!(
                        "Invalid value for the '{name}' option: '{}'; it takes {takes}",
                        text.unwrap_or_default()
                    )),
                })?;
            values.insert(name, value);
        }
        Ok(ParsedOptions { values, written })
    }

    /// The values by names with underscores.
    pub fn values(&self) -> &BTreeMap<String, OptionValue> {
        &self.values
    }

    /// True when the option was written, and not left to its default.
    pub fn is_written(&self, name: &str) -> bool {
        let name = key(name);
        self.written.iter().any(|written| written.name == name)
    }

    /// A number; 0 for an option of another type, which the table's test rules out.
    pub fn number(&self, name: &str) -> f64 {
        match self.values.get(&key(name)) {
            Some(OptionValue::Number(number)) => *number,
            _ => 0.0,
        }
    }

    /// A whole number that cannot be negative.
    ///
    /// # Errors
    /// When it is.
    pub fn count(&self, name: &str) -> Result<u64, Stop> {
        let number = self.number(name);
        if number < 0.0 || number.fract() != 0.0 || number > 9e15 {
            return Err(Stop::Fatal(format!(
                "Invalid value for --{name}: {number}; it takes a whole number from 0"
            )));
        }
        Ok(number as u64)
    }

    /// A whole number from 1 to so much.
    ///
    /// # Errors
    /// When it is not.
    pub fn positive(&self, name: &str, max: u32) -> Result<u32, Stop> {
        let number = self.number(name);
        if number < 1.0 || number > f64::from(max) || number.fract() != 0.0 {
            return Err(Stop::Fatal(format!(
                "Invalid value for --{name}: {number}; it takes a whole number from 1 to {max}"
            )));
        }
        Ok(number as u32)
    }

    /// On or off.
    pub fn switch(&self, name: &str) -> bool {
        matches!(self.values.get(&key(name)), Some(OptionValue::Bool(true)))
    }

    /// A text, empty when there is none.
    pub fn text(&self, name: &str) -> &str {
        match self.values.get(&key(name)) {
            Some(OptionValue::Text(text)) => text,
            _ => "",
        }
    }

    /// A list, empty when there is none.
    pub fn list(&self, name: &str) -> &[String] {
        match self.values.get(&key(name)) {
            Some(OptionValue::List(list)) => list,
            _ => &[],
        }
    }

    /// The value of the word that the option has.
    ///
    /// # Errors
    /// When the text is none of them.
    pub fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, Stop> {
        let text = self.text(name);
        let found = choices.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            Stop::Fatal(format!(
                "Invalid value for {name}: {text}; it takes one of {}",
                words.join(", ")
            ))
        })
    }
}

/// The options of a test in the form in which help lists them.
pub fn declared(specs: &[&'static [Spec]]) -> Vec<DeclaredOption> {
    let mut all: Vec<DeclaredOption> = specs
        .iter()
        .copied()
        .flatten()
        .map(Spec::declared)
        .collect();
    if specs.len() > 1 {
        all.sort_by(|a, b| a.name.cmp(&b.name));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn general(text: &str) -> Result<ParsedOptions, Stop> {
        let sorted = Words::sort(&words(text))?;
        Ok(ParsedOptions::read(table::GENERAL, sorted.options)?.0)
    }

    #[test]
    fn options_may_stand_anywhere_in_either_spelling_and_the_last_wins() {
        let sorted = Words::sort(&words(
            "--threads=2 cpu --report_interval=1 run --threads=3",
        ))
        .unwrap();
        assert_eq!(sorted.test.as_deref(), Some("cpu"));
        assert_eq!(sorted.command.as_deref(), Some("run"));
        let (given, rest) = ParsedOptions::read(table::GENERAL, sorted.options).unwrap();
        assert!(rest.is_empty());
        assert_eq!(given.number("threads"), 3.0);
        assert_eq!(given.number("report-interval"), 1.0);
        assert!(given.is_written("report_interval") && !given.is_written("time"));
        assert_eq!(given.number("time"), 10.0);
    }

    #[test]
    fn the_old_way_to_name_a_test_is_understood() {
        let sorted = Words::sort(&words("--test=cpu --num-threads=4 run")).unwrap();
        assert_eq!(sorted.test.as_deref(), Some("cpu"));
        assert_eq!(sorted.command.as_deref(), Some("run"));
    }

    #[test]
    fn values_have_types() {
        assert!(general("--histogram").unwrap().switch("histogram"));
        assert!(!general("--histogram=off").unwrap().switch("histogram"));
        assert_eq!(
            general("--thread-stack-size=2M")
                .unwrap()
                .number("thread-stack-size"),
            2_097_152.0
        );
        assert_eq!(
            general("--mysql-host=a,b").unwrap().list("mysql-host"),
            ["a", "b"]
        );
        assert!(general("").unwrap().list("mysql-socket").is_empty());
        for bad in ["--threads=abc", "--time=1s", "--histogram=maybe"] {
            assert!(matches!(general(bad), Err(Stop::Usage(_))), "{bad}");
        }
        let size = general("--thread-stack-size=1X");
        assert!(matches!(size, Err(Stop::Fatal(_))));
    }

    #[test]
    fn an_unknown_option_is_refused_with_a_hint() {
        let refuse = |word: &str| {
            let written = Words::sort(&words(word)).unwrap().options;
            ParsedOptions::read_all(&[table::OLTP], written, Logger { verbosity: 0 })
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refuse("--table_sise=3"),
            "invalid option: --table_sise=3; did you mean --table-size?"
        );
        assert_eq!(refuse("--foo"), "invalid option: --foo");
        assert_eq!(refuse("--auto-inc=5"), "invalid option: --auto-inc=5");
    }

    #[test]
    fn a_configuration_file_stands_where_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("options");
        fs::write(
            &path,
            "# a comment\n[sysbench]\ntime = 7 # seconds\n\n--threads=5\nhistogram\nmysql-user='a # b'\nnobody=3\n",
        )
        .unwrap();
        let given = general(&format!(
            "--threads=2 --config-file={} --time=9",
            path.display()
        ))
        .unwrap();
        assert_eq!((given.number("threads"), given.number("time")), (5.0, 9.0));
        assert!(given.switch("histogram"));
        assert_eq!(given.text("mysql-user"), "a # b");
        let options = Words::sort(&words(&format!("--config-file={}", path.display())));
        let (_, rest) = ParsedOptions::read(table::GENERAL, options.unwrap().options).unwrap();
        let rest = ParsedOptions::read_all(&[table::OLTP], rest, Logger { verbosity: 0 });
        assert!(rest.is_ok(), "an unknown option is left out");
        fs::write(&path, "mysql-user='a").unwrap();
        let error = general(&format!("--config-file={}", path.display())).unwrap_err();
        assert!(error.to_string().contains("options:1: "), "{error}");
        fs::write(&path, format!("config-file={}", path.display())).unwrap();
        let error = general(&format!("--config-file={}", path.display())).unwrap_err();
        assert!(
            error.to_string().contains("names itself")
                || error.to_string().contains("include itself")
        );
        assert!(general("--config-file=/nonexistent").is_err());
    }

    #[test]
    fn every_default_is_a_value_of_its_option() {
        let tests = [
            table::CPU,
            table::MEMORY,
            table::THREADS,
            table::MUTEX,
            table::FILE_IO,
            table::OLTP,
            table::RANDOM_POINTS,
            table::RANDOM_RANGES,
        ];
        let mut names = std::collections::BTreeSet::new();
        for spec in table::GENERAL
            .iter()
            .flat_map(|section| section.options)
            .chain(tests.into_iter().flatten())
        {
            assert!(spec.kind.read(spec.default).is_ok(), "{}", spec.name);
            assert!(names.insert(spec.name), "{} stands twice", spec.name);
            assert!(!spec.name.contains('_'), "{}", spec.name);
        }
    }
}
