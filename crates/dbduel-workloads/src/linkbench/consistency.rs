//! Conditions on the tables: link counts equal the numbers of visible links.

use dbduel_driver::{Connection, QueryError};
use dbduel_record::plan::Parameters;

use super::recognise::{ask_blocking, questions};
use super::settings::Settings;
use crate::verification::{Moment, Verification, VerifyError, check_condition, on_one_state};

/// Ids per query: few enough for temporary tables that fit into memory.
const IDS_PER_QUERY: u64 = 100_000;

/// Both sides are united and summed instead of joined, so that a missing side is found as well; a missing count is
/// equivalent to 0. `{range}` stands for a range of ids.
const COUNTS: &str = "SELECT id, link_type, SUM(l) AS visible, SUM(r) AS counted FROM (\
    SELECT id1 AS id, link_type, COUNT(*) AS l, 0 AS r FROM linktable \
    WHERE visibility = 1 AND id1 {range} GROUP BY id1, link_type \
    UNION ALL SELECT id, link_type, 0, count FROM counttable WHERE id {range}\
    ) AS sides GROUP BY id, link_type HAVING SUM(l) <> SUM(r)";

/// Checks all conditions that must hold at this moment.
pub(super) fn verify(
    connection: &mut Connection,
    parameters: &Parameters,
    moment: Moment,
) -> Result<Verification, VerifyError> {
    let settings = Settings::of(parameters);
    ask_blocking(connection, &questions(parameters, &settings))?;
    on_one_state(connection, |connection| {
        check_all(connection, &settings, moment)
    })
}

fn check_all(
    connection: &mut Connection,
    settings: &Settings,
    moment: Moment,
) -> Result<Verification, QueryError> {
    let mut verification = Verification::default();
    verification.conditions.push(check_condition(
        connection,
        "link-counts",
        "The count of a node and a link type is the number of its visible links.",
        ranges(settings.start, settings.nodes).map(|range| COUNTS.replace("{range}", &range)),
    )?);
    if moment == Moment::Fresh {
        let links = settings.graph.links();
        verification.conditions.push(check_condition(
            connection,
            "loaded-links",
            "The number of links is that of the distribution of out-degrees.",
            std::iter::once(format!(
                "SELECT COUNT(*) AS found FROM linktable HAVING COUNT(*) <> {links}"
            )),
        )?);
    }
    for (name, sql) in [
        ("links", "SELECT COUNT(*) FROM linktable"),
        (
            "hidden-links",
            "SELECT COUNT(*) FROM linktable WHERE visibility = 0",
        ),
        ("nodes", "SELECT COUNT(*) FROM nodetable"),
    ] {
        let answer = connection.query(sql)?;
        let count = answer.text(0, 0).and_then(|text| text.parse().ok());
        verification.counts.push((name, count.unwrap_or_default()));
    }
    Ok(verification)
}

/// Ranges that cover all ids, including those outside the graph.
fn ranges(start: u64, nodes: u64) -> impl Iterator<Item = String> {
    let end = start + nodes;
    let inner = (start..end).step_by(IDS_PER_QUERY as usize);
    let inner = inner.map(move |first| {
        format!(
            "BETWEEN {first} AND {}",
            (first + IDS_PER_QUERY).min(end) - 1
        )
    });
    [format!("< {start}"), format!(">= {end}")]
        .into_iter()
        .chain(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_cover_every_id_once() {
        let found: Vec<String> = ranges(5, 250_000).collect();
        let expected = [
            "< 5",
            ">= 250005",
            "BETWEEN 5 AND 100004",
            "BETWEEN 100005 AND 200004",
            "BETWEEN 200005 AND 250004",
        ];
        assert_eq!(found, expected);
        assert_eq!(COUNTS.matches("{range}").count(), 2);
    }
}
