//! A hostile log: the first byte chooses the reader, the rest is the log. Parts that count as unreadable are lines of it, in order and apart.

#![no_main]

use std::io;

use dbduel_capture::entry::{Entry, Lack, Sink};
use dbduel_capture::logs::{LogFormat, LogOptions};
use libfuzzer_sys::fuzz_target;

const FORMATS: [LogFormat; 6] = [
    LogFormat::MysqlGeneral,
    LogFormat::MysqlSlow,
    LogFormat::MysqlTable,
    LogFormat::PostgresqlCsv,
    LogFormat::PostgresqlJson,
    LogFormat::PostgresqlStderr,
];

#[derive(Default)]
struct Parts(Vec<(u64, u64)>);

impl Sink for Parts {
    fn entry(&mut self, _entry: Entry<'_>) -> io::Result<()> {
        Ok(())
    }

    fn unreadable(&mut self, line: u64, lines: u64, _why: &str) {
        self.0.push((line, lines));
    }

    fn lacks(&mut self, _lack: Lack) {}
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, mut log)) = data.split_first() else {
        return;
    };
    let format = FORMATS[usize::from(choice) % FORMATS.len()];
    let options = LogOptions {
        line_prefix: Some(b"%m [%p] %c ".to_vec()),
        ..LogOptions::default()
    };
    let lines = log.split_inclusive(|byte| *byte == b'\n').count() as u64;
    let mut parts = Parts::default();
    // A log of another format is refused.
    let _ = format.read(&mut log, &options, &mut parts);
    parts.0.sort_unstable();
    let mut next = 1;
    for (line, count) in parts.0 {
        assert!(line >= next && count > 0);
        // In a stderr log lines of other programs may stand between those of a message.
        next = match format {
            LogFormat::PostgresqlStderr => line + 1,
            _ => line + count,
        };
    }
    assert!(next <= lines + 1);
});
