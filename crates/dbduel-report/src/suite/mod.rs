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
    /// Memory of servers and load process.
    pub memory: Vec<Matrix>,
    /// The largest memory of each server and of the load process, in a sentence.
    pub memory_max: String,
    /// Error probability of the verdicts.
    pub promise: String,
    /// How the workloads were run.
    pub order: String,
    /// Every cell as a row of a table.
    pub cells: Vec<CellView>,
    /// Plans of each workload's statements; empty where servers were not asked to explain them.
    pub plans: Vec<statements::WorkloadPlans>,
}

/// A row per workload, a column per contender.
#[derive(Debug, Clone, Serialize)]
pub struct Matrix {
    pub title: String,
    pub note: String,
    pub columns: Vec<Column>,
    pub groups: Vec<MatrixGroup>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Column {
    pub contender: String,
    /// Its number, for colour and shape.
    pub number: usize,
    /// Name of the contender it is compared with; empty in the baseline's own column.
    pub against: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct MatrixGroup {
    pub name: String,
    pub rows: Vec<MatrixRow>,
    /// Sums over the rows: geometric mean, quartiles, verdicts.
    pub sums: Vec<MatrixRow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct MatrixRow {
    pub name: String,
    /// Description of the workload.
    pub about: String,
    pub cells: Vec<MatrixCell>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct MatrixCell {
    pub text: String,
    /// Sign of the answer, readable without colour; empty where there is none.
    pub sign: &'static str,
    /// CSS class of the answer: `faster`, `undecided`, `more` ...
    pub answer: &'static str,
    /// Strength of the colour from 0 to 1, by the end of the interval nearer to one.
    pub strength: f64,
    /// Details of the cell, for the tooltip.
    pub hover: String,
}

/// A cell with its figures, as a row of a table.
#[derive(Debug, Clone, Serialize)]
pub struct CellView {
    pub level: usize,
    /// True when the page has a flame graph for the cell.
    pub has_stacks: bool,
    pub group: String,
    pub workload: String,
    pub contender: String,
    pub number: usize,
    pub answer: &'static str,
    pub verdict: String,
    pub ratio: String,
    pub interval: String,
    pub blocks: u32,
    pub throughput: String,
    pub p95: String,
    /// Leading cost; empty where none is shown.
    pub moved: String,
    /// Number of plans that differ from the baseline's, as text; empty where none does.
    pub plans: String,
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
    Some(SuiteView {
        matrices,
        costs: costs::matrices(summary),
        memory: memory::matrices(summary),
        memory_max: memory::sentence(summary),
        promise: promise(summary),
        order: order(summary, suite.block_form),
        cells: cells(summary),
        plans: statements::plans(summary),
    })
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
        MatrixGroup {
            name: name.to_owned(),
            rows: rows(summary, group, &columns, |duel, column| {
                cell(summary, duel, column)
            }),
            sums: sums(compared(group)),
        }
    });
    Matrix {
        title,
        note: "▲ faster, ▼ slower, = equivalent, ? undecided: the sign and the colour follow from the interval alone. The values are point \
               estimates."
            .to_owned(),
        groups: groups.collect(),
        columns,
    }
}

/// A row for each workload of a group; `cell` makes the cell of each column.
fn rows(
    summary: &Summary,
    group: &SuiteGroup,
    columns: &[Column],
    cell: impl Fn(&Duel, &Column) -> MatrixCell,
) -> Vec<MatrixRow> {
    let all = duels_of(summary, group).into_iter();
    all.map(|duel| MatrixRow {
        name: duel.label.clone(),
        about: about(duel),
        cells: columns.iter().map(|column| cell(duel, column)).collect(),
    })
    .collect()
}

/// The named groups, with cells made by `cell` and without sums.
fn named_groups(
    summary: &Summary,
    suite: &SuiteSummary,
    columns: &[Column],
    cell: impl Fn(&Duel, &Column) -> MatrixCell,
) -> Vec<MatrixGroup> {
    let all = suite.groups.iter();
    all.filter_map(|group| {
        Some(MatrixGroup {
            name: group.name.clone()?,
            rows: rows(summary, group, columns, &cell),
            sums: Vec::new(),
        })
    })
    .collect()
}

fn cell(summary: &Summary, duel: &Duel, column: &Column) -> MatrixCell {
    let Some((verdict, ratio)) = duel.between(&column.contender, &column.against) else {
        return MatrixCell::default();
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
    MatrixCell {
        text: relative(&ratio),
        sign: words::sign(verdict),
        answer: verdict.word(),
        strength: strength(verdict, &ratio),
        hover,
    }
}

/// A ratio as in the matrices: two decimals, fewer where it is large.
fn relative(ratio: &Figure) -> String {
    match ratio.value() {
        None => "–".to_owned(),
        Some(value) if value < 9.995 => format!("{value:.2}"),
        Some(value) if value < 99.95 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
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

fn sums(comparisons: &[GroupComparison]) -> Vec<MatrixRow> {
    let row = |name: &str, cell: &dyn Fn(&GroupComparison) -> MatrixCell| MatrixRow {
        name: name.to_owned(),
        about: String::new(),
        cells: comparisons.iter().map(cell).collect(),
    };
    let plain = |text: String| MatrixCell {
        text,
        ..MatrixCell::default()
    };
    let mean = |one: &GroupComparison| MatrixCell {
        text: relative(&one.geometric_mean),
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
        ..MatrixCell::default()
    };
    let interval = |one: &GroupComparison| {
        plain(match one.geometric_mean.interval() {
            Some((low, high)) => format!("{low:.2}–{high:.2}"),
            None => "–".to_owned(),
        })
    };
    let quartiles = |one: &GroupComparison| {
        plain(one.spread.map_or_else(
            || "–".to_owned(),
            |spread| format!("{:.2} {:.2} {:.2}", spread.q1, spread.median, spread.q3),
        ))
    };
    let extremes = |one: &GroupComparison| {
        plain(one.spread.map_or_else(
            || "–".to_owned(),
            |spread| format!("{:.2}–{:.2}", spread.min, spread.max),
        ))
    };
    vec![
        row("geometric mean", &mean),
        row("its interval", &interval),
        row("quartiles", &quartiles),
        row("smallest, largest", &extremes),
        row("▲ ▼ = ?", &|one| plain(counts(one.verdicts))),
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

fn cells(summary: &Summary) -> Vec<CellView> {
    let comparisons = summary.duels.iter().flat_map(|duel| &duel.comparisons);
    let unit = RatioUnit::of(comparisons.map(|comparison| &comparison.ratio));
    let all = summary.duels.iter().flat_map(|duel| {
        let comparisons = duel.comparisons.iter();
        comparisons.map(move |comparison| (duel, comparison))
    });
    let row = |(duel, comparison): (&Duel, &dbduel_judge::summary::Comparison)| {
        let mut measures = duel.contenders.iter();
        let measures = measures.find(|one| one.contender == comparison.contender);
        let mut stacks = summary.flame_differences.iter();
        CellView {
            level: duel.level,
            has_stacks: stacks.any(|one| one.level == duel.level),
            group: duel
                .load
                .cell
                .as_ref()
                .map_or_else(String::new, |cell| cell.group.clone()),
            workload: duel.label.clone(),
            contender: comparison.contender.clone(),
            number: number_of(summary, &comparison.contender),
            answer: comparison.verdict.word(),
            verdict: format!(
                "{} {}",
                words::sign(comparison.verdict),
                words::verdict(comparison)
            ),
            ratio: unit.value(&comparison.ratio),
            interval: match &comparison.ratio {
                ratio @ Figure::Estimated { .. } => unit.interval(ratio),
                other => unit.doubt(other),
            },
            blocks: duel.blocks_complete,
            throughput: measures
                .and_then(|one| one.throughput_per_s.value())
                .map_or_else(|| "–".to_owned(), words::number),
            p95: measures
                .and_then(|one| one.latency_us_p95.value())
                .map_or_else(|| "–".to_owned(), words::latency),
            moved: costs::moved(summary, duel, &comparison.contender).unwrap_or_default(),
            plans: statements::changed(duel, &comparison.contender, &summary.baseline)
                .unwrap_or_default(),
        }
    };
    all.map(row).collect()
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
