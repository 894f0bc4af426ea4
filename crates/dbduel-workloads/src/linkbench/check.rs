//! Checks of the parameters, alone and together.

use dbduel_record::plan::Parameters;
use dbduel_text::nearest;

use super::arithmetic::{AccessFunction, DegreeFunction};
use super::degrees::Model;
use super::graph::Law;
use super::mix::OPERATIONS;
use super::settings::{Bugs, access_function, law, percentages, short};
use crate::parameters::{ParameterError, Resolved};

/// The access functions, by short name.
const FUNCTIONS: &[&str] = &[
    "ZipfDistribution",
    "UniformDistribution",
    "GeometricDistribution",
    "REAL",
    "ROUND_ROBIN",
    "RECIPROCAL",
    "MULTIPLE",
    "POWER",
    "PERFECT_POWER",
];
const GENERATORS: &[&str] = &["MotifDataGenerator", "UniformDataGenerator"];
const DEGREE_FUNCTIONS: &[&str] = &[
    "REAL",
    "FITTED",
    "CONST",
    "ZipfDistribution",
    "UniformDistribution",
    "GeometricDistribution",
    "RECIPROCAL",
    "MULTIPLES",
    "PERFECT_SQUARES",
    "PERFECT_POWERS",
    "EXPONENTIAL",
];
const MULTIGET_FUNCTIONS: &[&str] = &["GeometricDistribution", "UniformDistribution"];

/// Prefixes of the access functions, and of the payload generators.
const ACCESSES: &[&str] = &[
    "read",
    "read_uncorr",
    "write",
    "write_uncorr",
    "node_read",
    "node_update",
    "node_delete",
];
const PAYLOADS: &[&str] = &["link_add", "link_up", "node_add", "node_up"];

/// Refuses invalid combinations of parameters.
pub(super) fn check(parameters: &Parameters) -> Result<(), ParameterError> {
    let resolved = Resolved(parameters);
    check_words(resolved)?;
    let (start, end) = (resolved.count("startid1"), resolved.count("maxid1"));
    if end <= start {
        return refuse(
            "maxid1",
            format!("cannot be {end}; ids begin at `startid1`, which is {start}"),
        );
    }
    for prefix in PAYLOADS {
        let (first, last) = (
            format!("{prefix}_datagen_startbyte"),
            format!("{prefix}_datagen_endbyte"),
        );
        let (low, high) = (resolved.count(&first), resolved.count(&last));
        if high < low {
            return refuse(
                &last,
                format!("cannot be {high}; the alphabet begins at {low}"),
            );
        }
    }
    for prefix in ACCESSES {
        // The sampler's exponent is 1 / (1 − shape).
        let name = format!("{prefix}_shape");
        if resolved.number(&name) == 1.0 {
            return refuse(
                &name,
                "cannot be 1, where the sampler is undefined; use 0.999".to_owned(),
            );
        }
    }
    check_rules(resolved, start, end)?;
    let (min, max) = (
        resolved.count("link_multiget_dist_min"),
        resolved.count("link_multiget_dist_max"),
    );
    if max <= min {
        return refuse(
            "link_multiget_dist_max",
            format!("cannot be {max}; it must be above the minimum, {min}"),
        );
    }
    let below = resolved.count("randomid2max");
    let most = match law(resolved) {
        Some(Law::ByRank(Model::Constant(all))) => all.min(resolved.count("nlinks_max")),
        _ => resolved.count("nlinks_max"),
    };
    if below > 0 && below < most {
        let why = format!(
            "cannot be {below}, because a node with {most} links needs as many ids to point to; raise it or lower `nlinks_max`"
        );
        return refuse("randomid2max", why);
    }
    if Bugs::parse(resolved.text("original_bugs")).is_none() {
        let why = format!(
            "cannot be `{}`; it takes `none`, `all`, or some of `write-blend`, `degree-split`, `multiget-size`, \
             `motif-length` with commas between them",
            resolved.text("original_bugs")
        );
        return refuse("original_bugs", why);
    }
    check_tables(resolved)?;
    check_mix(resolved)
}

/// Checks the parameter of rules about ids, which has a different meaning for each.
fn check_rules(resolved: Resolved<'_>, start: u64, end: u64) -> Result<(), ParameterError> {
    for prefix in ACCESSES {
        let name = format!("{prefix}_config");
        match access_function(resolved, prefix) {
            Some(AccessFunction::Power(0 | 1)) => {
                let why = "cannot be 1; a base must be 2 or more";
                return refuse(&name, why.to_owned());
            }
            Some(AccessFunction::Multiple(of)) if (end - 1) / of == (start - 1) / of => {
                let why = format!(
                    "cannot be {of}, because no id from {start} to {} is a multiple of it",
                    end - 1
                );
                return refuse(&name, why);
            }
            _ => {}
        }
    }
    match law(resolved) {
        Some(Law::ById(DegreeFunction::Exponential(0 | 1), _)) => refuse(
            "nlinks_config",
            "cannot be 1; a base must be 2 or more".to_owned(),
        ),
        _ => Ok(()),
    }
}

