//! The cyclic matrices of Plackett and Burman (1946), with their foldover.

/// First rows of the matrices of 8, 12, 16, 20 and 24 rows, without the last column that all cyclic shifts share.
const GENERATORS: [&str; 5] = [
    "+++-+--",
    "++-+++---+-",
    "++++-+-++--+---",
    "++--++++-+-+----++-",
    "+++++-+-++--++--+-+----",
];

/// Maximum number of factors: the columns of the largest matrix.
pub(super) const FACTORS_MAX: usize = GENERATORS[GENERATORS.len() - 1].len();

/// The smallest matrix with a column for each factor, and the same with all levels exchanged (Box and Wilson 1951), so
/// that main effects are clear of two-factor interactions. The row of minus signs that ends a matrix and its foldover
/// are the runs in which no factor and all are changed. At most [`FACTORS_MAX`] factors.
pub(super) fn with_foldover(factors: usize) -> Vec<Vec<bool>> {
    let generator = GENERATORS.iter().find(|row| row.len() >= factors);
    let generator = generator.map_or("", |row| *row).as_bytes();
    let shifted = |shift: usize| {
        let columns = generator.len();
        let sign = move |column: usize| generator[(column + columns - shift) % columns] == b'+';
        (0..factors).map(sign).collect::<Vec<bool>>()
    };
    let mut rows: Vec<Vec<bool>> = (0..generator.len()).map(shifted).collect();
    rows.push(vec![false; factors]);
    let exchanged = rows
        .iter()
        .map(|row| row.iter().map(|sign| !sign).collect());
    let foldover: Vec<Vec<bool>> = exchanged.collect();
    rows.extend(foldover);
    rows
}
