//! The hot path allocates nothing: requests into a buffer that has grown once, replies that are counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use dbduel_wire::server::{ReplyWriter, Terms};
use dbduel_wire::{
    Capabilities, Completion, ReplyParser, Row, RowFormat, SentTypes, Sink, Skip, Statement,
    Status, Step, Types, Value, command, postgresql,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands every call to the system's allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the pointer came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs once to let buffers grow, then counts the allocations of a hundred runs.
fn allocations(mut run: impl FnMut()) -> u64 {
    run();
    let before = ALLOCATIONS.with(Cell::get);
    for _ in 0..100 {
        run();
    }
    ALLOCATIONS.with(Cell::get) - before
}

fn result_set(format: RowFormat) -> Vec<u8> {
    let mut out = Vec::new();
    let capabilities = Capabilities::DEPRECATE_EOF;
    let mut writer = ReplyWriter::new(
        &mut out,
        Terms {
            capabilities,
            sequence: 1,
        },
    );
    writer.columns([("c", Value::Bytes(b"").kind())].into_iter());
    for _ in 0..100 {
        match format {
            RowFormat::Text => writer.text_row([Some(&[b'x'; 120][..])].into_iter()),
            _ => writer.binary_row(&[Value::Bytes(&[b'x'; 120])]),
        }
    }
    writer.end(Status::AUTOCOMMIT, 0);
    out
}

/// Adds up the bytes of all values without keeping any.
#[derive(Default)]
struct Length(usize);

impl Sink for Length {
    fn wants_columns(&self) -> bool {
        false
    }
    fn row(&mut self, row: &Row<'_>) {
        self.0 += row
            .values()
            .filter_map(|value| value.ok()?.as_bytes().map(<[u8]>::len))
            .sum::<usize>();
    }
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(std::hint::black_box(vec![1]))) >= 100);
}

#[test]
fn requests_are_appended_without_allocation() {
    let statement = Statement {
        id: 1,
        parameters: 3,
        columns: 0,
        warnings: 0,
    };
    let mut out = Vec::new();
    let parameters = [Value::Signed(1), Value::Text("words"), Value::Null];
    let mut sent = SentTypes::default();
    let count = allocations(|| {
        out.clear();
        command::query(&mut out, b"BEGIN");
        command::execute(&mut out, &statement, &parameters, sent.choose(&parameters)).unwrap();
        command::execute(&mut out, &statement, &parameters, Types::Send).unwrap();
        command::query(&mut out, b"COMMIT");
    });
    assert_eq!(count, 0);
}

#[test]
fn replies_are_counted_without_allocation() {
    let mut parser = ReplyParser::new(Capabilities::DEPRECATE_EOF);
    let mut ok = Vec::new();
    let terms = Terms {
        capabilities: Capabilities::DEPRECATE_EOF,
        sequence: 1,
    };
    ReplyWriter::new(&mut ok, terms).ok(&Completion {
        affected_rows: 1,
        ..Completion::default()
    });
    for format in [RowFormat::Text, RowFormat::Binary] {
        let rows = result_set(format);
        for size in [usize::MAX, 64, 1] {
            let mut length = Length::default();
            let count = allocations(|| {
                for (reply, skip) in [(&ok, true), (&rows, true), (&rows, false)] {
                    parser.begin(format);
                    let mut step = Step::NeedMore;
                    for piece in reply.chunks(size.min(reply.len())) {
                        let fed = if skip {
                            parser.feed(piece, &mut Skip)
                        } else {
                            parser.feed(piece, &mut length)
                        };
                        step = fed.unwrap().step;
                    }
                    assert_eq!(step, Step::Done);
                }
            });
            assert_eq!(count, 0, "{format:?} in pieces of {size}");
            assert_eq!(length.0, 101 * 100 * 120);
        }
    }
}

/// A message of PostgreSQL's protocol.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 4) as u32;
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

#[test]
fn postgresql_executes_without_allocation() {
    let described = [
        message(b't', b"\0\x02\0\0\0\x17\0\0\x04\x13"),
        message(b'T', b"\0\x01c\0\0\0\0\0\0\0\0\0\x04\x12\0\0\0\0\0\0\0\0"),
        message(b'Z', b"I"),
    ]
    .concat();
    let mut parser = postgresql::ReplyParser::default();
    let prepared = postgresql::PrepareParser::new(1).feed(&mut parser, &described);
    let statement = prepared.unwrap().unwrap().unwrap();
    let row = [&b"\0\x01\0\0\0\x78"[..], &[b'x'; 120]].concat();
    let mut answer = message(b'2', b"");
    for _ in 0..100 {
        answer.extend_from_slice(&message(b'D', &row));
    }
    answer.extend_from_slice(&message(b'C', b"SELECT 100\0"));
    answer.extend_from_slice(&message(b'Z', b"T"));
    let mut out = Vec::new();
    let values = [Value::Signed(1), Value::Text("words")];
    for size in [usize::MAX, 64, 1] {
        let mut length = Length::default();
        let count = allocations(|| {
            out.clear();
            postgresql::command::execute(&mut out, &statement, &values).unwrap();
            postgresql::command::sync(&mut out);
            parser.begin_executions();
            parser.expect(&statement);
            let mut step = postgresql::Step::NeedMore;
            for piece in answer.chunks(size.min(answer.len())) {
                step = parser.feed(piece, &mut length).unwrap();
            }
            assert_eq!(step, postgresql::Step::Done);
            assert_eq!(parser.outcome().unwrap().rows, 100);
        });
        assert_eq!(count, 0, "in pieces of {size}");
        assert_eq!(length.0, 101 * 100 * 120);
    }
}
