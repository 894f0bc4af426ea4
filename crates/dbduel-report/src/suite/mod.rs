//! Parts of a report that only a suite has: workloads × contenders as matrices, group by group.

mod costs;
mod memory;
mod print;
mod statements;

use dbduel_judge::Summary;
use dbduel_judge::summary::{
    Duel, Figure, GroupComparison, SuiteGroup, SuiteSummary, VerdictCounts,
};
use dbduel_record::Verdict;
use dbduel_record::plan::{BlockForm, SuitePhase};
use serde::Serialize;

use super::view::table::{self, Cell, Group, MATRIX, NAME, NUMBER, Row, SUMS, TEXT, Table};
use super::words::{self, RatioUnit};
use super::{functions, number_of};
pub use print::print;

/// Relative throughput at which a cell has its full colour, on the logarithmic scale.
const FULL_COLOUR: f64 = 0.5;
/// Share of full colour of the smallest decided difference.
const LEAST_COLOUR: f64 = 0.18;

#[derive(Debug, Clone, Serialize)]
pub struct SuiteView {
    /// Throughput relative to the baseline and to the previous contender.
    pub matrices: Vec<Matrix>,
    /// Costs per transaction, one matrix per resource.
    pub costs: Vec<Matrix>,
    /// Legend of the stars in intervals; empty where there are none.
    pub legend: &'static str,
    /// Memory of servers and load process.
    pub memory: Vec<Matrix>,
    /// The largest memory of each server and of the load process, in a sentence.
    pub memory_max: String,
    /// Error probability of the verdicts.
    pub promise: String,
    /// How the workloads were run.
    pub order: String,
    /// Every verdict with its figures.
    pub cells: Table,
    /// Plans of each workload's statements; empty where servers were not asked to explain them.
    pub plans: Vec<statements::WorkloadPlans>,
}

/// A row per workload, a column per contender.
#[derive(Debug, Clone, Serialize)]
pub struct Matrix {
    pub title: String,
    pub note: String,
    pub columns: Vec<Column>,
    pub table: Table,
}

#[derive(Debug, Clone, Serialize)]
pub struct Column {
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// Name of the contender it is compared with; empty in the baseline's own column.
    pub against: String,
}

impl Matrix {
    /// A matrix of groups whose rows have the workload's name and a cell for each column.
    fn new(title: String, note: String, columns: Vec<Column>, groups: Vec<Group>) -> Self {
        let heads = columns.iter().map(|column| table::Column {
            hover: match column.against.as_str() {
                "" => column.contender.clone(),
                against => format!("{} against {against}", column.contender),
            },
            ..table::Column::of_contender(MATRIX, column.number, &column.contender)
        });
        let heads = [table::Column::from((NAME, "workload"))]
            .into_iter()
            .chain(heads);
        Self {
            title,
            note,
            table: Table {
                class: "matrix",
                columns: heads.collect(),
                groups,
            },
            columns,
        }
    }
}

/// The section on a suite; `None` for a contest of one workload.
#[must_use]
pub fn view(summary: &Summary) -> Option<SuiteView> {
    let suite = summary.suite.as_ref()?;
    let baseline = &summary.baseline;
    let mut matrices = vec![matrix(
        summary,
        format!("Throughput relative to {baseline}"),
        &|group| &group.against_baseline,
    )];
    if summary.contenders.len() > 2 {
        matrices.push(matrix(
            summary,
            "Throughput relative to the previous contender".to_owned(),
            &|group| &group.against_predecessor,
        ));
    }
    let plans = statements::plans(summary);
    Some(SuiteView {
        matrices,
        legend: legend(summary),
        costs: costs::matrices(summary),
        memory: memory::matrices(summary),
        memory_max: memory::sentence(summary),
        promise: promise(summary),
        order: order(summary, suite.block_form),
        cells: cells(summary, !plans.is_empty()),
        plans,
    })
}

fn legend(summary: &Summary) -> &'static str {
    let ratios = summary.duels.iter().flat_map(|duel| {
        let verdicts = duel.comparisons.iter().map(|one| &one.ratio);
        verdicts.chain(duel.pairs.iter().map(|one| &one.ratio))
    });
    words::starred(ratios)
}

/// The workloads of a group, in the order of the suite.
fn duels_of<'s>(summary: &'s Summary, group: &SuiteGroup) -> Vec<&'s Duel> {
    let is_own = |duel: &&Duel| {
        let cell = duel.load.cell.as_ref();
        group.name.is_some() && cell.map(|cell| &cell.group) == group.name.as_ref()
    };
    summary.duels.iter().filter(is_own).collect()
}

