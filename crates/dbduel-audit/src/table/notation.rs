//! From the text of the tables to facts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Compare, Fact, Faster, Row, Table};
use crate::classes::{self, Class, Weight};
use crate::expression::{self, Expression};
use crate::server::Servers;
use crate::value::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    #[serde(default)]
    fact: Vec<WrittenFact>,
    #[serde(default)]
    same: Vec<WrittenSame>,
    #[serde(default)]
    ignored: Vec<WrittenIgnored>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFact {
    name: String,
    class: String,
    title: String,
    #[serde(default)]
    unit: String,
    compare: Option<String>,
    weight: Option<Weight>,
    faster: Option<String>,
    target: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    why: String,
    remedy: Option<String>,
    rows: Vec<WrittenRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    on: String,
    value: String,
    set: Option<String>,
    #[serde(default)]
    architecture: bool,
    #[serde(default)]
    raise_only: bool,
    target: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSame {
    class: String,
    on: Option<String>,
    weight: Option<Weight>,
    asked_weight: Option<Weight>,
    absent: Option<String>,
    why: String,
    variables: Vec<String>,
    settable: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenIgnored {
    why: String,
    variables: Vec<String>,
    #[serde(default)]
    unrecorded: bool,
}

/// Parses the files of the tables.
///
/// # Errors
/// The first thing that is wrong, with the name of the fact.
pub fn parse(files: &[&str]) -> Result<Table, String> {
    let mut facts = Vec::new();
    let mut ignored = Vec::new();
    let mut unrecorded = Vec::new();
    for text in files {
        let file: WrittenFile = toml::from_str(text).map_err(|error| error.to_string())?;
        for fact in file.fact {
            let name = fact.name.clone();
            facts.push(complete(fact).map_err(|why| format!("{name}: {why}"))?);
        }
        for same in &file.same {
            for variable in &same.variables {
                facts.push(plain(same, variable).map_err(|why| format!("{variable}: {why}"))?);
            }
        }
        for group in file.ignored {
            if group.unrecorded {
                unrecorded.extend(group.variables.iter().cloned());
            }
            ignored.extend(
                group
                    .variables
                    .into_iter()
                    .map(|variable| (variable, group.why.clone())),
            );
        }
    }
    let place = |fact: &Fact| {
        classes::CLASSES
            .iter()
            .position(|class| class.id == fact.class.id)
    };
    facts.sort_by_key(place);
    let names = facts
        .iter()
        .flat_map(|fact| &fact.rows)
        .flat_map(|row| expression::names(&row.value));
    let mapped = names.map(str::to_owned).collect();
    Ok(Table {
        facts,
        ignored,
        unrecorded,
        mapped,
    })
}

fn class_of(id: &str) -> Result<&'static Class, String> {
    classes::class(id).ok_or_else(|| format!("there is no class `{id}`"))
}

fn complete(written: WrittenFact) -> Result<Fact, String> {
    let class = class_of(&written.class)?;
    let weight = written.weight.unwrap_or_else(|| class.weight());
    Ok(Fact {
        name: written.name,
        class,
        title: written.title,
        unit: written.unit,
        compare: compare(written.compare.as_deref().unwrap_or("equal"))?,
        weight,
        asked_weight: weight,
        faster: faster(written.faster.as_deref()),
        target: written
            .target
            .as_deref()
            .map(expression::parse)
            .transpose()?,
        labels: written.labels,
        why: written.why,
        remedy: written.remedy,
        rows: written
            .rows
            .into_iter()
            .map(complete_row)
            .collect::<Result<_, _>>()?,
        is_plain: false,
    })
}

fn complete_row(written: WrittenRow) -> Result<Row, String> {
    let settings = written.set.iter().flat_map(|set| set.split(';'));
    let settings = settings.map(|setting| {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("`{setting}` sets nothing"))?;
        Ok((name.trim().to_owned(), expression::parse(value)?))
    });
    Ok(Row {
        on: Servers::parse(&written.on)?,
        value: expression::parse(&written.value)?,
        set: settings.collect::<Result<_, String>>()?,
        is_architecture: written.architecture,
        is_raise_only: written.raise_only,
        target: written
            .target
            .as_deref()
            .map(expression::parse)
            .transpose()?,
        labels: written.labels,
        source: written.source,
    })
}

fn plain(same: &WrittenSame, variable: &str) -> Result<Fact, String> {
    let class = class_of(&same.class)?;
    let weight = same.weight.unwrap_or_else(|| class.weight());
    let value = match &same.absent {
        Some(absent) => {
            let absent = Expression::Literal(Value::read(absent));
            Expression::Call(
                expression::Function::First,
                vec![Expression::Name(variable.to_owned()), absent],
            )
        }
        None => Expression::Name(variable.to_owned()),
    };
    let set = same
        .settable
        .unwrap_or(true)
        .then(|| (variable.to_owned(), Expression::Name("target".to_owned())));
    Ok(Fact {
        name: variable.to_owned(),
        class,
        title: variable.to_owned(),
        unit: String::new(),
        compare: Compare::Equal,
        weight,
        asked_weight: same.asked_weight.unwrap_or(weight),
        faster: Faster::Unknown,
        target: None,
        labels: BTreeMap::new(),
        why: same.why.clone(),
        remedy: None,
        rows: vec![Row {
            on: Servers::parse(same.on.as_deref().unwrap_or("innodb"))?,
            value,
            set: set.into_iter().collect(),
            is_architecture: false,
            is_raise_only: false,
            target: None,
            labels: BTreeMap::new(),
            source: "SHOW VARIABLES".to_owned(),
        }],
        is_plain: true,
    })
}

fn compare(text: &str) -> Result<Compare, String> {
    let mut words = text.split_ascii_whitespace();
    let kind = words.next().unwrap_or_default();
    let mut number = || {
        let word = words
            .next()
            .ok_or_else(|| format!("`{text}` lacks a number"))?;
        word.parse::<f64>()
            .map_err(|_| format!("`{word}` is not a number"))
    };
    match kind {
        "equal" => Ok(Compare::Equal),
        "within" => Ok(Compare::Within(number()? / 100.0)),
        "ratio" => Ok(Compare::Ratio(number()?)),
        "list" => Ok(Compare::List),
        "flags" => Ok(Compare::Flags),
        "where" => Ok(Compare::WhereBoth),
        _ => Err(format!("`{text}` is no way to compare")),
    }
}

fn faster(text: Option<&str>) -> Faster {
    match text {
        None => Faster::Unknown,
        Some("larger") => Faster::Larger,
        Some("smaller") => Faster::Smaller,
        Some(words) => Faster::Words(
            words
                .split('>')
                .map(|word| word.trim().to_owned())
                .collect(),
        ),
    }
}
