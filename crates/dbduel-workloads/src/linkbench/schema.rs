//! The three tables: columns, keys and storage; the rows come from [`super::population`].

use dbduel_driver::Dialect;
use dbduel_record::plan::Parameters;

use super::population::{Content, Filler};
use super::settings::Settings;
use crate::Table;
use crate::parameters::Resolved;
use crate::sql::{self, Partitions};

const LINKS: &str = "id1 BIGINT UNSIGNED NOT NULL DEFAULT 0, id2 BIGINT UNSIGNED NOT NULL DEFAULT 0, \
    link_type BIGINT UNSIGNED NOT NULL DEFAULT 0, visibility TINYINT NOT NULL DEFAULT 0, \
    data VARCHAR(255) NOT NULL DEFAULT '', time BIGINT UNSIGNED NOT NULL DEFAULT 0, \
    version INT UNSIGNED NOT NULL DEFAULT 0, PRIMARY KEY (link_type, id1, id2)";
/// The index that covers the query for a list.
const LISTS: &str = "id1_type (id1, link_type, visibility, time, id2, version, data)";
/// Columns of bytes and their types in PostgreSQL, whose texts must be valid in the encoding of the database.
const BYTES: [(&str, &str); 2] = [("VARCHAR(255)", "BYTEA"), ("MEDIUMTEXT", "BYTEA")];
const COUNTS: &str = "id BIGINT UNSIGNED NOT NULL DEFAULT 0, link_type BIGINT UNSIGNED NOT NULL DEFAULT 0, \
    count INT UNSIGNED NOT NULL DEFAULT 0, time BIGINT UNSIGNED NOT NULL DEFAULT 0, \
    version BIGINT UNSIGNED NOT NULL DEFAULT 0, PRIMARY KEY (id, link_type)";
const NODES: &str = "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, type INT UNSIGNED NOT NULL, \
    version BIGINT UNSIGNED NOT NULL, time INT UNSIGNED NOT NULL, data MEDIUMTEXT NOT NULL, PRIMARY KEY (id)";

/// The tables with their rows.
pub(super) fn tables(dialect: Dialect, parameters: &Parameters) -> Vec<Table> {
    let resolved = Resolved(parameters);
    let settings = Settings::of(parameters);
    let is_before = resolved.text("index") == "before";
    let partitions = Partitions {
        mysql_method: "KEY",
        column: "id1",
        count: resolved.count("partitions"),
    };
    let options = match dialect {
        Dialect::MySql => mysql_options(resolved),
        Dialect::PostgreSql | Dialect::Sqlite => resolved.text("create_table_options").to_owned(),
    };
    let (links, lists) = (settings.graph.links(), settings.graph.lists());
    let nodes = if settings.generate_nodes {
        settings.nodes
    } else {
        0
    };
    let table = |name: &str, body: &str, columns: &'static str, rows, content| Table {
        name: name.to_owned(),
        create: sql::create_table(
            dialect,
            name,
            &definitions(dialect, body),
            &options,
            Some(&partitions).filter(|_| content == Content::Links),
        ),
        columns,
        rows,
        content: Box::new(Filler::new(content, settings.clone())),
        finish: Vec::new(),
        digest_columns: columns,
        scaled: Vec::new(),
    };
    let with_lists = format!("{LINKS}, KEY {LISTS}");
    let body = match (is_before, dialect) {
        (true, Dialect::MySql) => &with_lists,
        (false, Dialect::MySql) | (_, Dialect::PostgreSql | Dialect::Sqlite) => LINKS,
    };
    let columns = "id1, id2, link_type, visibility, data, time, version";
    let mut of_links = table("linktable", body, columns, links, Content::Links);
    let index = format!("CREATE INDEX {}", LISTS.replacen(' ', " ON linktable ", 1));
    match (is_before, dialect) {
        (true, Dialect::MySql) => {}
        (true, Dialect::PostgreSql | Dialect::Sqlite) => of_links.create += &format!("; {index}"),
        (false, _) => of_links.finish.push(index),
    }
    let columns = "id, link_type, count, time, version";
    let of_counts = table("counttable", COUNTS, columns, lists, Content::Counts);
    let columns = "id, type, version, time, data";
    let mut of_nodes = table("nodetable", NODES, columns, nodes, Content::Nodes);
    if dialect == Dialect::PostgreSql {
        of_nodes
            .finish
            .push(sql::continue_numbers("nodetable", "id"));
    }
    vec![of_links, of_counts, of_nodes]
}

/// Definitions of columns with the types of this dialect.
fn definitions(dialect: Dialect, body: &str) -> String {
    let definitions = sql::columns(dialect, body);
    match dialect {
        Dialect::MySql | Dialect::Sqlite => definitions,
        Dialect::PostgreSql => BYTES
            .iter()
            .fold(definitions, |text, (from, to)| text.replace(from, to)),
    }
}

/// Options after the closing parenthesis of MySQL's CREATE TABLE.
fn mysql_options(resolved: Resolved<'_>) -> String {
    let engine = resolved.text("engine");
    let mut options = format!("ENGINE = {engine} DEFAULT CHARACTER SET latin1");
    if engine.eq_ignore_ascii_case("rocksdb") {
        // MyRocks keeps text in an index only when it can be compared byte by byte.
        options += " COLLATE latin1_bin";
    }
    if resolved.text("row_format") != "default" {
        options += &format!(" ROW_FORMAT = {}", resolved.text("row_format"));
    }
    if resolved.count("key_block_size") > 0 {
        options += &format!(" KEY_BLOCK_SIZE = {}", resolved.count("key_block_size"));
    }
    match resolved.text("page_compression") {
        "none" => {}
        // Comments that one product executes and the other skips: MariaDB passes over versions from 5.7 on, and
        // MySQL takes the other one for an ordinary comment.
        algorithm => {
            options += &format!(
                " /*!50700 COMPRESSION = '{algorithm}' */ /*M!100100 PAGE_COMPRESSED = 1 */"
            );
        }
    }
    match resolved.text("create_table_options") {
        "" => options,
        more => format!("{options} {more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_rows::resolved;
    use super::*;
    use serde_json::Value;

    fn created(given: &[(&str, Value)]) -> Vec<Table> {
        let few = [("maxid1", 11.into())];
        tables(Dialect::MySql, &resolved(&[given, &few].concat()).unwrap())
    }

    #[test]
    fn the_index_of_lists_is_made_once() {
        let after = &created(&[])[0];
        assert!(!after.create.contains("id1_type") && after.finish.len() == 1);
        let before = &created(&[("index", "before".into())])[0];
        assert!(before.create.contains("id1_type") && before.finish.is_empty());
        assert!(
            after
                .create
                .ends_with("PARTITION BY KEY (id1) PARTITIONS 16"),
            "{}",
            after.create
        );
    }

    #[test]
    fn compression_is_asked_for_in_both_languages() {
        for table in created(&[("page_compression", "lz4".into())]) {
            assert!(
                table.create.contains("/*!50700 COMPRESSION = 'lz4' */"),
                "{}",
                table.create
            );
            assert!(
                table.create.contains("/*M!100100 PAGE_COMPRESSED = 1 */"),
                "{}",
                table.create
            );
        }
        let given = [
            ("row_format", "compressed".into()),
            ("key_block_size", 8.into()),
        ];
        for table in created(&given) {
            assert!(
                table
                    .create
                    .contains("ROW_FORMAT = compressed KEY_BLOCK_SIZE = 8"),
                "{}",
                table.create
            );
        }
        assert!(
            created(&[("engine", "rocksdb".into())])[0]
                .create
                .contains("latin1_bin")
        );
    }
}