/// Description beside the name of a workload: statements and number of clients.
fn about(duel: &Duel) -> String {
    let cell = duel.load.cell.as_ref();
    cell.map_or_else(String::new, |cell| {
        let script = cell.workload.parameters.get("script");
        let script = script.and_then(|script| script.as_str()?.rsplit('/').next());
        let work = script.unwrap_or(&cell.workload.name);
        format!("{work}, {}", words::clients(duel.load.clients))
    })
}

fn matrix(
    summary: &Summary,
    title: String,
    compared: &dyn Fn(&SuiteGroup) -> &[GroupComparison],
) -> Matrix {
    let suite = summary.suite.as_ref();
    let all: Vec<&SuiteGroup> = suite.map_or_else(Vec::new, |suite| suite.groups.iter().collect());
    let columns: Vec<Column> = all.first().map_or_else(Vec::new, |group| {
        let comparisons = compared(group).iter();
        comparisons
            .map(|one| Column {
                contender: one.contender.clone(),
                number: number_of(summary, &one.contender),
                against: one.against.clone(),
            })
            .collect()
    });
    let groups = all.iter().map(|group| {
        let name = group.name.as_deref().unwrap_or("all workloads");
        let mut rows = rows(summary, group, &columns, |duel, column| {
            cell(summary, duel, column)
        });
        // One workload has its own cell, whose interval is that of its verdict.
        if rows.len() != 1 {
            rows.extend(sums(compared(group)));
        }
        Group {
            head: name.to_owned(),
            rows,
        }
    });
    let groups = groups.collect();
    let note = "▲ faster, ▼ slower, = equivalent, ? undecided: the sign and the colour follow from the interval alone. The values are point \
               estimates.";
    Matrix::new(title, note.to_owned(), columns, groups)
}

/// A row for each workload of a group; `cell` makes the cell of each column.
fn rows(
    summary: &Summary,
    group: &SuiteGroup,
    columns: &[Column],
    cell: impl Fn(&Duel, &Column) -> Cell,
) -> Vec<Row> {
    let all = duels_of(summary, group).into_iter();
    all.map(|duel| {
        let name = Cell {
            hover: about(duel),
            ..Cell::from(&duel.label)
        };
        let cells = columns.iter().map(|column| cell(duel, column));
        [name].into_iter().chain(cells).collect()
    })
    .collect()
}

/// The named groups, with cells made by `cell` and without sums.
fn named_groups(
    summary: &Summary,
    suite: &SuiteSummary,
    columns: &[Column],
    cell: impl Fn(&Duel, &Column) -> Cell,
) -> Vec<Group> {
    let all = suite.groups.iter();
    all.filter_map(|group| {
        Some(Group {
            head: group.name.clone()?,
            rows: rows(summary, group, columns, &cell),
        })
    })
    .collect()
}

fn cell(summary: &Summary, duel: &Duel, column: &Column) -> Cell {
    let Some((verdict, ratio)) = duel.between(&column.contender, &column.against) else {
        return Cell::default();
    };
    let p95 = |name: &str| {
        let mut all = duel.contenders.iter();
        let measures = all.find(|one| one.contender == name);
        let p95 = measures.and_then(|one| one.latency_us_p95.value());
        p95.map_or_else(|| "–".to_owned(), words::latency)
    };
    let mut hover = format!(
        "{}, {} against {}: {}, {}; {}; p95 {} against {}",
        duel.label,
        column.contender,
        column.against,
        verdict.word(),
        words::ratio_value(&ratio).unwrap_or_else(|| words::NOT_MEASURED.to_owned()),
        match RatioUnit::of([&ratio]).doubt(&ratio) {
            doubt if doubt.is_empty() => "no interval".to_owned(),
            doubt => doubt,
        },
        p95(&column.contender),
        p95(&column.against),
    );
    hover.push_str(&format!(
        "; {}",
        words::things(duel.blocks_complete.into(), "block")
    ));
    if column.against == summary.baseline
        && let Some(moved) = costs::moved(summary, duel, &column.contender)
    {
        hover.push_str(&format!("; {moved}"));
    }
    let mut stacks = summary.flame_differences.iter();
    let stacks = stacks.find(|one| one.level == duel.level && one.contender == column.contender);
    if column.against == summary.baseline
        && let Some(named) = stacks.and_then(functions::named)
    {
        hover.push_str(&format!("; CPU per transaction: {named}"));
    }
    if let Some(changed) = statements::changed(duel, &column.contender, &column.against) {
        hover.push_str(&format!("; {changed}"));
    }
    Cell {
        interval: interval(&ratio),
        sign: words::sign(verdict),
        answer: verdict.word(),
        strength: strength(verdict, &ratio),
        hover,
        ..Cell::from(relative(&ratio))
    }
}

/// A ratio as in the matrices.
fn relative(ratio: &Figure) -> String {
    let value = ratio.value();
    value.map_or_else(|| "–".to_owned(), short)
}

