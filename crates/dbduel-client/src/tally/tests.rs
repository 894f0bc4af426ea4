use super::*;
use crate::random::Random;

const WINDOW: Window = Window {
    open_ns: 1_000,
    close_ns: 11_000,
    tick_ns: 2_500,
};
const ONLY: Class = Class(0);

fn begin(tally: &mut Tally, due_ns: u64) {
    tally.began(ONLY, due_ns, true);
}

fn ended(due_ns: u64, done_ns: u64) -> Ended {
    Ended {
        class: ONLY,
        outcome: Outcome::Ok,
        latency_ns: done_ns - due_ns,
        done_ns,
        retries: 0,
        statements: 1,
    }
}

fn end(tally: &mut Tally, due_ns: u64, done_ns: u64) {
    tally.ended(ended(due_ns, done_ns), true);
}

#[test]
fn a_transaction_counts_where_it_ends() {
    let mut tally = Tally::new(1, WINDOW);
    begin(&mut tally, 100);
    end(&mut tally, 100, 900); // all in the guard: does not count
    begin(&mut tally, 950);
    end(&mut tally, 950, 1_200); // carried into the measured part
    begin(&mut tally, 1_200);
    end(&mut tally, 1_200, 10_999);
    begin(&mut tally, 10_999);
    end(&mut tally, 10_999, 11_000); // still running at the end
    let class = &tally.classes()[0];
    assert_eq!(
        (class.counts.due, class.counts.ok, class.counts.unfinished),
        (3, 2, 1)
    );
    assert_eq!(class.latency_ns_sum, 250 + 9_799);
    assert!(tally.balances());
}

#[test]
fn what_is_not_waited_for_counts_when_it_ends_in_time_and_not_at_all_when_it_does_not() {
    let mut tally = Tally::new(1, WINDOW);
    begin(&mut tally, 9_000);
    tally.began(ONLY, 9_500, false);
    tally.began(ONLY, 9_600, false);
    tally.ended(ended(9_500, 10_000), false);
    // Of an earlier slice: it took longer than this one.
    let carried = Ended {
        latency_ns: 50_000,
        ..ended(10_100, 10_200)
    };
    tally.ended(carried, false);
    end(&mut tally, 9_000, 10_500);
    tally.drained(1_500);
    tally.close(10_600);
    tally.ended(ended(9_600, 10_700), false);
    let counts = tally.classes()[0].counts;
    assert_eq!((counts.due, counts.ok, counts.unfinished), (3, 3, 0));
    assert_eq!(tally.classes()[0].latency_ns_sum, 500 + 50_000 + 1_500);
    assert_eq!(
        (tally.window().close_ns, tally.client_drained_ns()),
        (10_600, 1_500)
    );
    assert!(tally.balances());
}

#[test]
fn the_ticks_add_up_to_the_slice_and_to_its_transactions() {
    let mut tally = Tally::new(1, WINDOW);
    for due_ns in (0..12_000).step_by(100) {
        begin(&mut tally, due_ns);
        end(&mut tally, due_ns, due_ns + 50);
    }
    let lengths: Vec<_> = tally
        .ticks()
        .iter()
        .map(|tick| (tick.start_ns, tick.end_ns))
        .collect();
    let expected = [
        (0, 1_000),
        (1_000, 3_500),
        (3_500, 6_000),
        (6_000, 8_500),
        (8_500, 11_000),
    ];
    assert_eq!(lengths, expected);
    let measured: u64 = tally.ticks()[1..].iter().map(|tick| tick.ok).sum();
    assert_eq!(measured, tally.classes()[0].counts.ok);
    assert_eq!(tally.ticks()[0].ok, 10);
}

#[test]
fn an_early_stop_shortens_the_measured_part() {
    let mut tally = Tally::new(1, WINDOW);
    begin(&mut tally, 1_500);
    tally.close(4_000);
    end(&mut tally, 1_500, 5_000);
    assert_eq!(tally.window().close_ns, 4_000);
    assert_eq!(tally.classes()[0].counts.unfinished, 1);
    assert_eq!(
        tally
            .ticks()
            .last()
            .map(|tick| (tick.start_ns, tick.end_ns)),
        Some((3_500, 4_000))
    );
    assert!(tally.balances());
    let mut early = Tally::new(1, WINDOW);
    begin(&mut early, 10);
    early.close(500);
    assert_eq!(
        (early.window().open_ns, early.window().close_ns),
        (500, 500)
    );
    assert!(early.balances());
}

