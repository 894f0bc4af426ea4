//! The load path does not allocate per statement.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use dbduel_driver::mock_server::{MockServer, Role};
use dbduel_load::order::{Order, SliceOrder};
use nix::libc;
use support::{Load, open_order, slice_order};

/// Counts what load threads allocate. What others do depends on the machine: encoding a histogram takes more where latencies
/// are spread more.
struct Counting;

impl Counting {
    fn count() {
        let mut name = [0_u8; 16];
        // SAFETY: the kernel writes 16 bytes at most.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        if name.starts_with(b"load-") {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::count();
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::count();
        // SAFETY: the caller keeps the allocator's contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of the load threads and statements of a slice.
fn cost(load: &mut Load, measured_s: f64) -> (u64, u64) {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let order = SliceOrder {
        tick_s: 60.0,
        ..slice_order(4, measured_s)
    };
    let slice = load.slice(&order);
    (
        ALLOCATIONS.load(Ordering::Relaxed) - before,
        slice.classes[0].counts.statements,
    )
}

#[test]
fn statements_do_not_allocate() {
    let directory = tempfile::tempdir().unwrap();
    let server = MockServer::start(&directory.path().join("s.sock"), Role::Null).unwrap();
    for protocol in ["prepared", "text"] {
        let mut load = Load::start(2);
        let mut order = open_order(&server.address(), "oltp-read-write", 4);
        order
            .workload
            .parameters
            .insert("protocol".to_owned(), protocol.into());
        load.order(&Order::Open(order));
        load.answer();
        cost(&mut load, 0.1);
        // On a busy machine a slice may end before its first transaction.
        let (short_allocations, short_statements) = (0..100)
            .map(|_| cost(&mut load, 0.1))
            .find(|(_, statements)| *statements > 0)
            .expect("one of 100 slices has a transaction");
        let enough = short_statements + 5_000;
        // A machine that is busy with other things gets more time.
        let (long_allocations, long_statements) = [1.0, 4.0, 16.0, 64.0]
            .into_iter()
            .map(|measured_s| cost(&mut load, measured_s))
            .find(|(_, statements)| *statements > enough)
            .expect("the null server answers 5,000 statements in 64 s");
        // A transaction has twenty statements, so that one for each of them would be 250 more.
        assert!(
            long_allocations < short_allocations + 100,
            "{protocol}: {short_allocations} allocations for {short_statements} statements, \
             {long_allocations} for {long_statements}"
        );
        load.end();
    }
}