/// A value of the matrices: two decimals, fewer where it is large.
fn short(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The interval of a ratio as in the matrices, with a star where the estimate is near one of its ends; empty where there
/// is none.
fn interval(ratio: &Figure) -> String {
    let star = words::off_centre(ratio).map_or("", |_| "*");
    match ratio.interval() {
        Some((low, high)) if high.is_finite() => format!("{}–{}{star}", short(low), short(high)),
        Some((low, _)) => format!("≥{}{star}", short(low)),
        None => String::new(),
    }
}

/// Strength of the colour; 0 unless the verdict is faster or slower.
fn strength(verdict: Verdict, ratio: &Figure) -> f64 {
    let certain = match (verdict, ratio.interval()) {
        (Verdict::Faster, Some((low, _))) => low.ln(),
        (Verdict::Slower, Some((_, high))) => -high.ln(),
        _ => return 0.0,
    };
    (LEAST_COLOUR + (1.0 - LEAST_COLOUR) * certain / FULL_COLOUR).clamp(LEAST_COLOUR, 1.0)
}

fn sums(comparisons: &[GroupComparison]) -> Vec<Row> {
    let row = |name: &str, cell: &dyn Fn(&GroupComparison) -> Cell| {
        let cells = comparisons.iter().map(cell);
        Row {
            class: SUMS,
            ..[Cell::from(name)].into_iter().chain(cells).collect()
        }
    };
    let mean = |one: &GroupComparison| Cell {
        hover: format!(
            "{} against {}: geometric mean {} ({}); {}",
            one.contender,
            one.against,
            words::ratio_value(&one.geometric_mean).unwrap_or_default(),
            RatioUnit::of([&one.geometric_mean]).doubt(&one.geometric_mean),
            match &one.geometric_mean {
                Figure::Estimated { how, .. } | Figure::Bare { how, .. } => how.text(),
                Figure::NotMeasured { .. } => "",
            }
        ),
        ..Cell::from(relative(&one.geometric_mean))
    };
    let mean_interval = |one: &GroupComparison| {
        Cell::from(match interval(&one.geometric_mean) {
            none if none.is_empty() => "–".to_owned(),
            interval => interval,
        })
    };
    let quartiles = |one: &GroupComparison| {
        Cell::from(one.spread.map_or_else(
            || "–".to_owned(),
            |spread| format!("{:.2} {:.2} {:.2}", spread.q1, spread.median, spread.q3),
        ))
    };
    let extremes = |one: &GroupComparison| {
        Cell::from(one.spread.map_or_else(
            || "–".to_owned(),
            |spread| format!("{:.2}–{:.2}", spread.min, spread.max),
        ))
    };
    vec![
        row("geometric mean", &mean),
        row("its interval", &mean_interval),
        row("quartiles", &quartiles),
        row("smallest, largest", &extremes),
        row("▲ ▼ = ?", &|one| Cell::from(counts(one.verdicts))),
    ]
}

/// Counts of faster, slower, equivalent, and without an answer.
fn counts(verdicts: VerdictCounts) -> String {
    let VerdictCounts {
        faster,
        slower,
        equivalent,
        undecided,
        void,
    } = verdicts;
    let void = match void {
        0 => String::new(),
        void => format!(" ✕{void}"),
    };
    format!("{faster} {slower} {equivalent} {undecided}{void}")
}

/// Sentences on the error probability of a suite's verdicts.
fn promise(summary: &Summary) -> String {
    let Some(suite) = &summary.suite else {
        return String::new();
    };
    let others = summary.contenders.len().saturating_sub(1);
    format!(
        "Error probability of a workload: {} for its {} against {}, however often the run was checked. Of {} between equal \
         contenders, at most {:.1} get a wrong verdict on average ({} in all). Verdicts of different workloads are not joint; those against the \
         previous contender have the same error probability in addition.",
        words::share(1.0 - summary.rule.confidence),
        words::things(others as u64, "verdict"),
        summary.baseline,
        words::things(summary.duels.len() as u64, "workload"),
        suite.wrong_workloads_max,
        words::things(suite.comparisons.into(), "verdict")
    )
}

/// Sentences on the order of the workloads and the form of a block.
fn order(summary: &Summary, form: BlockForm) -> String {
    let phases = [
        (SuitePhase::Fresh, "reads of fresh tables"),
        (SuitePhase::Write, "changes"),
        (SuitePhase::Read, "reads"),
        (SuitePhase::Last, "changes of the number of rows"),
    ];
    let present = phases.iter().filter(|(phase, _)| {
        let mut cells = summary
            .duels
            .iter()
            .filter_map(|duel| duel.load.cell.as_ref());
        cells.any(|cell| cell.phase == *phase)
    });
    let present: Vec<&str> = present.map(|(_, name)| *name).collect();
    let mirrored = summary.schedule.mirrored;
    let block = match mirrored {
        true => "A block is a random permutation of the contenders and its reverse",
        false => "A block runs every contender once, in an order drawn for each block",
    };
    let why = match form {
        BlockForm::AsWritten => "as the experiment says",
        BlockForm::Affordable => "because the budget holds enough of them for each workload",
        BlockForm::TooFewMirrored => {
            "because the budget holds too few mirrored blocks for each workload; linear drift does not cancel within such a block: \
             it widens intervals but does not raise the error probability"
        }
    };
    format!(
        "Order: {}; within a part the workloads take turns block by block. {block}, {why}.",
        present.join(", then ")
    )
}

/// Columns of the table of verdicts; plans only where some differ.
const CELLS: [(&str, &str); 11] = [
    (NAME, "workload"),
    ("", "group"),
    (NAME, "contender"),
    ("", "verdict"),
    (TEXT, "ratio"),
    (TEXT, "interval"),
    (NUMBER, "blocks"),
    (NUMBER, "trx/s"),
    (NUMBER, "p95"),
    (TEXT, "first-ranked cost"),
    (TEXT, "plans"),
];

/// Every verdict as a row of a table.
fn cells(summary: &Summary, has_plans: bool) -> Table {
    let comparisons = summary.duels.iter().flat_map(|duel| &duel.comparisons);
    let unit = RatioUnit::of(comparisons.map(|comparison| &comparison.ratio));
    let shown = CELLS.len() - usize::from(!has_plans);
    let columns = CELLS[..shown].iter().map(|&(class, head)| table::Column {
        is_below: head == "group",
        only: match head {
            "first-ranked cost" | "plans" => table::PAGE,
            _ => "",
        },
        ..table::Column::from((class, head))
    });
    let all = summary.duels.iter().flat_map(|duel| {
        let comparisons = duel.comparisons.iter();
        comparisons.map(move |comparison| (duel, comparison))
    });
    let rows = all.map(|(duel, comparison)| {
        let mut measures = duel.contenders.iter();
        let measures = measures.find(|one| one.contender == comparison.contender);
        let mut stacks = summary.flame_differences.iter();
        let cell = duel.load.cell.as_ref();
        let name = comparison.contender.as_str();
        let verdict = comparison.verdict;
        let throughput = measures.and_then(|one| one.throughput_per_s.value());
        let p95 = measures.and_then(|one| one.latency_us_p95.value());
        let or_none = |text: Option<String>| Cell::from(text.as_deref().unwrap_or("–"));
        let cells = [
            Cell {
                link: match stacks.any(|one| one.level == duel.level) {
                    true => format!("#stacks-{}", duel.level),
                    false => String::new(),
                },
                ..Cell::from(&duel.label)
            },
            Cell::from(cell.map_or("", |cell| cell.group.as_str())),
            Cell::of_contender(number_of(summary, name), name),
            Cell::answer(
                verdict.word(),
                format!("{} {}", words::sign(verdict), words::verdict(comparison)),
                String::new(),
            ),
            Cell::from(unit.value(&comparison.ratio)),
            Cell::from(unit.doubt(&comparison.ratio)),
            Cell::from(duel.blocks_complete.to_string()),
            or_none(throughput.map(words::number)),
            or_none(p95.map(words::latency)),
            or_none(costs::moved(summary, duel, name)),
            or_none(statements::changed(duel, name, &summary.baseline)),
        ];
        cells.into_iter().take(shown).collect()
    });
    Table {
        class: "cells",
        ..Table::new(columns.collect(), rows)
    }
}

/// One sentence per contender other than the baseline: its verdicts counted, and the geometric mean.
#[must_use]
pub fn headlines(summary: &Summary) -> Vec<String> {
    let Some(all) = summary.suite.as_ref().and_then(|suite| suite.groups.last()) else {
        return Vec::new();
    };
    let sentence = |one: &GroupComparison| {
        let VerdictCounts {
            faster,
            slower,
            equivalent,
            undecided,
            void,
        } = one.verdicts;
        let counted = [
            (faster, "faster"),
            (slower, "slower"),
            (equivalent, "equivalent"),
            (undecided, "undecided"),
            (void, "void"),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let counted: Vec<String> = counted
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let mean = words::ratio_value(&one.geometric_mean);
        let mean = mean.map_or_else(String::new, |mean| {
            match words::ratio_interval(&one.geometric_mean) {
                interval if interval.is_empty() => format!("; geometric mean {mean}"),
                interval => format!("; geometric mean {mean} ({interval})"),
            }
        });
        format!(
            "{} against {} in {}: {}{mean}",
            one.contender,
            one.against,
            words::things(all.workloads.into(), "workload"),
            counted.join(", ")
        )
    };
    all.against_baseline.iter().map(sentence).collect()
}
