//! The workload's parameters in their types, and checks of their combination.

use dbduel_driver::{Dialect, Protocol};
use dbduel_record::order_entry::{CLASSES, TERMINALS_PER_WAREHOUSE};
use dbduel_record::plan::Parameters;

use super::values::{LAST_NAME_MASK, NonUniform, constants_fit};
use crate::parameters::{ParameterError, Resolved};

/// Items, and rows of stock per warehouse.
const ITEMS: f64 = 100_000.0;
/// Customers per district, and initial orders.
const CUSTOMERS: f64 = 3_000.0;
/// Last names.
const LAST_NAMES: u64 = 1_000;
/// Mask of the distribution of items, plus one.
const ITEM_SPAN: f64 = 8_192.0;
/// Mask of the distribution of customers, plus one.
const CUSTOMER_SPAN: f64 = 1_024.0;

/// Districts of a warehouse.
pub(super) const DISTRICTS: u64 = TERMINALS_PER_WAREHOUSE as u64;

/// Numbers of rows that depend on the scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Population {
    /// Items, and rows of stock per warehouse.
    pub items: u64,
    /// Customers per district, and initial orders.
    pub customers: u64,
    /// Number of these orders, the last ones, that are not delivered yet.
    pub open_orders: u64,
    /// Different last names.
    pub last_names: u64,
}

impl Population {
    fn new(scale: f64) -> Self {
        let customers = (CUSTOMERS * scale).round() as u64;
        Population {
            items: (ITEMS * scale).round() as u64,
            customers,
            open_orders: customers * 3 / 10,
            last_names: customers.min(LAST_NAMES),
        }
    }

    /// The distribution of last names with this constant.
    pub(super) fn last_name(&self, constant: u64) -> NonUniform {
        NonUniform {
            mask: LAST_NAME_MASK,
            low: 0,
            high: self.last_names - 1,
            constant,
        }
    }
}

/// How a terminal chooses its next transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MixRule {
    /// From a shuffled deck.
    Deck,
    /// With these weights.
    Weighted([u64; 5]),
}

/// Isolation that clients set for their transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolation {
    /// For each product the level at which the second client to write a row waits and continues.
    Product,
    ReadCommitted,
    RepeatableRead,
}

impl Isolation {
    /// In the words of SQL.
    pub(super) fn level(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Isolation::RepeatableRead, _) | (Isolation::Product, Dialect::MySql) => {
                "REPEATABLE READ"
            }
            (Isolation::ReadCommitted, _) | (Isolation::Product, Dialect::PostgreSql) => {
                "READ COMMITTED"
            }
            (Isolation::Product, Dialect::Sqlite) => "SERIALIZABLE",
        }
    }
}

/// The parameters in their types.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub warehouses: u64,
    pub population: Population,
    pub mix: MixRule,
    /// Whether terminals keep their warehouse and district.
    pub bound: bool,
    /// Whether terminals wait for keying and think times.
    pub paced: bool,
    pub protocol: Protocol,
    pub isolation: Isolation,
    pub last_name_load: u64,
    pub last_name_run: u64,
    /// Last names as clients draw them.
    pub last_name: NonUniform,
    /// Customer numbers as clients draw them.
    pub customer: NonUniform,
    /// Item numbers as clients draw them.
    pub item: NonUniform,
}

impl Settings {
    /// Converts resolved parameters.
    pub(super) fn new(parameters: &Parameters) -> Self {
        let resolved = Resolved(parameters);
        let scale = resolved.number("scale");
        let population = Population::new(scale);
        let mask = |span: f64| ((span * scale) as u64).next_power_of_two() - 1;
        let (customer_mask, item_mask) = (mask(CUSTOMER_SPAN), mask(ITEM_SPAN));
        let last_name_run = resolved.count("nurand_last");
        Settings {
            warehouses: resolved.count("warehouses"),
            population,
            mix: match resolved.text("mix") {
                "weighted" => {
                    MixRule::Weighted(weights(resolved.text("weights")).unwrap_or_default())
                }
                _ => MixRule::Deck,
            },
            bound: resolved.text("terminals") == "bound",
            paced: resolved.switch("keying_and_think_times"),
            protocol: match resolved.text("protocol") {
                "text" => Protocol::Text,
                "grouped" => Protocol::Grouped,
                _ => Protocol::Prepared,
            },
            isolation: match resolved.text("isolation") {
                "read-committed" => Isolation::ReadCommitted,
                "repeatable-read" => Isolation::RepeatableRead,
                _ => Isolation::Product,
            },
            last_name_load: resolved.count("nurand_last_load"),
            last_name_run,
            last_name: population.last_name(last_name_run),
            customer: NonUniform {
                mask: customer_mask,
                low: 1,
                high: population.customers,
                // A constant lies within its mask, which a scale below 1 makes narrower.
                constant: resolved.count("nurand_customer") & customer_mask,
            },
            item: NonUniform {
                mask: item_mask,
                low: 1,
                high: population.items,
                constant: resolved.count("nurand_item") & item_mask,
            },
        }
    }

    /// Maximum number of clients that can have separate districts; `None` when they need not.
    pub(super) fn clients_max(&self) -> Option<u64> {
        self.bound.then_some(self.warehouses * DISTRICTS)
    }
}

