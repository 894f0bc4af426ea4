//! A hostile statement: it is dropped, or keeps its class.

#![no_main]

use dbduel_capture::anonymise::{KEY_BYTES, Replacer, Rewriter};
use dbduel_sql::{Class, Syntax};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut replacer = Replacer::new(&[1; KEY_BYTES]);
    for syntax in [Syntax::MYSQL, Syntax::POSTGRESQL] {
        let mut out = Vec::new();
        if Rewriter::new(&mut replacer, syntax).rewrite(text, &mut out).is_ok() {
            assert_eq!(Class::of(text, syntax), Class::of(&out, syntax));
        }
    }
});
