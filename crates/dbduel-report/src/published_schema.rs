//! Published schemas: that of the types is the file in `schemas/`, and reports obey it.

#[cfg(test)]
pub mod tests {
    use std::path::Path;

    use schemars::JsonSchema;
    use schemars::generate::SchemaSettings;
    use serde_json::{Map, Value};

    /// The schema of a document as it is written, which must be that of the file in `schemas/`. With `DBDUEL_WRITE_SCHEMA` set, the
    /// file is written before.
    pub fn published<T: JsonSchema>(file: &str) -> Value {
        let generator = SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator();
        let schema = generator.into_root_schema_for::<T>();
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas"));
        let path = folder.join(file);
        if std::env::var_os("DBDUEL_WRITE_SCHEMA").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).unwrap() == text,
            "schemas/{file} is behind the types; write it again with \
             `DBDUEL_WRITE_SCHEMA=1 cargo test -p dbduel-report published_schema`"
        );
        schema.to_value()
    }

    /// The violations of a schema in a document, with their place. Fails on keywords that it does not support, so that none is
    /// ignored.
    pub fn violations(schema: &Value, document: &Value) -> Vec<String> {
        violations_in(schema, schema, document, "")
    }

    fn violations_in(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        let Value::Object(words) = schema else {
            return match schema {
                Value::Bool(true) => Vec::new(),
                _ => vec![format!("{place}: nothing is allowed here")],
            };
        };
        let check =
            |schema: &Value, value: &Value, place: &str| violations_in(root, schema, value, place);
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
}
