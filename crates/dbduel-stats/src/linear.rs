//! Small symmetric linear systems, for least squares with a handful of parameters.

/// Inverse of a symmetric positive definite matrix by Gauss–Jordan with pivoting; `None` when it is
/// singular to working precision.
pub(crate) fn inverse(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    // Scaling to a unit diagonal makes the pivot test independent of the parameters' units.
    let scale: Vec<f64> = (0..n).map(|i| matrix[i][i].sqrt()).collect();
    if scale
        .iter()
        .any(|scale| !(*scale > 0.0 && scale.is_finite()))
    {
        return None;
    }
    let mut work: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let left = (0..n).map(|j| matrix[i][j] / (scale[i] * scale[j]));
            let right = (0..n).map(|j| if i == j { 1.0 } else { 0.0 });
            left.chain(right).collect()
        })
        .collect();
    for column in 0..n {
        let pivot =
            (column..n).max_by(|a, b| work[*a][column].abs().total_cmp(&work[*b][column].abs()))?;
        work.swap(column, pivot);
        let divisor = work[column][column];
        if divisor.abs() < 1e-14 {
            return None;
        }
        for value in &mut work[column] {
            *value /= divisor;
        }
        let pivot_row = work[column].clone();
        for (index, row) in work.iter_mut().enumerate() {
            if index != column {
                let factor = row[column];
                for (value, pivot) in row.iter_mut().zip(&pivot_row) {
                    *value -= factor * pivot;
                }
            }
        }
    }
    Some(
        (0..n)
            .map(|i| {
                (0..n)
                    .map(|j| work[i][n + j] / (scale[i] * scale[j]))
                    .collect()
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let matrix = vec![
            vec![4.0, 1.0, 2e-4],
            vec![1.0, 3.0, 1e-4],
            vec![2e-4, 1e-4, 1e-7],
        ];
        let inverse = inverse(&matrix).unwrap();
        for (i, row) in matrix.iter().enumerate() {
            for j in 0..3 {
                let product: f64 = row
                    .iter()
                    .zip(&inverse)
                    .map(|(a, other)| a * other[j])
                    .sum();
                assert!((product - f64::from(i == j)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn singular_matrices_have_none() {
        assert_eq!(inverse(&[vec![1.0, 1.0], vec![1.0, 1.0]]), None);
        assert_eq!(inverse(&[vec![0.0]]), None);
    }
}
