//! The published JSON: the summary and the findings as they are, nothing rounded.

use dbduel_audit::Finding;
use dbduel_judge::Summary;
use dbduel_judge::summary::SCHEMA_VERSION;
use dbduel_record::event;
use dbduel_text::escaped_json;
use serde::Serialize;

use super::{Format, Options, Rendered, explanation};

/// A report of dbduel in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "dbduel report"))]
pub struct Document {
    /// Version of the document's schema.
    pub schema_version: u32,
    /// Verdicts, figures and facts of the contest.
    pub summary: Summary,
    /// Findings, heaviest first.
    pub findings: Vec<event::Notice>,
    /// The explanations of the summary in sentences, in the same order.
    #[serde(default)]
    pub sentences: Vec<Vec<String>>,
}

/// The schema of the document as it is written, JSON Schema 2020-12. Fields may be added without a new version.
pub const SCHEMA: &str = include_str!("../report.schema.json");

/// The format.
pub const JSON: Format = Format {
    name: "json",
    file_name: Some("report.json"),
    render: json,
};

fn json(summary: &Summary, findings: &[Finding], _options: &Options) -> Rendered {
    let document = Document {
        schema_version: SCHEMA_VERSION,
        summary: summary.clone(),
        findings: findings.iter().cloned().map(event::Notice::from).collect(),
        sentences: summary
            .explanations
            .iter()
            .map(|one| explanation::sentences(summary, one).all())
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("a summary has string keys and finite numbers, so it is always JSON");
    text.push('\n');
    Rendered::of_files(&escaped_json(text), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_judge::summarise;
    use dbduel_testkit::synthetic::{Observation, Scenario};
    use schemars::generate::SchemaSettings;
    use serde_json::{Map, Value, json};

    /// The published file. With `DBDUEL_WRITE_SCHEMA` set, the test writes it.
    const FILE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../schemas/report.schema.json"
    );

    /// The schema of the types.
    fn schema() -> schemars::Schema {
        let generator = SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator();
        generator.into_root_schema_for::<Document>()
    }

    /// The violations of `schema` in `value`, with their place. Fails on keywords that it does not support, so that none
    /// is ignored.
    fn violations(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        let Value::Object(words) = schema else {
            return match schema {
                Value::Bool(true) => Vec::new(),
                _ => vec![format!("{place}: nothing is allowed here")],
            };
        };
        let check =
            |schema: &Value, value: &Value, place: &str| violations(root, schema, value, place);
        let mut found = Vec::new();
        for (word, rule) in words {
            let broken = match word.as_str() {
                "$schema" | "$defs" | "title" | "description" | "format" | "default" => continue,
                "$ref" => {
                    let target = rule.as_str().and_then(|to| to.strip_prefix('#'));
                    let target = target
                        .and_then(|to| root.pointer(to))
                        .expect("a definition");
                    found.extend(check(target, value, place));
                    continue;
                }
                "type" => !is_of_type(rule, value),
                "const" => rule != value,
                "enum" => !rule.as_array().unwrap().contains(value),
                "minimum" => value
                    .as_f64()
                    .is_some_and(|value| value < rule.as_f64().unwrap()),
                "maximum" => value
                    .as_f64()
                    .is_some_and(|value| value > rule.as_f64().unwrap()),
                "minItems" => value
                    .as_array()
                    .is_some_and(|all| (all.len() as u64) < rule.as_u64().unwrap()),
                "maxItems" => value
                    .as_array()
                    .is_some_and(|all| all.len() as u64 > rule.as_u64().unwrap()),
                "anyOf" | "oneOf" => {
                    let fits = |one: &&Value| check(one, value, place).is_empty();
                    let fitting = rule.as_array().unwrap().iter().filter(fits).count();
                    fitting == 0 || (word == "oneOf" && fitting > 1)
                }
                "required" => {
                    let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
                    value.is_object() && !rule.as_array().unwrap().iter().all(has)
                }
                "properties" => {
                    for (name, inner) in rule.as_object().unwrap() {
                        if let Some(value) = value.get(name) {
                            found.extend(check(inner, value, &format!("{place}/{name}")));
                        }
                    }
                    continue;
                }
                "additionalProperties" => {
                    let known = words.get("properties").and_then(Value::as_object);
                    for (name, inner) in value.as_object().unwrap_or(&Map::new()) {
                        if !known.is_some_and(|known| known.contains_key(name)) {
                            found.extend(check(rule, inner, &format!("{place}/{name}")));
                        }
                    }
                    continue;
                }
                "items" | "prefixItems" => {
                    let all = value.as_array().map_or(&[][..], Vec::as_slice);
                    for (index, inner) in all.iter().enumerate() {
                        let rule = rule.get(index).unwrap_or(rule);
                        found.extend(check(rule, inner, &format!("{place}/{index}")));
                    }
                    continue;
                }
                other => panic!("the test does not know `{other}` at {place}"),
            };
            if broken {
                found.push(format!("{place}: {value:.80} breaks `{word}`: {rule:.200}"));
            }
        }
        found
    }

    fn is_of_type(rule: &Value, value: &Value) -> bool {
        let is = |name: &Value| match name.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("the test does not know the type `{other}`"),
        };
        match rule {
            Value::Array(names) => names.iter().any(is),
            name => is(name),
        }
    }

    fn document(scenario: &Scenario) -> Value {
        let (summary, findings) = summarise(&scenario.record());
        let options = Options {
            width: 80,
            colour: false,
        };
        serde_json::from_str(&JSON.render(&summary, &findings, &options).text).unwrap()
    }

    #[test]
    fn the_published_schema_is_that_of_the_types() {
        let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        if std::env::var_os("DBDUEL_WRITE_SCHEMA").is_some() {
            std::fs::write(FILE, &text).unwrap();
        }
        let published = std::fs::read_to_string(FILE).unwrap();
        assert!(
            published == text,
            "schemas/report.schema.json is behind the types; write it again with \
             `DBDUEL_WRITE_SCHEMA=1 cargo test -p dbduel-report published_schema`"
        );
    }

    #[test]
    fn reports_of_all_kinds_obey_the_schema() {
        let schema = schema().to_value();
        let mut with_stalls = Scenario::duel();
        with_stalls.sides[1].stalls_per_s = 0.03;
        let scenarios = [
            Scenario::duel(),
            Scenario::duel().observed(Observation::doublewrite()),
            Scenario::four(),
            with_stalls,
            Scenario {
                blocks: 1,
                ..Scenario::duel()
            },
        ];
        for scenario in &scenarios {
            let found = violations(&schema, &schema, &document(scenario), "");
            assert!(found.is_empty(), "{found:#?}");
        }
    }

    #[test]
    fn what_is_no_report_breaks_the_schema() {
        let schema = schema().to_value();
        let good = document(&Scenario::duel());
        let broken = [
            ("/schema_version", json!("2")),
            ("/summary/baseline", json!(null)),
            ("/summary/duels/0/comparisons/0/verdict", json!("better")),
            (
                "/summary/duels/0/comparisons/0/ratio",
                json!({ "state": "estimated" }),
            ),
            ("/findings", json!({})),
        ];
        for (place, value) in broken {
            let mut document = good.clone();
            *document.pointer_mut(place).expect(place) = value;
            assert!(
                !violations(&schema, &schema, &document, "").is_empty(),
                "{place}"
            );
        }
    }
}