fn check_words(resolved: Resolved<'_>) -> Result<(), ParameterError> {
    let functions = ACCESSES
        .iter()
        .map(|prefix| (format!("{prefix}_function"), FUNCTIONS));
    let generators = PAYLOADS
        .iter()
        .map(|prefix| (format!("{prefix}_datagen"), GENERATORS));
    let others = [
        ("nlinks_func".to_owned(), DEGREE_FUNCTIONS),
        ("link_multiget_dist".to_owned(), MULTIGET_FUNCTIONS),
    ];
    for (name, words) in functions.chain(generators).chain(others) {
        let given = resolved.text(&name);
        let is_absent = name == "link_multiget_dist" && given.is_empty();
        if !is_absent && !words.iter().any(|word| short(word) == short(given)) {
            return Err(ParameterError {
                why: format!("cannot be `{given}`; it takes `{}`", words.join("`, `")),
                nearest: nearest(given, words.iter().copied()),
                parameter: name,
            });
        }
    }
    Ok(())
}

fn check_tables(resolved: Resolved<'_>) -> Result<(), ParameterError> {
    let is_row_compressed = resolved.text("row_format") == "compressed";
    let block = resolved.count("key_block_size");
    if ![0, 1, 2, 4, 8, 16].contains(&block) {
        return refuse(
            "key_block_size",
            format!("cannot be {block}; it takes 0, 1, 2, 4, 8 or 16"),
        );
    }
    if block > 0 && !is_row_compressed {
        return refuse(
            "key_block_size",
            "needs `row_format = \"compressed\"`".to_owned(),
        );
    }
    if is_row_compressed && resolved.text("page_compression") != "none" {
        let why = "cannot be used with `row_format = \"compressed\"`; a table is compressed by rows or by pages";
        return refuse("page_compression", why.to_owned());
    }
    Ok(())
}

fn check_mix(resolved: Resolved<'_>) -> Result<(), ParameterError> {
    let sum: f64 = percentages(resolved).iter().sum();
    if (sum - 100.0).abs() > 1e-5 {
        let names = OPERATIONS.map(|operation| operation.parameter).join(", ");
        return refuse(
            "getlinklist",
            format!("makes the mix sum to {sum:.5} percent; {names} must sum to 100"),
        );
    }
    let on_nodes = OPERATIONS.iter().find(|operation| {
        operation.parameter.ends_with("node") && resolved.number(operation.parameter) > 0.0
    });
    match on_nodes {
        Some(operation) if !resolved.switch("generate_nodes") => refuse(
            operation.parameter,
            "needs nodes; set `generate_nodes = true` or remove it from the mix".to_owned(),
        ),
        _ => Ok(()),
    }
}

fn refuse(parameter: &str, why: String) -> Result<(), ParameterError> {
    Err(ParameterError {
        parameter: parameter.to_owned(),
        why,
        nearest: None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_rows::resolved;
    use serde_json::Value;

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (given, parameter) in [
            (vec![("maxid1", Value::from(0))], "maxid1"),
            (
                vec![("startid1", 20.into()), ("maxid1", 20.into())],
                "maxid1",
            ),
            (vec![("getlinklist", 50.into())], "getlinklist"),
            (vec![("generate_nodes", false.into())], "addnode"),
            (
                vec![("read_function", "ZipDistribution".into())],
                "read_function",
            ),
            (
                vec![("node_read_function", "RECIPROCALS".into())],
                "node_read_function",
            ),
            (vec![("nlinks_func", "EXPONENTIAL".into())], "nlinks_config"),
            (vec![("read_function", "POWER".into())], "read_config"),
            (
                vec![
                    ("node_update_function", "MULTIPLE".into()),
                    ("node_update_config", 20_000_000.into()),
                ],
                "node_update_config",
            ),
            (
                vec![("link_up_datagen_endbyte", 9.into())],
                "link_up_datagen_endbyte",
            ),
            (vec![("read_shape", 1.into())], "read_shape"),
            (vec![("randomid2max", 1000.into())], "randomid2max"),
            (vec![("key_block_size", 8.into())], "key_block_size"),
            (
                vec![
                    ("row_format", "compressed".into()),
                    ("key_block_size", 3.into()),
                ],
                "key_block_size",
            ),
            (
                vec![
                    ("row_format", "compressed".into()),
                    ("page_compression", "zlib".into()),
                ],
                "page_compression",
            ),
            (
                vec![("link_multiget_dist_min", 128.into())],
                "link_multiget_dist_max",
            ),
            (
                vec![("original_bugs", "write-bland".into())],
                "original_bugs",
            ),
        ] {
            assert_eq!(resolved(&given).unwrap_err().parameter, parameter);
        }
    }
}
