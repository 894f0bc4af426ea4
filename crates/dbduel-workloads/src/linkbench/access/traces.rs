//! Accesses in the published trace, as knots between which the logarithm of the tail is a straight line over the
//! logarithm of the number.

/// Distribution of the accesses of an id: t and P(accesses ≥ t).
pub(in super::super) type Accesses = &'static [(f64, f64)];

/// Link reads of the published trace.
pub(in super::super) const LINK_READS: Accesses = &[
    (1.0, 0.04425),
    (2.0, 0.02645),
    (3.0, 0.0186),
    (4.0, 0.01551),
    (6.0, 0.01168),
    (10.0, 6.957e-3),
    (16.0, 4.171e-3),
    (32.0, 2.156e-3),
    (64.0, 1.172e-3),
    (128.0, 6.885e-4),
    (256.0, 4.252e-4),
    (500.0, 2.489e-4),
    (1_000.0, 1.083e-4),
    (2_000.0, 2.285e-5),
    (3_000.0, 5.009e-6),
    (5_000.0, 6.257e-7),
    (10_000.0, 8.56e-8),
    (95_718.0, 3.3e-9),
];
/// Link writes of the published trace.
pub(in super::super) const LINK_WRITES: Accesses = &[
    (1.0, 0.03246),
    (2.0, 0.01126),
    (3.0, 6.786e-3),
    (4.0, 5.119e-3),
    (6.0, 3.103e-3),
    (10.0, 1.608e-3),
    (16.0, 9.923e-4),
    (32.0, 5.489e-4),
    (64.0, 3.575e-4),
    (128.0, 2.325e-4),
    (256.0, 1.383e-4),
    (500.0, 7.215e-5),
    (1_000.0, 2.995e-5),
    (2_000.0, 9.64e-6),
    (5_000.0, 1.755e-6),
    (10_000.0, 5.039e-7),
    (20_000.0, 1.614e-7),
    (75_879.0, 3.3e-9),
];
/// Node reads of the published trace.
pub(in super::super) const NODE_READS: Accesses = &[
    (1.0, 0.04797),
    (2.0, 0.02633),
    (3.0, 0.01772),
    (4.0, 0.01204),
    (5.0, 7.911e-3),
    (6.0, 4.942e-3),
    (8.0, 1.939e-3),
    (10.0, 1.102e-3),
    (16.0, 5.361e-4),
    (32.0, 2.27e-4),
    (64.0, 1.049e-4),
    (128.0, 4.034e-5),
    (256.0, 1.279e-5),
    (500.0, 3.59e-6),
    (1_000.0, 8.53e-7),
    (2_000.0, 2.371e-7),
    (5_000.0, 4.61e-8),
    (23_831.0, 3.3e-9),
];
/// Node writes of the published trace.
pub(in super::super) const NODE_WRITES: Accesses = &[
    (1.0, 0.04777),
    (2.0, 0.01417),
    (3.0, 4.636e-3),
    (4.0, 3.066e-3),
    (6.0, 1.848e-3),
    (10.0, 1.003e-3),
    (16.0, 6.36e-4),
    (32.0, 3.266e-4),
    (64.0, 1.892e-4),
    (128.0, 1.048e-4),
    (256.0, 4.601e-5),
    (500.0, 1.441e-5),
    (1_000.0, 2.487e-6),
    (2_000.0, 1.713e-7),
    (5_000.0, 6.6e-9),
    (25_125.0, 3.3e-9),
];