/// Refuses invalid combinations of parameters.
pub(super) fn check(parameters: &Parameters) -> Result<(), ParameterError> {
    let resolved = Resolved(parameters);
    let refuse = |parameter: &str, why: String| {
        Err(ParameterError {
            parameter: parameter.to_owned(),
            why,
            nearest: None,
        })
    };
    let given = resolved.text("weights");
    if weights(given).is_none() {
        let why = format!(
            "cannot be `{given}`; it takes five whole numbers, separated by commas, that sum to 100: {}",
            CLASSES.join(", ")
        );
        return refuse("weights", why);
    }
    if resolved.switch("foreign_keys") && resolved.count("partitions") > 1 {
        let why = "cannot be used with foreign keys, which servers refuse on partitioned tables; \
                   say `foreign_keys = false`";
        return refuse("partitions", why.to_owned());
    }
    let (load, run) = (
        resolved.count("nurand_last_load"),
        resolved.count("nurand_last"),
    );
    if !constants_fit(load, run) {
        return refuse(
            "nurand_last",
            format!(
                "cannot be {run} for data filled with {load}; {}",
                allowed_constants(load)
            ),
        );
    }
    Ok(())
}

/// Refuses what SQLite does not support.
pub(super) fn check_sqlite(parameters: &Parameters) -> Result<(), ParameterError> {
    let resolved = Resolved(parameters);
    let (parameter, why) = if resolved.text("protocol") == "grouped" {
        (
            "protocol",
            "cannot be `grouped` on SQLite, where there is no round trip to save",
        )
    } else if resolved.count("partitions") > 1 {
        (
            "partitions",
            "cannot be above 1 on SQLite, which has no partitions",
        )
    } else if resolved.switch("foreign_keys") {
        (
            "foreign_keys",
            "cannot be on with SQLite, which cannot add foreign keys to existing tables",
        )
    } else {
        return Ok(());
    };
    Err(ParameterError {
        parameter: parameter.to_owned(),
        why: why.to_owned(),
        nearest: None,
    })
}

/// Constants that a run may use, as the end of a sentence.
pub(super) fn allowed_constants(load: u64) -> String {
    let example = if load >= 85 { load - 85 } else { load + 85 };
    format!("the difference must be 65 to 119, but not 96 or 112; use {example}, for example")
}

/// The weights in the order of the classes.
fn weights(text: &str) -> Option<[u64; 5]> {
    let numbers: Option<Vec<u64>> = text
        .split(',')
        .map(|number| number.trim().parse().ok())
        .collect();
    let weights: [u64; 5] = numbers?.try_into().ok()?;
    let in_range = weights.iter().all(|&weight| weight <= 100);
    (in_range && weights.iter().sum::<u64>() == 100).then_some(weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, parameters::resolve};
    use serde_json::Value;

    fn resolved(given: &[(&str, Value)]) -> Result<Parameters, ParameterError> {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        resolve(find("order-entry").unwrap(), &given)
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (given, parameter) in [
            (vec![("warehouses", Value::from(0))], "warehouses"),
            (vec![("weights", "45,43,4,4".into())], "weights"),
            (vec![("weights", "45,43,4,4,5".into())], "weights"),
            (vec![("weights", "100,43,-43,0,0".into())], "weights"),
            (
                vec![("foreign_keys", true.into()), ("partitions", 4.into())],
                "partitions",
            ),
            (vec![("nurand_last", 208.into())], "nurand_last"),
            (vec![("nurand_last", 112.into())], "nurand_last"),
            (vec![("mix", "decks".into())], "mix"),
        ] {
            assert_eq!(resolved(&given).unwrap_err().parameter, parameter);
        }
    }

    #[test]
    fn at_full_scale_the_numbers_are_those_of_the_specification() {
        let settings = Settings::new(&resolved(&[]).unwrap());
        let expected = Population {
            items: 100_000,
            customers: 3_000,
            open_orders: 900,
            last_names: 1_000,
        };
        assert_eq!(settings.population, expected);
        assert_eq!(
            (
                settings.customer.mask,
                settings.item.mask,
                settings.last_name.mask
            ),
            (1_023, 8_191, 255)
        );
        assert_eq!(
            (settings.customer.constant, settings.item.constant),
            (259, 4_211)
        );
    }

    #[test]
    fn a_small_scale_keeps_masks_below_their_ranges() {
        for scale in [0.01, 0.05, 0.3, 0.99] {
            let settings = Settings::new(&resolved(&[("scale", scale.into())]).unwrap());
            for distribution in [settings.customer, settings.item] {
                assert!(distribution.mask < distribution.high, "{distribution:?}");
                assert!(
                    distribution.constant <= distribution.mask,
                    "{distribution:?}"
                );
            }
        }
    }

    #[test]
    fn every_example_is_allowed() {
        for load in 0..=255 {
            let text = allowed_constants(load);
            let (_, example) = text.split_once("use ").unwrap();
            let (example, _) = example.split_once(',').unwrap();
            let example: u64 = example.parse().unwrap();
            assert!(
                constants_fit(load, example) && example <= 255,
                "{load}: {example}"
            );
        }
    }
}
