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
    /// The text after `=`; in a configuration file its first element.
    pub value: Option<String>,
    origin: Origin,
}

/// Where an option was written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// On the command line; the word.
    Word(String),
    /// In a configuration file.
    File {
        /// File and line.
        place: String,
        /// All elements of the value.
        elements: Vec<String>,
        /// Column of the first character behind the first element, a comment aside.
        unread_at: Option<usize>,
    },
}

impl Written {
    /// An option of the command line. The whole text after `=` is its value, spaces included.
    fn of_word(word: &str, text: &str) -> Self {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        Written {
            name: key(name),
            value,
            origin: Origin::Word(word.to_owned()),
        }
    }

    /// The option of a line of a configuration file; `None` for a line without one.
    ///
    /// # Errors
    /// A quotation mark that is not closed.
    fn of_line(line: &str, place: String) -> Result<Option<Self>, Stop> {
        let text = line.trim_start();
        // A line of a section, as option files of servers have them, says nothing to a client.
        if text.starts_with('[') {
            return Ok(None);
        }
        let text = text.trim_start_matches("--");
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if !name.contains('#') => (name, Some(value)),
            _ => (text.split('#').next().unwrap_or_default(), None),
        };
        if name.trim().is_empty() {
            return Ok(None);
        }
        let column = |rest: &str| line[..line.len() - rest.len()].chars().count() + 1;
        let (mut first, mut elements, mut unread_at) = (None, Vec::new(), None);
        if let Some(text) = value {
            let value = FileValue::read(text).map_err(|open| {
                Stop::Fatal(format!(
                    "{place}:{}: a quotation mark is not closed; close it, or put the value in quotation marks of the other kind",
                    column(open)
                ))
            })?;
            elements = value.elements.into_iter().map(str::to_owned).collect();
            first = Some(elements.first().cloned().unwrap_or_default());
            unread_at = value.unread.map(column);
        }
        Ok(Some(Written {
            name: key(name.trim()),
            value: first,
            origin: Origin::File {
                place,
                elements,
                unread_at,
            },
        }))
    }

    /// Its value for an option of this kind.
    ///
    /// # Errors
    /// The allowed values.
    fn read(&self, kind: OptionKind) -> Result<OptionValue, &'static str> {
        match &self.origin {
            Origin::File { elements, .. } if kind == OptionKind::List => {
                Ok(OptionValue::List(elements.clone()))
            }
            _ => kind.read(self.value.as_deref()),
        }
    }

    /// The text of its value for an option of this kind: the elements of a list separated by commas.
    ///
    /// # Errors
    /// A comma within an element of a list.
    pub fn text(&self, kind: OptionKind) -> Result<Option<String>, Stop> {
        let Origin::File {
            place, elements, ..
        } = &self.origin
        else {
            return Ok(self.value.clone());
        };
        if kind != OptionKind::List {
            return Ok(self.value.clone());
        }
        match elements.iter().any(|element| element.contains(',')) {
            true => Err(Stop::Fatal(format!(
                "{place}: a list of a script cannot have an element with a comma; remove the comma"
            ))),
            false => Ok(Some(elements.join(","))),
        }
    }

    /// Warns when the line of a configuration file has more than the value of an option of this kind. The value may be a
    /// password, so it is not repeated.
    pub fn warn_of_unread(&self, kind: OptionKind, voice: Logger) {
        if let Origin::File {
            place,
            unread_at: Some(column),
            ..
        } = &self.origin
            && kind != OptionKind::List
        {
            voice.warning(&format!(
                "{place}:{column}: the rest of the line is not part of the value of {}; put a value with spaces or commas in quotation marks that it does not contain",
                self.name
            ));
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
            Origin::File { place, .. } => match &self.value {
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
            sorted.put(Written::of_word(word, option), &mut files)?;
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
            if let Some(written) = Written::of_line(line, format!("{path}:{number}"))? {
                self.put(written, files)?;
            }
        }
        Ok(())
    }
}

