//! The names by which findings are waived and differences declared: classes, facts and rules.

use dbduel_text::nearest;

use super::classes::CLASSES;
use super::defaults::Defaults;
use super::table::table;
use super::value::variable_name;
use crate::rules::RULES;

/// The kind of item that a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A class of facts and rules.
    Class,
    /// A fact of a class.
    Fact,
    /// A rule of a class.
    Rule,
}

/// A name of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// As waivers write it.
    pub name: &'static str,
    /// The kind of item.
    pub what: What,
    /// Its class; a class is its own.
    pub class: &'static str,
    /// A title of a class or fact, the reason of a rule.
    pub about: String,
}

/// Every name, class by class: the class, its facts, its rules.
#[must_use]
pub fn codes() -> Vec<Code> {
    let mut codes: Vec<Code> = Vec::new();
    for class in CLASSES {
        codes.push(Code {
            name: class.id,
            what: What::Class,
            class: class.id,
            about: class.title.to_owned(),
        });
        let facts = table()
            .facts
            .iter()
            .filter(|fact| fact.class.id == class.id);
        codes.extend(facts.map(|fact| Code {
            name: &fact.name,
            what: What::Fact,
            class: class.id,
            about: fact.title.clone(),
        }));
        let of_class = RULES.iter().filter(|rule| rule.class == class.id);
        codes.extend(of_class.map(|rule| Code {
            name: rule.id,
            what: What::Rule,
            class: class.id,
            about: rule.why.to_owned(),
        }));
    }
    codes
}

/// Checks that a waiver can be about `name`: a class, a fact or a rule.
///
/// # Errors
/// `name` is unknown; the text suggests the nearest name and says where to list all.
pub fn check_waiver(name: &str) -> Result<(), String> {
    check(name, "class, fact or rule", &[])
}

/// Checks that a contest can be about `name`: a class, a fact, a rule or a variable of some server.
///
/// # Errors
/// `name` is unknown; the text suggests the nearest name and says where to list all.
pub fn check_subject(name: &str) -> Result<(), String> {
    let servers = Defaults::servers().filter_map(|(server, _, _)| Defaults::of(server));
    let mut variables: Vec<String> = servers
        .flat_map(|defaults| defaults.variables.into_keys())
        .collect();
    variables.sort_unstable();
    variables.dedup();
    let wanted = variable_name(name);
    // Plugins bring variables that no recorded server has and that rules of the tables know.
    let bare = wanted.strip_prefix("skip_").unwrap_or(&wanted);
    if variables.iter().any(|variable| variable == bare) || table().is_mapped(bare) {
        return Ok(());
    }
    check(name, "class, fact, rule or variable", &variables)
}

fn check(name: &str, kinds: &str, variables: &[String]) -> Result<(), String> {
    let codes = codes();
    let is_it = |code: &Code| code.name.eq_ignore_ascii_case(name.trim());
    if codes.iter().any(is_it) {
        return Ok(());
    }
    let candidates = codes
        .iter()
        .map(|code| code.name)
        .chain(variables.iter().map(String::as_str));
    let near = nearest(name, candidates)
        .map(|near| format!(" (did you mean `{near}`?)"))
        .unwrap_or_default();
    let classes: Vec<&str> = CLASSES.iter().map(|class| class.id).collect();
    Err(format!(
        "`{name}` is no {kinds} of the audit{near}; the classes are {}; `dbduel audit --codes` lists all names and their meanings",
        classes.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_unique_whatever_its_case() {
        let mut seen = BTreeSet::new();
        for code in codes() {
            assert!(seen.insert(code.name.to_lowercase()), "{}", code.name);
        }
    }

    #[test]
    fn known_names_are_taken_whatever_their_case() {
        for name in ["D3", "d3", "flush.threads", "r17", "unknown", " P1 "] {
            assert_eq!(check_waiver(name), Ok(()), "{name}");
            assert_eq!(check_subject(name), Ok(()), "{name}");
        }
        for name in ["innodb_doublewrite", "innodb-doublewrite", "skip-log-bin"] {
            assert_eq!(check_subject(name), Ok(()), "{name}");
        }
        assert!(check_waiver("innodb_doublewrite").is_err());
    }

    #[test]
    fn unknown_names_come_with_a_near_one_and_the_list() {
        for (name, near) in [
            ("D33", "`D3`"),
            ("flush.thread", "`flush.threads`"),
            ("innodb_doublewrit", "`innodb_doublewrite`"),
        ] {
            let why = check_subject(name).unwrap_err();
            assert!(why.contains(near) && why.contains("D1, D2"), "{why}");
        }
        let why = check_waiver("zzz").unwrap_err();
        assert!(
            !why.contains("did you mean") && why.contains("--codes"),
            "{why}"
        );
    }
}
