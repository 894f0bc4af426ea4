//! A hostile client of the null server.

#![no_main]

use dbduel_wire::server::{Command, NullServer, Shape};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut out = Vec::new();
    let mut server = NullServer::begin(1, &mut out);
    let mut shape = |sql: &[u8]| Shape {
        parameters: sql.len() as u16 & 7,
        columns: 3,
        rows: 2,
        ..Shape::default()
    };
    let _ = server.feed(data, &mut shape, &mut out);
    if let Ok(Command::Execute { body, .. }) = Command::parse(data) {
        let mut kinds = Vec::new();
        for count in [1, 9, 300] {
            let _ = body.parameters(count, &mut kinds);
        }
    }
});