/// The value in a line of a configuration file, as sysbench 1.0.20 reads it: a list of elements, which any option but a list
/// takes the first of.
#[derive(Debug, Default)]
struct FileValue<'a> {
    elements: Vec<&'a str>,
    /// The text behind the first element, unless it is a comment.
    unread: Option<&'a str>,
}

impl<'a> FileValue<'a> {
    /// Splits the text after `=`. An element ends at white space or a comma. One that begins with a quotation mark ends at the
    /// next such mark, and text between that and the next comma belongs to no element. A `#` where an element would begin
    /// begins a comment.
    ///
    /// # Errors
    /// The text from a quotation mark that is not closed.
    fn read(text: &'a str) -> Result<Self, &'a str> {
        let mut value = FileValue::default();
        let mut rest = text.trim_ascii_start();
        while let Some(first) = rest.chars().next().filter(|first| *first != '#') {
            let (element, behind, next) = if matches!(first, '\'' | '"') {
                let (element, behind) = rest[1..].split_once(first).ok_or(rest)?;
                let next = behind.split_once(',').map_or("", |(_, next)| next);
                (element, behind, next)
            } else {
                let ends = |letter: char| letter == ',' || letter.is_ascii_whitespace();
                let (element, behind) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
                (element, behind, behind.get(1..).unwrap_or_default())
            };
            if value.elements.is_empty() {
                let behind = behind.trim_ascii_start();
                value.unread =
                    Some(behind).filter(|text| !text.is_empty() && !text.starts_with('#'));
            }
            value.elements.push(element);
            rest = next.trim_ascii_start();
        }
        Ok(value)
    }
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
            // An option without a default is off, 0 or empty; given bare, a switch is on.
            let text = match (last, spec.default, spec.kind) {
                (Some(written), _, _) => written.value.as_deref(),
                (None, None, OptionKind::Bool) => Some("off"),
                (None, default, _) => default,
            };
            let value = match last {
                Some(written) => {
                    written.warn_of_unread(spec.kind, Logger::ALWAYS);
                    written.read(spec.kind)
                }
                None => spec.kind.read(text),
            };
            let value = value.map_err(|takes| match (spec.kind, last) {
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
    use std::process::Command;

    use dbduel_test_attribute::needs_program;

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
        let password = Words::sort(&["--mysql-password= a ".to_owned()]).unwrap();
        let (password, _) = ParsedOptions::read(table::GENERAL, password.options).unwrap();
        assert_eq!(
            password.text("mysql-password"),
            " a ",
            "spaces are part of it"
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

    /// The value of each option in a configuration file of one line, or the error.
    fn in_a_file(line: &str) -> Result<ParsedOptions, Stop> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("options");
        fs::write(&path, line).unwrap();
        general(&format!("--config-file={}", path.display()))
    }

    /// Lines with a value of `mysql-user`, and the value, obtained by running sysbench 1.0.20 with a file of each line and a script
    /// that prints the option.
    const TEXTS: [(&str, &str); 19] = [
        ("mysql-user=pa#ss'w0rd", "pa#ss'w0rd"),
        ("mysql-user=it's", "it's"),
        ("mysql-user='a'b", "a"),
        ("mysql-user='a' 'b'", "a"),
        ("mysql-user=\"a'b\"", "a'b"),
        ("mysql-user='it''s'", "it"),
        ("mysql-user=a'b c'", "a'b"),
        ("mysql-user='a # b'", "a # b"),
        ("mysql-user='a'#b", "a"),
        ("mysql-user=a # b", "a"),
        ("mysql-user=a\tb", "a"),
        ("mysql-user=#a", ""),
        ("mysql-user=''", ""),
        ("mysql-user=' a '", " a "),
        ("mysql-user=  a  ", "a"),
        ("mysql-user=a,b", "a"),
        ("mysql-user='a,b'", "a,b"),
        ("mysql-user==a=b", "=a=b"),
        ("mysql-user=a\\b\r\n", "a\\b"),
    ];

    /// The same with the list `mysql-host`.
    const LISTS: [(&str, &[&str]); 13] = [
        ("mysql-host=a, b # c", &["a", "b"]),
        ("mysql-host=a b,c d", &["a", "b", "c", "d"]),
        ("mysql-host=a ,b", &["a", "", "b"]),
        ("mysql-host=a,b#c", &["a", "b#c"]),
        ("mysql-host=a,#c", &["a"]),
        ("mysql-host='a b',c", &["a b", "c"]),
        ("mysql-host='a'x b,c", &["a", "c"]),
        ("mysql-host=a,it's", &["a", "it's"]),
        ("mysql-host=,a", &["", "a"]),
        ("mysql-host='a,b'", &["a,b"]),
        ("mysql-host='a, b',c", &["a, b", "c"]),
        ("mysql-host=a, \"b,c\"", &["a", "b,c"]),
        ("mysql-host='a,b' c,d", &["a,b", "d"]),
    ];

    #[test]
    fn a_value_in_a_configuration_file_is_what_sysbench_reads() {
        for (line, value) in TEXTS {
            assert_eq!(in_a_file(line).unwrap().text("mysql-user"), value, "{line}");
        }
        for (line, elements) in LISTS {
            assert_eq!(
                in_a_file(line).unwrap().list("mysql-host"),
                elements,
                "{line}"
            );
        }
    }

    /// The values are those of the tables above.
    #[needs_program("sysbench")]
    #[test]
    fn sysbench_reads_the_same_values() {
        let folder = tempfile::tempdir().unwrap();
        let (script, options) = (
            folder.path().join("print.lua"),
            folder.path().join("options"),
        );
        let print = r#"
            function print_options()
               io.write("text=", sysbench.opt.mysql_user, "\0")
               io.write("list=", table.concat(sysbench.opt.mysql_host, "|"), "\0")
            end
            sysbench.cmdline.commands = { print_options = { print_options } }
        "#;
        fs::write(&script, print).unwrap();
        let printed = |line: &str, name: &str| {
            fs::write(&options, line).unwrap();
            let output = Command::new("sysbench")
                .arg(format!("--config-file={}", options.display()))
                .args([script.as_os_str(), "print_options".as_ref()])
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mut values = text.split('\0').filter_map(|part| part.split_once(name));
            let value = values.next().map(|(_, value)| value.to_owned());
            value.unwrap_or_else(|| panic!("{line}: {text}"))
        };
        for (line, value) in TEXTS {
            assert_eq!(printed(line, "text="), value, "{line}");
        }
        for (line, elements) in LISTS {
            assert_eq!(printed(line, "list="), elements.join("|"), "{line}");
        }
    }

    #[test]
    fn a_comma_in_an_element_is_refused_in_a_list_of_a_script() {
        let text = |line: &str| {
            let written = Written::of_line(line, "options:1".to_owned()).unwrap();
            written.unwrap().text(OptionKind::List)
        };
        assert_eq!(text("parts='a b', c").unwrap(), Some("a b,c".to_owned()));
        let error = text("parts='a,b'").unwrap_err().to_string();
        assert!(error.contains("options:1: a list of a script"), "{error}");
    }

    #[test]
    fn what_a_configuration_file_has_behind_a_value_is_noticed() {
        let unread = |line: &str| {
            let written = Written::of_line(line, "file:1".to_owned())
                .unwrap()
                .unwrap();
            match written.origin {
                Origin::File { unread_at, .. } => unread_at,
                Origin::Word(_) => panic!("{line}"),
            }
        };
        assert_eq!(unread("mysql-password=é,ss"), Some(17));
        assert_eq!(unread("mysql-password=pa ss # comment"), Some(19));
        assert_eq!(unread("mysql-password = 'it's'"), Some(22));
        assert_eq!(unread("mysql-password=pass # comment"), None);
        assert_eq!(unread("mysql-password='pa ss'"), None);
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
        fs::write(&path, "time=7\nmysql-user = 'a").unwrap();
        let error = general(&format!("--config-file={}", path.display())).unwrap_err();
        assert!(error.to_string().contains("options:2:14: "), "{error}");
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