#[test]
fn counters_balance_for_any_history_and_after_merging() {
    let mut random = Random::new(3);
    let mut whole = Tally::new(2, WINDOW);
    whole.close(u64::MAX);
    for _ in 0..50 {
        let mut tally = Tally::new(2, WINDOW);
        let mut clients = [None; 5];
        let mut now_ns = 0;
        while now_ns < 15_000 {
            now_ns += random.below(200);
            let slot = &mut clients[random.below(5) as usize];
            match slot.take() {
                Some((class, due_ns, is_awaited)) => {
                    let outcome = if random.below(4) == 0 {
                        Outcome::Failed
                    } else {
                        Outcome::Ok
                    };
                    let ended = Ended {
                        class,
                        outcome,
                        latency_ns: now_ns - due_ns,
                        done_ns: now_ns,
                        retries: 1,
                        statements: 2,
                    };
                    tally.ended(ended, is_awaited);
                }
                None => {
                    let class = Class(random.below(2) as usize);
                    let is_awaited = random.below(3) > 0;
                    tally.began(class, now_ns, is_awaited);
                    *slot = Some((class, now_ns, is_awaited));
                }
            }
        }
        tally.skip(3);
        tally.close(now_ns);
        assert!(tally.balances());
        whole.merge(&tally);
    }
    assert!(whole.balances());
    assert!(whole.classes().iter().all(|class| class.counts.ok > 0
        && class.counts.failed > 0
        && class.counts.unfinished > 0));
    assert_eq!(whole.undrawn(), 150);
}

#[test]
fn what_was_never_sent_is_due_and_skipped() {
    let mut tally = Tally::new(1, WINDOW);
    tally.close(u64::MAX);
    tally.skip(7);
    assert_eq!(
        (
            tally.classes()[0].counts.due,
            tally.classes()[0].counts.skipped
        ),
        (7, 7)
    );
    assert!(tally.balances());
}

#[test]
fn a_restarted_tally_is_empty() {
    let mut tally = Tally::new(1, WINDOW);
    begin(&mut tally, 2_000);
    tally.erred(&ServerError {
        class: ErrorClass::Conflict,
        code: 1213,
        sqlstate: *b"40001",
        message: "Deadlock found".to_owned(),
    });
    tally.lagged(10);
    end(&mut tally, 2_000, 3_000);
    tally.restart(2, WINDOW);
    assert!(
        tally
            .classes()
            .iter()
            .all(|class| class.counts.due == 0 && class.latencies.is_empty())
    );
    assert_eq!(tally.classes().len(), 2);
    assert!(
        tally.ticks().is_empty()
            && tally.errors().iter().next().is_none()
            && tally.lags().is_empty()
    );
}

#[test]
fn statements_count_with_their_transaction_by_class() {
    let done = |class, latency_ns, answer| StatementDone {
        class,
        latency_ns,
        answer,
    };
    let read = |returned| StatementAnswer::Ok {
        returned,
        changed: None,
    };
    let write = |changed| StatementAnswer::Ok {
        returned: 0,
        changed: Some(changed),
    };
    let exists = StatementAnswer::Failed {
        code: 1062,
        key_exists: true,
    };
    let mut tally = Tally::new(1, WINDOW);
    tally.measure_statements(2);
    begin(&mut tally, 100);
    end(&mut tally, 100, 900); // in the guard
    tally.statements_done(&[done(0, 800, read(1))]);
    begin(&mut tally, 950);
    end(&mut tally, 950, 5_000);
    tally.statements_done(&[
        done(0, 3_000_000, read(4)),
        done(1, 9_000_000, write(0)),
        done(1, 1_000_000, exists),
        done(1, 2_000_000, write(3)),
        // Of no class that is measured.
        done(2, 1, read(1)),
    ]);
    let mut other = Tally::new(1, WINDOW);
    other.measure_statements(2);
    begin(&mut other, 950);
    end(&mut other, 950, 6_000);
    other.statements_done(&[done(1, 1_000_000, exists), done(0, 5_000_000, read(2))]);
    end_after(&mut other);
    tally.merge(&other);
    let [reads, writes] = tally.statements() else {
        panic!("two classes")
    };
    assert_eq!((reads.counts.ok, reads.counts.rows_returned), (2, 6));
    assert_eq!(
        (reads.counts.unchanged, reads.latency_ns_sum),
        (0, 8_000_000)
    );
    let counts = writes.counts;
    assert_eq!((counts.ok, counts.failed, counts.key_exists), (2, 2, 2));
    assert_eq!((counts.unchanged, counts.rows_changed), (1, 3));
    assert_eq!(writes.errors, [(1062, 2)]);
    assert_eq!(
        (writes.latency_ns_sum, writes.failed_ns_sum),
        (11_000_000, 2_000_000)
    );
    let p50_ns = reads.latencies().quantile_ns(0.5);
    assert!((2_970_000..3_030_000).contains(&p50_ns), "{p50_ns}");
    tally.restart(1, WINDOW);
    assert!(tally.statements().iter().all(StatementTally::is_empty));
}

/// A statement of a transaction that ended after the measured part.
fn end_after(tally: &mut Tally) {
    tally.close(10_000);
    tally.statements_done(&[StatementDone {
        class: 0,
        latency_ns: 1,
        answer: StatementAnswer::Ok {
            returned: 1,
            changed: None,
        },
    }]);
}
