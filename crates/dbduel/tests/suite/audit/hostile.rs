//! Files that are no evidence: too long, binary, in another encoding.

use std::fs;

use super::{audit, check_error, data, text};

#[track_caller]
fn check_refused(content: &[u8], expected: &str) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hostile");
    fs::write(&path, content).unwrap();
    let output = audit(&[text(&path), text(&data("mariadb-10.1.8.tsv"))]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(expected), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn hostile_files_are_errors_with_file_and_line() {
    check_refused(&vec![b'x'; 10 << 20], "line 1: the line is longer");
    check_refused(&b"a\t1\n".repeat(1_000_000), "line 200001");
    check_refused(b"version\t1\n\0\x01\x02", "line 2: not a text file");
    check_refused(b"\xfe\xff\0v", "line 1: the text is in UTF-16BE");
    check_refused(b"version\t5.6\nx\t\xe4\n", "line 2: byte 3 is not UTF-8");
    check_refused(b"version\t5.6\nx\ty\0z\n", "line 2: not a text file");
    check_refused(b"\xff\xfev\0e\0r\0", "line 1: the text is in UTF-16LE");
    check_refused(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0], "line 1: ");
    check_refused(b"[mysqld]\ninnodb_io_capacity=1\n", "--product-a");
    check_refused(b"", "in no format that an audit reads");
    check_refused(b"max_connections\t151\n", "no `version`");
}

#[test]
fn hostile_option_files_and_experiments_are_errors_too() {
    let directory = tempfile::tempdir().unwrap();
    let dump = data("mariadb-10.1.8.tsv");
    let sides = ["--product-a", "mysql", "--version-a", "5.6.24"];
    let long = [b"[mysqld]\nsql_mode=".as_slice(), &vec![b'x'; 10 << 20]].concat();
    let latin1 = b"[mysqld]\n# Gr\xf6\xdfe\nport=1\n";
    let utf16: Vec<u8> = "[mysqld]\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (content, expected) in [
        (long.as_slice(), "line 2: the line is longer"),
        (latin1, "line 2: byte 5 is not UTF-8"),
        (&utf16, "line 1: not a text file"),
        (b"[mysqld]\nport=1\0\n", "line 2: not a text file"),
    ] {
        let path = directory.path().join("my.cnf");
        fs::write(&path, content).unwrap();
        let arguments = [&[text(&path), text(&dump)][..], &sides].concat();
        check_error(&arguments, &[expected]);
    }
    let path = directory.path().join("my.cnf");
    fs::write(&path, "[mysqld]\n!include /dev/zero\n").unwrap();
    let arguments = [&[text(&path), text(&dump), "--root", "/"][..], &sides].concat();
    check_error(&arguments, &["line 2: `/dev/zero` cannot be included"]);
    for (content, expected) in [
        (long.as_slice(), "line 2: the line is longer"),
        (b"question = \"\xe4\"\n", "line 1: byte 13 is not UTF-8"),
        (b"\0\x01", "line 1: not a text file"),
    ] {
        let path = directory.path().join("duel.toml");
        fs::write(&path, content).unwrap();
        check_error(&[text(&path), "--dry"], &[expected]);
    }
}
