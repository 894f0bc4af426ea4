//! From words on a command line to values of options. Knows the form of options and the table, and nothing of what they
//! mean.

use std::collections::BTreeMap;
use std::fs;

use dbduel_load::lua::{DeclaredOption, OptionValue};

use super::Stop;
use super::table::{Section, Spec};

/// The most configuration files that may name one another.
const CONFIG_FILES_MAX: usize = 16;

/// An option as it was written: its name without hyphens at the front, and the text behind `=`.
pub type Written = (String, Option<String>);

/// The words, sorted but not understood.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The options, in order; configuration files have been read in their place.
    pub options: Vec<Written>,
    /// The test or script.
    pub test: Option<String>,
    /// What to do with it.
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
            let written = split(option);
            sorted.put(written, &mut files)?;
        }
        // `--test=NAME run`: the only word is the command.
        if let Some((_, Some(named))) = sorted.options.iter().rev().find(|(name, _)| name == "test")
        {
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
        if written.0 != "config_file" {
            self.options.push(written);
            return Ok(());
        }
        let path = written.1.unwrap_or_default();
        *files += 1;
        if *files > CONFIG_FILES_MAX {
            return Err(Stop::Fatal(format!(
                "more than {CONFIG_FILES_MAX} configuration files; does `{path}` name itself?"
            )));
        }
        let text = fs::read_to_string(&path).map_err(|error| {
            Stop::Fatal(format!("could not read --config-file '{path}': {error}"))
        })?;
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                self.put(split(line.trim_start_matches("--")), files)?;
            }
        }
        Ok(())
    }
}

/// Name and value, the name with underscores.
fn split(option: &str) -> Written {
    match option.split_once('=') {
        Some((name, value)) => (key(name.trim()), Some(value.trim().to_owned())),
        None => (key(option.trim()), None),
    }
}

fn key(name: &str) -> String {
    name.replace('-', "_")
}

/// Options with values of their types.
#[derive(Debug, Default)]
pub struct Given {
    values: BTreeMap<String, OptionValue>,
    written: Vec<Written>,
}

impl Given {
    /// Reads the options that are in the sections, and returns the others.
    ///
    /// # Errors
    /// A value of another type.
    pub fn read(sections: &[Section], options: Vec<Written>) -> Result<(Self, Vec<Written>), Stop> {
        let specs = || sections.iter().flat_map(|section| section.options);
        let (known, unknown) = options
            .into_iter()
            .partition(|(name, _)| specs().any(|spec| key(spec.name) == *name));
        Ok((Self::of(specs(), known)?, unknown))
    }

    /// Reads options of a test, which must all be known.
    ///
    /// # Errors
    /// An option that is unknown, or a value of another type.
    pub fn read_all(specs: &[&'static [Spec]], options: Vec<Written>) -> Result<Self, Stop> {
        let all = || specs.iter().copied().flatten();
        for (name, _) in &options {
            if all().any(|spec| key(spec.name) == *name) {
                continue;
            }
            let shown = name.replace('_', "-");
            let nearest = all()
                .map(|spec| (strsim::jaro_winkler(spec.name, &shown), spec.name))
                .filter(|(similarity, _)| *similarity > 0.8)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let hint =
                nearest.map_or_else(String::new, |(_, name)| format!("; did you mean --{name}?"));
            return Err(Stop::Usage(format!("invalid option: --{shown}{hint}")));
        }
        Self::of(all(), options)
    }

    fn of<'a>(specs: impl Iterator<Item = &'a Spec>, written: Vec<Written>) -> Result<Self, Stop> {
        let mut values = BTreeMap::new();
        for spec in specs {
            let name = key(spec.name);
            let last = written.iter().rev().find(|(written, _)| *written == name);
            let text = match last {
                Some((_, text)) => text.as_deref(),
                None => spec.default,
            };
            // An option without a default is off, 0 or empty; given bare, a switch is on.
            let text = match (last, text, spec.kind) {
                (None, None, dbduel_load::lua::OptionKind::Bool) => Some("off"),
                _ => text,
            };
            let value = spec.kind.read(text).map_err(|takes| {
                Stop::Usage(format!(
                    "Invalid value for the '{}' option: '{}'; it takes {takes}",
                    spec.name,
                    text.unwrap_or_default()
                ))
            })?;
            values.insert(name, value);
        }
        Ok(Given { values, written })
    }

    /// The values by names with underscores.
    pub fn values(&self) -> &BTreeMap<String, OptionValue> {
        &self.values
    }

    /// True when the option was written, and not left to its default.
    pub fn is_written(&self, name: &str) -> bool {
        let name = key(name);
        self.written.iter().any(|(written, _)| *written == name)
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

    /// The value that one of the words stands for.
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

    fn general(text: &str) -> Result<Given, Stop> {
        let sorted = Words::sort(&words(text))?;
        Ok(Given::read(table::GENERAL, sorted.options)?.0)
    }

    #[test]
    fn options_may_stand_anywhere_in_either_spelling_and_the_last_wins() {
        let sorted = Words::sort(&words(
            "--threads=2 cpu --report_interval=1 run --threads=3",
        ))
        .unwrap();
        assert_eq!(sorted.test.as_deref(), Some("cpu"));
        assert_eq!(sorted.command.as_deref(), Some("run"));
        let (given, rest) = Given::read(table::GENERAL, sorted.options).unwrap();
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
        for bad in [
            "--threads=abc",
            "--time=1s",
            "--histogram=maybe",
            "--thread-stack-size=1X",
        ] {
            assert!(matches!(general(bad), Err(Stop::Usage(_))), "{bad}");
        }
    }

    #[test]
    fn an_unknown_option_is_refused_with_a_hint() {
        let refuse = |name: &str| {
            let written = vec![(name.to_owned(), Some("3".to_owned()))];
            Given::read_all(&[table::OLTP], written)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refuse("table_sise"),
            "invalid option: --table-sise; did you mean --table-size?"
        );
        assert_eq!(refuse("foo"), "invalid option: --foo");
    }

    #[test]
    fn a_configuration_file_stands_where_it_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("options");
        fs::write(
            &path,
            "# a comment\ntime = 7 # seconds\n\n--threads=5\nhistogram\n",
        )
        .unwrap();
        let given = general(&format!(
            "--threads=2 --config-file={} --time=9",
            path.display()
        ))
        .unwrap();
        assert_eq!((given.number("threads"), given.number("time")), (5.0, 9.0));
        assert!(given.switch("histogram"));
        fs::write(&path, format!("config-file={}", path.display())).unwrap();
        let error = general(&format!("--config-file={}", path.display())).unwrap_err();
        assert!(
            error.to_string().contains("names itself") || error.to_string().contains("name itself")
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
