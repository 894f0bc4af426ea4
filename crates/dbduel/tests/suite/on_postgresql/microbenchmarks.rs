//! The published microbenchmarks and the Insert Benchmark on PostgreSQL.

use super::cluster::shared;
use crate::suite::on_server::insert_benchmark::{check_changes, check_load, check_queries};
use crate::suite::on_server::microbenchmarks::{check_all, check_updates};
use crate::suite::on_server::server::{MARIADB, Server};

#[test(lab)]
fn every_microbenchmark_has_the_statements_that_the_document_says() {
    let Some(cluster) = shared() else { return };
    check_all(&*cluster);
    check_updates(&*cluster);
}

#[test(lab)]
fn loaded_and_filled_tables_of_the_insert_benchmark_are_equal() {
    let Some(cluster) = shared() else { return };
    check_load(&*cluster);
}

#[test(lab)]
fn queries_of_the_insert_benchmark_run_beside_a_rate() {
    let Some(cluster) = shared() else { return };
    check_queries(&*cluster);
}

/// The same slices leave the same rows, whatever the product.
#[test(on = &[MARIADB], lab)]
fn slices_of_the_insert_benchmark_leave_the_rows_of_mariadb(server: &Server) {
    let on_mariadb = check_changes(server);
    let Some(cluster) = shared() else { return };
    assert_eq!(check_changes(&*cluster), on_mariadb);
}
