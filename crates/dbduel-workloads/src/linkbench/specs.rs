//! The parameters: the original program's, by their names, and dbduel's.

use super::degrees::DEGREE_MAX;
use crate::parameters::ParameterSpec;
use crate::specs::{ENGINE, ROW_FORMAT, choice, integer, number, switch, text};

const fn percent(name: &'static str, default: f64, about: &'static str) -> ParameterSpec {
    number(name, 0.0, 100.0, default, about)
}

const FUNCTION: &str = "Distribution of these ids: ZipfDistribution, UniformDistribution, GeometricDistribution \
                        (class names of the original are accepted), REAL, ROUND_ROBIN, or, by a rule about ids, \
                        RECIPROCAL, MULTIPLE, POWER or PERFECT_POWER.";
const GENERATOR: &str = "Generator of these payloads: MotifDataGenerator or UniformDataGenerator.";
const FIRST_BYTE: &str = "First byte of the alphabet of these payloads.";
const LAST_BYTE: &str = "Last byte of the alphabet of these payloads.";
const UNIQUENESS: &str =
    "Share of pieces of these payloads that are random instead of copied from the motif.";
const MOTIF: &str = "Length of the text that pieces of these payloads are copied from, bytes.";
const PROBABILITY: &str = "Success probability of this geometric distribution.";

const SHAPE: &str = "Exponent of this Zipf distribution; must not be 1.";
const CONFIG: &str =
    "Multiple, base or exponent, where the function is MULTIPLE, POWER or PERFECT_POWER.";

/// Parameters of the payloads of one use.
macro_rules! payload {
    ($prefix:literal, bytes: $first:literal..=$last:literal, uniqueness: $share:literal, motif: $motif:literal) => {
        [
            text(
                concat!($prefix, "_datagen"),
                "MotifDataGenerator",
                GENERATOR,
            ),
            integer(
                concat!($prefix, "_datagen_startbyte"),
                0,
                255,
                $first,
                FIRST_BYTE,
            ),
            integer(
                concat!($prefix, "_datagen_endbyte"),
                0,
                255,
                $last,
                LAST_BYTE,
            ),
            number(
                concat!($prefix, "_datagen_uniqueness"),
                0.0,
                1.0,
                $share,
                UNIQUENESS,
            ),
            integer(
                concat!($prefix, "_datagen_motif_length"),
                1,
                1 << 20,
                $motif,
                MOTIF,
            ),
        ]
    };
}

/// Parameters of the choice of nodes for one use. Function names are checked later, so that class names can be given.
macro_rules! access {
    ($prefix:literal, $function:literal, shape: $shape:literal) => {
        [
            text(concat!($prefix, "_function"), $function, FUNCTION),
            number(concat!($prefix, "_shape"), 0.0, 10.0, $shape, SHAPE),
            number(concat!($prefix, "_prob"), 1e-9, 1.0, 0.5, PROBABILITY),
            integer(concat!($prefix, "_config"), 1, i64::MAX / 4, 1, CONFIG),
        ]
    };
}

/// Every parameter.
pub(super) fn specs() -> Vec<ParameterSpec> {
    [
        GRAPH,
        &payload!("link_add", bytes: 32..=100, uniqueness: 0.225, motif: 128),
        &payload!("link_up", bytes: 32..=100, uniqueness: 0.225, motif: 128),
        &payload!("node_add", bytes: 50..=220, uniqueness: 0.63, motif: 512),
        &payload!("node_up", bytes: 50..=220, uniqueness: 0.63, motif: 512),
        MIX,
        &access!("read", "ZipfDistribution", shape: 0.8),
        &access!("read_uncorr", "ZipfDistribution", shape: 0.8),
        &access!("write", "ZipfDistribution", shape: 0.741),
        &access!("write_uncorr", "ZipfDistribution", shape: 0.741),
        BLENDS,
        &access!("node_read", "ZipfDistribution", shape: 0.625),
        &access!("node_update", "ZipfDistribution", shape: 0.606),
        &access!("node_delete", "UniformDistribution", shape: 0.606),
        OTHERS,
    ]
    .concat()
}

