//! Compares costs with throughput over a series of duels: which are steadier, and which decide earlier.

use dbduel_record::facts::SeriesSteadiness;
use dbduel_stats::median;
use dbduel_text::table::{columns, row};

use dbduel_judge::records::steadiness::{Steadiness, THROUGHPUT};
use dbduel_judge::summary::Change;
use dbduel_report::words;

/// Steadiness of every quantity in every duel of a series, in the order of the duels.
#[derive(Debug, Default)]
pub struct Tally(Vec<Vec<Steadiness>>);

impl Tally {
    pub fn add(&mut self, duel: Vec<Steadiness>) {
        self.0.push(duel);
    }

    /// The quantities that some duel could compare, throughput first.
    pub fn summed(&self) -> Vec<SeriesSteadiness> {
        let Some(first) = self.0.first() else {
            return Vec::new();
        };
        let sums = first.iter().map(|quantity| self.sum(quantity.quantity));
        sums.filter(|sum| sum.duels > 0).collect()
    }

    fn sum(&self, quantity: &str) -> SeriesSteadiness {
        let mut sum = SeriesSteadiness {
            quantity: quantity.to_owned(),
            ..SeriesSteadiness::default()
        };
        let (mut scatter, mut blocks) = (Vec::new(), Vec::new());
        for duel in &self.0 {
            let of = |name: &str| duel.iter().find(|one| one.quantity == name);
            let Some((own, block_sd)) = of(quantity).and_then(|own| Some((own, own.block_sd?)))
            else {
                continue;
            };
            sum.duels += 1;
            scatter.push(block_sd);
            match own.change {
                Change::Higher | Change::Lower => sum.different += 1,
                Change::Equivalent => sum.equivalent += 1,
                Change::Undecided | Change::NotCompared => {}
            }
            let Some(after) = own.decided_at_block else {
                continue;
            };
            blocks.push(after as f64);
            let throughput = of(THROUGHPUT).and_then(|one| one.decided_at_block);
            sum.before_throughput += u32::from(throughput.is_none_or(|block| after < block));
        }
        sum.block_sd = median(&mut scatter).unwrap_or(0.0);
        sum.blocks = median(&mut blocks);
        sum
    }
}

/// The quantities as a table; `is_injected` when the second server was stopped on purpose.
pub fn table(quantities: &[SeriesSteadiness], is_injected: bool) -> String {
    let mut rows = vec![row(&[
        "Judged alike, block by block",
        "one block",
        "different",
        "equivalent",
        "after",
        "before throughput",
    ])];
    for one in quantities {
        let of = |count: u32| format!("{count} of {}", one.duels);
        let after = one.blocks.map(|blocks| format!("{blocks:.0}"));
        rows.push(vec![
            format!("  {}", one.quantity),
            format!("±{}", words::share(one.block_sd)),
            of(one.different),
            of(one.equivalent),
            after.unwrap_or_else(|| "–".to_owned()),
            match one.quantity.as_str() {
                THROUGHPUT => String::new(),
                _ => of(one.before_throughput),
            },
        ]);
    }
    let mut text = format!("\n{}", columns(&rows, &[]));
    text.push_str(
        "One block: standard deviation of its ratio, median over the duels. After: blocks until \
         decided, median.\nA duel ends when throughput is decided.\n",
    );
    if is_injected {
        text.push_str("A stopped server uses nothing, so the costs per transaction stay equal.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(
        quantity: &'static str,
        change: Change,
        block_sd: Option<f64>,
        at: Option<usize>,
    ) -> Steadiness {
        Steadiness {
            quantity,
            change,
            block_sd,
            decided_at_block: at,
        }
    }

    #[test]
    fn costs_are_counted_against_throughput_duel_by_duel() {
        let mut tally = Tally::default();
        assert_eq!(tally.summed(), []);
        tally.add(vec![
            said(THROUGHPUT, Change::Undecided, Some(0.08), None),
            said("cpu", Change::Equivalent, Some(0.02), Some(9)),
            said("bytes", Change::NotCompared, None, None),
        ]);
        tally.add(vec![
            said(THROUGHPUT, Change::Equivalent, Some(0.04), Some(9)),
            said("cpu", Change::Higher, Some(0.01), Some(9)),
            said("bytes", Change::NotCompared, None, None),
        ]);
        tally.add(vec![
            said(THROUGHPUT, Change::Lower, Some(0.06), Some(11)),
            said("cpu", Change::Equivalent, Some(0.03), Some(8)),
            said("bytes", Change::NotCompared, None, None),
        ]);
        let [throughput, cpu] = <[SeriesSteadiness; 2]>::try_from(tally.summed()).unwrap();
        assert_eq!((throughput.block_sd, throughput.blocks), (0.06, Some(10.0)));
        assert_eq!((throughput.different, throughput.equivalent), (1, 1));
        assert_eq!((cpu.block_sd, cpu.blocks), (0.02, Some(9.0)));
        assert_eq!((cpu.different, cpu.equivalent), (1, 2));
        // Earlier in the last, and at all in the first; at the same block in the second.
        assert_eq!(cpu.before_throughput, 2);

        let text = table(&[throughput, cpu], false);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[2].join(" "), "throughput ±6 % 1 of 3 1 of 3 10");
        assert_eq!(rows[3].join(" "), "cpu ±2 % 1 of 3 2 of 3 9 2 of 3");
    }
}
