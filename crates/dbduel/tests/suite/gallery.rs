//! The contests of `gallery/`: records are whole, and what our pages quote of their reports is what these say today.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::lab::{program, verify};

/// What the records of the gallery may take, bytes: each, and all.
const RECORD_BYTES_MAX: u64 = 1 << 20;
const GALLERY_BYTES_MAX: u64 = 5 << 20;

/// Records whose Markdown is compared with a snapshot: a duel, four contenders at two loads, and a suite.
const SNAPSHOTS: &[&str] = &["contest-a", "contest-e", "suite"];

fn gallery() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gallery")
}

/// Words without the frame of a box, line ends and what Markdown adds.
fn words(text: &str) -> String {
    let bare = text.replace(['│', '`', '*'], " ");
    bare.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The quotations of a page: its lines that begin with `>`, each paragraph of them as one.
fn quotations(page: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in page.lines() {
        match line.strip_prefix('>').map(str::trim) {
            Some(quoted) if !quoted.is_empty() => {
                let last = found.last_mut().unwrap();
                last.push_str(quoted);
                last.push(' ');
            }
            _ => found.push(String::new()),
        }
    }
    found
        .iter()
        .map(|text| words(text))
        .filter(|text| !text.is_empty())
        .collect()
}

/// Unpacks a record of the gallery into `dir`.
fn unpack(packed: &Path, dir: &Path) {
    let unpacked = Command::new("tar")
        .arg("-xJf")
        .arg(packed)
        .arg("-C")
        .arg(dir)
        .status()
        .unwrap();
    assert!(unpacked.success(), "{}", packed.display());
}

/// The report of the record `name`, which is in `dir`.
fn rendered(dir: &Path, name: &str, format: &str) -> String {
    let output = program()
        .current_dir(dir)
        .args(["report", name, "--format", format])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A report without the lines that name the build that judged the record and the paths of servers.
fn without_builds(markdown: &str) -> String {
    let lines = markdown.lines();
    let kept: Vec<&str> = lines
        .filter(|line| !line.starts_with("- **judged by**") && !line.starts_with("- program: "))
        .collect();
    kept.join("\n")
}

#[test]
fn the_gallerys_pages_render_again_and_are_quoted_right() {
    let mut records = 0;
    let mut bytes = 0;
    let index = std::fs::read_to_string(gallery().join("README.md")).unwrap();
    for entry in std::fs::read_dir(gallery()).unwrap() {
        let packed = entry.unwrap().path();
        let file = packed.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(name) = file.strip_suffix(".tar.xz") else {
            continue;
        };
        let size = packed.metadata().unwrap().len();
        assert!(size < RECORD_BYTES_MAX, "{file}: {size} bytes");
        bytes += size;
        records += 1;
        assert!(
            index.contains(&format!("({name}.md)")),
            "README.md leads to {name}.md"
        );

        let dir = tempfile::tempdir().unwrap();
        unpack(&packed, dir.path());
        let record = dir.path().join(name);
        let (code, said) = verify(&record);
        assert_eq!(code, Some(0), "{file}: {said}");

        let html = rendered(dir.path(), name, "html");
        assert!(
            html.starts_with("<!DOCTYPE html>") && html.contains("</html>"),
            "{file}"
        );
        if SNAPSHOTS.contains(&name) {
            let markdown = rendered(dir.path(), name, "markdown");
            insta::assert_snapshot!(name, without_builds(&markdown));
        }
        let report = words(&rendered(dir.path(), name, "terminal"));
        let page = std::fs::read_to_string(gallery().join(format!("{name}.md"))).unwrap();
        let quoted = quotations(&page);
        assert!(quoted.len() >= 3, "{name}.md quotes its report");
        for quotation in quoted {
            assert!(
                report.contains(&quotation),
                "{name}.md quotes `{quotation}`, which its report does not say:\n{report}"
            );
        }
    }
    assert_eq!(records, 7);
    assert!(bytes < GALLERY_BYTES_MAX, "{bytes} bytes");
}
