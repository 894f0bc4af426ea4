//! The workload's parameters: names, defaults and descriptions.

use crate::parameters::ParameterSpec;
use crate::specs::{ENGINE, ROW_FORMAT, choice, integer, number, switch, text};

/// Every parameter; the first word of a choice is its default.
pub(super) const SPECS: &[ParameterSpec] = &[
    integer(
        "warehouses",
        1,
        60_000,
        1,
        "Warehouses, each with ten districts and about 100 MB of data.",
    ),
    number(
        "scale",
        0.01,
        1.0,
        1.0,
        "Share of the specification's items, customers and orders; below 1 for trials only.",
    ),
    switch(
        "foreign_keys",
        false,
        "Whether the ten foreign keys of the specification are created, after the rows are in.",
    ),
    integer(
        "partitions",
        1,
        1_024,
        1,
        "Partitions, by hash of the warehouse, of every table but `item`; 1 means none.",
    ),
    ENGINE,
    ROW_FORMAT,
    text("character_set", "latin1", "Character set of the tables."),
    text(
        "collation",
        "",
        "Collation of the tables; without one that of the character set.",
    ),
    text(
        "create_table_options",
        "",
        "Appended to CREATE TABLE, after the engine.",
    ),
    choice(
        "mix",
        &["deck", "weighted"],
        "How a terminal chooses its next transaction: from shuffled decks of 23 cards, or by `weights`.",
    ),
    text(
        "weights",
        "45,43,4,4,4",
        "Percent of new-order, payment, order-status, delivery and stock-level in the weighted mix.",
    ),
    choice(
        "terminals",
        &["bound", "roaming"],
        "Whether a client keeps its warehouse and district, as the specification demands, or draws a warehouse for \
         every transaction, as most other implementations do.",
    ),
    switch(
        "keying_and_think_times",
        false,
        "Whether terminals wait for keying and thinking; a transaction then takes a terminal about 21 s.",
    ),
    choice(
        "protocol",
        &["prepared", "text", "grouped"],
        "How statements are sent: prepared, as text, or with all that are known together in one round trip, as text on MySQL \
         and MariaDB, prepared on PostgreSQL.",
    ),
    choice(
        "isolation",
        &["product", "read-committed", "repeatable-read"],
        "Isolation that clients set for their transactions; `product` is repeatable read on MySQL and MariaDB, and read \
         committed on PostgreSQL, whose repeatable read fails where InnoDB's waits.",
    ),
    integer(
        "nurand_last_load",
        0,
        255,
        208,
        "Constant that the customers' last names are drawn with when the tables are filled; kept with the data.",
    ),
    integer(
        "nurand_last",
        0,
        255,
        123,
        "Constant that the clients draw last names with; 65 to 119, but not 96 or 112, away from the data's.",
    ),
    integer(
        "nurand_customer",
        0,
        1_023,
        259,
        "Constant that the clients draw customer numbers with.",
    ),
    integer(
        "nurand_item",
        0,
        8_191,
        4_211,
        "Constant that the clients draw item numbers with.",
    ),
];