/// Parameters of the graph.
const GRAPH: &[ParameterSpec] = &[
    integer("startid1", 1, i64::MAX / 4, 1, "Id of the first node."),
    integer(
        "maxid1",
        2,
        i64::MAX / 4,
        10_000_001,
        "Id after the last node; a million nodes take about 1 GB.",
    ),
    switch(
        "generate_nodes",
        true,
        "Whether the nodes themselves are filled in, not only their links.",
    ),
    integer(
        "link_type_count",
        1,
        64,
        2,
        "Number of types that a node's links are split over.",
    ),
    text(
        "nlinks_func",
        "REAL",
        "Out-degrees: REAL (the published sample, by 28 knots), FITTED (the same by a closed form), CONST \
         (`nlinks_default` each), a distribution (ZipfDistribution, UniformDistribution, GeometricDistribution), or, by \
         a rule about ids, RECIPROCAL, MULTIPLES, PERFECT_SQUARES or EXPONENTIAL.",
    ),
    integer(
        "nlinks_default",
        0,
        DEGREE_MAX as i64,
        0,
        "Links of every node with `nlinks_func = CONST`; fewest links of a node with a rule about ids.",
    ),
    integer(
        "nlinks_config",
        1,
        i64::MAX / 4,
        1,
        "Multiple, exponent or base, where `nlinks_func` is MULTIPLES, PERFECT_SQUARES or EXPONENTIAL.",
    ),
    number(
        "nlinks_mean",
        0.0,
        1e9,
        4.1,
        "Mean number of links of a node, where `nlinks_func` is a distribution.",
    ),
    number(
        "nlinks_shape",
        0.001,
        10.0,
        1.5,
        "Exponent of the out-degrees where they are a Zipf distribution.",
    ),
    number("nlinks_prob", 1e-9, 1.0, 0.5, PROBABILITY),
    integer(
        "nlinks_max",
        1,
        DEGREE_MAX as i64,
        DEGREE_MAX as i64,
        "Most links of a node. The default is the largest out-degree of the published sample, used for any number \
         of nodes; set less for small graphs.",
    ),
    integer(
        "randomid2max",
        0,
        i32::MAX as i64,
        0,
        "When not 0, links point to ids below it instead of to the following ids.",
    ),
    integer(
        "id2gen_config",
        0,
        1,
        0,
        "With 1, clients never touch the same link.",
    ),
    number(
        "link_datasize",
        0.0,
        254.0,
        8.0,
        "Median length of a link's payload, bytes.",
    ),
    number(
        "node_datasize",
        0.0,
        1_048_575.0,
        128.0,
        "Median length of a node's payload, bytes.",
    ),
];

/// Parameters of the mix of operations.
const MIX: &[ParameterSpec] = &[
    percent(
        "addlink",
        8.988_660_1,
        "Percent of operations that add a link.",
    ),
    percent(
        "deletelink",
        2.990_766_4,
        "Percent of operations that hide a link.",
    ),
    percent(
        "updatelink",
        8.012_212_5,
        "Percent of operations that update a link.",
    ),
    percent(
        "countlink",
        4.886_356_7,
        "Percent of operations that read a link count.",
    ),
    percent(
        "getlink",
        0.526_114_2,
        "Percent of operations that read a few links by their ids.",
    ),
    percent(
        "getlinklist",
        50.711_914_5,
        "Percent of operations that read a node's newest links.",
    ),
    percent(
        "addnode",
        2.573_278_9,
        "Percent of operations that add a node.",
    ),
    percent(
        "updatenode",
        7.366_437,
        "Percent of operations that update a node.",
    ),
    percent(
        "deletenode",
        1.011_591_4,
        "Percent of operations that delete a node.",
    ),
    percent(
        "getnode",
        12.932_668_3,
        "Percent of operations that read a node.",
    ),
    percent(
        "getlinklist_history",
        0.3,
        "Percent of `getlinklist` that continue a long list read earlier.",
    ),
];

/// Shares of accesses that are uncorrelated with out-degrees.
const BLENDS: &[ParameterSpec] = &[
    percent(
        "read_uncorr_blend",
        99.5,
        "Percent of link reads whose ids are uncorrelated with out-degrees.",
    ),
    percent(
        "write_uncorr_blend",
        95.0,
        "Percent of link writes whose ids are uncorrelated with out-degrees.",
    ),
];

/// Parameters of multigets, of filling and storing tables, and of the protocol; the first word of a choice is its
/// default.
const OTHERS: &[ParameterSpec] = &[
    text(
        "link_multiget_dist",
        "GeometricDistribution",
        "Number of links that `getlink` asks for: GeometricDistribution, UniformDistribution, or empty for always one.",
    ),
    integer(
        "link_multiget_dist_min",
        1,
        1_000,
        1,
        "Fewest links that `getlink` asks for.",
    ),
    integer(
        "link_multiget_dist_max",
        2,
        1_001,
        128,
        "Most links that `getlink` asks for, plus one.",
    ),
    number("link_multiget_dist_prob", 1e-6, 1.0, 0.382, PROBABILITY),
    integer(
        "loaders",
        1,
        256,
        8,
        "Connections that fill the tables at the same time.",
    ),
    choice(
        "index",
        &["after", "before"],
        "Whether the index of the lists is built after loading or created with the table.",
    ),
    integer(
        "partitions",
        1,
        1_024,
        16,
        "Partitions of the table of links, by key; 1 means none. PostgreSQL supports them from version 11 on.",
    ),
    ENGINE,
    ROW_FORMAT,
    integer(
        "key_block_size",
        0,
        16,
        0,
        "Size of a compressed page with `row_format = compressed`, kB; 0 leaves it to the server.",
    ),
    choice(
        "page_compression",
        &["none", "zlib", "lz4", "lzo", "lzma", "bzip2", "snappy"],
        "Page compression of the tables. MySQL sets it per table; MariaDB has one algorithm for the server, \
         which must be set to this one.",
    ),
    text(
        "create_table_options",
        "",
        "Appended to CREATE TABLE, before the partitions.",
    ),
    choice(
        "protocol",
        &["text", "prepared"],
        "Whether statements are sent as text, as the original does, or prepared.",
    ),
    text(
        "original_bugs",
        "none",
        "Bugs of the original program to repeat: `none`, `all`, or some of `write-blend`, `degree-split`, \
         `multiget-size`, `motif-length`, separated by commas.",
    ),
];
