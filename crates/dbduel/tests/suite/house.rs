//! Rules of the house that the compiler does not hold.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    assert!(!files.is_empty(), "`{folder}` has no sources");
    files
}

/// A source without the tests in it. Only a module with a body ends the
/// product: declarations of test modules stand among those of others.
fn product(text: &str) -> &str {
    let mut from = 0;
    while let Some(found) = text[from..].find("#[cfg(test)]") {
        let at = from + found;
        let next = text[at..]
            .lines()
            .skip(1)
            .find(|line| !line.starts_with("#["));
        if next.is_some_and(|line| line.contains("mod ") && line.trim_end().ends_with('{')) {
            return &text[..at];
        }
        from = at + 1;
    }
    text
}

/// No source below `folder` has one of the words, comments aside.
#[track_caller]
fn check_absent(folder: &str, words: &[&str]) {
    for (path, text) in sources(folder) {
        for (number, line) in product(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let found = words.iter().find(|word| code.contains(**word));
            assert!(
                found.is_none(),
                "{}:{}: `{}`",
                path.display(),
                number + 1,
                found.unwrap_or(&"")
            );
        }
    }
}

/// What stands in the cells of the row of each crate in the table of ARCHITECTURE.md: name, imports of ours.
fn table_of_crates() -> Vec<(String, String)> {
    let architecture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = fs::read_to_string(architecture).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<_> = line.strip_prefix("| `dbduel")?.split(" | ").collect();
        let name = format!("dbduel{}", cells[0].trim_end_matches('`'));
        let imports = cells.get(2)?.trim_end_matches([' ', '|']).to_owned();
        Some((name, imports))
    });
    rows.collect()
}

#[test]
fn the_table_of_crates_has_every_dependency() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = table_of_crates();
    for entry in fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        let row = table.iter().find(|(row, _)| *row == name);
        let imports = row
            .unwrap_or_else(|| panic!("`{name}` has no row"))
            .1
            .as_str();
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let dependencies = dependencies.into_iter().flat_map(toml::Table::keys);
        let mut ours: Vec<_> = dependencies
            .filter_map(|dependency| match dependency.as_str() {
                "dbduel" => Some("the binary"),
                dependency => dependency.strip_prefix("dbduel-"),
            })
            .collect();
        ours.sort_unstable();
        let mut stated: Vec<_> = match imports {
            "none" | "all" => Vec::new(),
            imports => imports.split(", ").collect(),
        };
        stated.sort_unstable();
        assert!(
            imports == "all" || ours == stated,
            "`{name}` imports {ours:?}, in the table {stated:?}"
        );
    }
}

#[test]
fn the_async_runtime_of_nats_stays_in_its_crate() {
    for folder in [
        "src",
        "../dbduel-fleet/src",
        "../dbduel-lab/src",
        "../dbduel-load/src",
    ] {
        check_absent(folder, &["tokio", "async_nats"]);
    }
}

#[test]
fn the_build_digests_all_that_the_judge_and_the_report_import() {
    let build =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../dbduel-judge/build.rs"))
            .unwrap();
    for folder in [
        "../dbduel-judge/src",
        "../dbduel-report/src",
        "../dbduel-audit/src",
    ] {
        for (path, text) in sources(folder) {
            for imported in product(&text).split("dbduel_").skip(1) {
                let name = imported.split(is_no_name).next().unwrap_or_default();
                let is_crate = imported[name.len()..].starts_with("::");
                // The judge is the crate of the build script; synthetic records are for tests.
                let is_listed = name == "judge"
                    || name.starts_with("test")
                    || build.contains(&format!("\"../dbduel-{name}/src\""));
                assert!(is_listed || !is_crate, "{}: `{name}`", path.display());
            }
        }
    }
}

/// Ends the name of a module.
fn is_no_name(c: char) -> bool {
    !c.is_ascii_alphanumeric() && c != '_'
}

#[test]
fn the_judge_has_no_clock_no_environment_and_no_network() {
    let forbidden = [
        "Instant::now",
        "SystemTime",
        "Timestamp::now",
        "Zoned::now",
        "env::var",
        "std::net",
        "Command::new",
    ];
    for folder in [
        "../dbduel-judge/src",
        "../dbduel-report/src",
        "../dbduel-audit/src",
    ] {
        check_absent(folder, &forbidden);
    }
}

#[test]
fn all_time_of_the_lab_passes_on_its_clock() {
    let others = [
        "Instant::now",
        "SystemTime::now",
        "thread::sleep",
        ".elapsed()",
    ];
    for folder in [
        "../dbduel-inspect/src",
        "../dbduel-lab/src",
        "../dbduel-server/src",
    ] {
        check_absent(folder, &others);
    }
}

#[test]
fn the_codec_opens_no_files_and_the_statistics_know_nobody() {
    check_absent("../dbduel-wire/src", &["std::fs", "std::net", "SELECT "]);
    check_absent(
        "../dbduel-stats/src",
        &[
            "std::fs",
            "std::net",
            "std::time",
            "dbduel_record",
            "dbduel_load",
        ],
    );
    check_absent(
        "../dbduel-record/src",
        &["SystemTime", "Instant::now", "dbduel_stats", "dbduel_load"],
    );
}

#[test]
fn nothing_but_the_console_and_main_prints() {
    let folders = [
        "src",
        "../dbduel-experiment/src",
        "../dbduel-inspect/src",
        "../dbduel-judge/src",
        "../dbduel-lab/src",
        "../dbduel-machine/src",
        "../dbduel-server/src",
        "../dbduel-audit/src",
        "../dbduel-fleet/src",
        "../dbduel-sysbench/src",
        "../dbduel-lua/src",
        "../dbduel-load/src",
        "../dbduel-report/src",
    ];
    for (path, text) in folders.into_iter().flat_map(sources) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_edge = ["console.rs", "main.rs"].contains(&name.as_str())
            || path.components().any(|part| part.as_os_str() == "commands");
        let prints = ["println!", "eprintln!", "print!("].iter().any(|word| {
            product(&text)
                .lines()
                .any(|line| line.split("//").next().unwrap_or_default().contains(word))
        });
        assert!(is_edge || !prints, "{} prints", path.display());
    }
}

/// Folders and sources that `ARCHITECTURE.md` names, from where a reader would look for them.
#[test]
fn every_path_on_the_map_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let folders = [
        "",
        "crates",
        "crates/dbduel",
        "crates/dbduel/src",
        "crates/dbduel-driver/src",
        "crates/dbduel-client/src",
        "crates/dbduel-fleet/src",
        "crates/dbduel-load/src",
        "crates/dbduel-lua/src",
        "crates/dbduel-sysbench/src",
    ];
    let in_code = map.split('`').skip(1).step_by(2);
    let paths: Vec<&str> = in_code
        .filter(|code| code.ends_with('/') || code.ends_with(".rs"))
        .collect();
    assert!(paths.len() > 20, "{paths:?}");
    for path in paths {
        let is_there = folders
            .iter()
            .any(|folder| root.join(folder).join(path).exists());
        assert!(is_there, "`{path}` is on the map and not there");
    }
}

/// One module style: a module with children is `name/mod.rs`, so that a folder holds all of it.
#[test]
fn a_module_with_children_is_in_its_folder() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in fs::read_dir(crates).unwrap() {
        let mut folders = vec![entry.unwrap().path().join("src")];
        while let Some(folder) = folders.pop() {
            assert!(
                !folder.with_extension("rs").exists(),
                "{} has a file beside it; its module belongs in mod.rs",
                folder.display()
            );
            let entries = fs::read_dir(&folder).into_iter().flatten();
            folders.extend(
                entries
                    .map(|entry| entry.unwrap().path())
                    .filter(|path| path.is_dir()),
            );
        }
    }
}

/// Words that no text of the project uses: where the field has a plain term, it is in brackets.
const BANNED: &[&str] = &[
    "go on with", // resume
    "goes on with",
    "gone on with",
    "going on with",
    "can be had", // available
    "cannot be had",
    "lawful",     // allowed, valid
    "last words", // end of the log, of the output
    "heed",       // take into account
    "mend",       // fix
    "doings",
    "parcel",   // work unit
    "crew",     // worker pool
    "stand-in", // mock
    "anybody",
];

/// More such words, which documents and reports do not use.
const BANNED_IN_PROSE: &[&str] = &[
    "nobody", "somebody", "whoever", "anew", // again
    "told", // reported, shown
];

#[test]
fn texts_have_none_of_the_banned_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut folders = vec![
        root.join("crates"),
        root.join("docs"),
        root.join("experiments"),
        root.join("suites"),
    ];
    let mut files: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "GLOSSARY.md",
        "CONTRIBUTING.md",
    ]
    .iter()
    .map(|name| root.join(name))
    .collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let is_text = |path: &Path| {
                let extension = path.extension().and_then(|extension| extension.to_str());
                matches!(extension, Some("rs" | "md" | "html" | "lua" | "toml"))
            };
            if path.is_dir() {
                folders.push(path);
            } else if is_text(&path) && !path.ends_with("house.rs") {
                files.push(path);
            }
        }
    }
    for path in files {
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        let is_prose = path.extension().is_some_and(|extension| extension == "md")
            || path.components().any(|part| part.as_os_str() == "report");
        let in_prose = BANNED_IN_PROSE.iter().filter(|_| is_prose);
        let banned: Vec<&str> = BANNED.iter().chain(in_prose).copied().collect();
        for (number, line) in text.lines().enumerate() {
            for word in &banned {
                let is_whole = |(at, _): (usize, &str)| {
                    let is_letter =
                        |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
                    !is_letter(line[..at].chars().next_back())
                        && !is_letter(line[at + word.len()..].chars().next())
                };
                if line.match_indices(word).any(is_whole) {
                    found.push(format!("{}:{}: {word}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_program_includes_the_shipped_experiments() {
    let included = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let shipped = fs::canonicalize(included.join("../../../experiments")).unwrap();
    for entry in fs::read_dir(included).unwrap() {
        let file = fs::canonicalize(entry.unwrap().path()).unwrap();
        assert!(file.starts_with(&shipped), "{}", file.display());
    }
}
