//! What packages hold, and the scripts that run where they are installed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path without its `..`, as it is written.
fn normalised(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

/// A file that is compiled in from outside of its crate's folder is missing where the crate is built from a registry.
#[test]
fn crates_include_only_files_of_their_own() {
    let crates = normalised(&root().join("crates"));
    let mut included = 0;
    for entry in fs::read_dir(&crates).unwrap() {
        let own = entry.unwrap().path();
        let mut folders = vec![own.join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = fs::read_to_string(&path).unwrap();
                for start in ["include_str!(\"", "include_bytes!(\"", "include!(\""] {
                    for rest in text.split(start).skip(1) {
                        let written = rest.split('"').next().unwrap();
                        let file = normalised(&folder.join(written));
                        included += 1;
                        assert!(
                            file.starts_with(&own) && file.is_file(),
                            "{}: `{written}`; link to it from the crate's folder",
                            path.display()
                        );
                    }
                }
            }
        }
    }
    assert!(included > 20, "{included}");
}

#[test]
fn the_page_about_installing_promises_the_glibc_that_packages_are_held_to() {
    let script = fs::read_to_string(root().join("packaging/glibc.sh")).unwrap();
    let promised = script.split("promised=").nth(1).unwrap();
    let promised = format!("glibc {} or newer", promised.lines().next().unwrap());
    for page in ["docs/install.md", "packaging/wheel/README.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        assert!(text.contains(&promised), "{page}: `{promised}`");
    }
}

/// Runs the step of the action with a dbduel and a `gh` that note their arguments.
fn act(folder: &Path, fail_if: &str, ends_with: u8, pull_request: &str) -> Output {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = |name: &str, text: &str| {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let noted = folder.display();
    program(
        "dbduel",
        &format!(
            "printf '%s\\n' \"$@\" > {noted}/dbduel-arguments\n\
             mkdir -p \"$4/20261120-1-duel\" && echo '# the verdict' > \"$4/20261120-1-duel/report.md\"\n\
             exit {ends_with}"
        ),
    );
    program(
        "gh",
        &format!("printf '%s\\n' \"$@\" > {noted}/gh-arguments"),
    );
    Command::new(root().join("packaging/action/run.sh"))
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_OUTPUT", folder.join("output"))
        .env("GITHUB_STEP_SUMMARY", folder.join("summary"))
        .env("GITHUB_REPOSITORY", "someone/something")
        .env("DBDUEL_EXPERIMENT", "bench/my duel.toml")
        .env("DBDUEL_FAIL_IF", fail_if)
        .env("DBDUEL_RESULTS", "")
        .env("DBDUEL_COMMENT", "true")
        .env("PULL_REQUEST", pull_request)
        .output()
        .unwrap()
}

#[test]
fn the_action_comments_the_report_and_ends_as_dbduel_did() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let results = folder.path().join("dbduel-results");
    fs::create_dir_all(results.join("20261121-9-of-another-step")).unwrap();
    let output = act(
        folder.path(),
        "slower than 3 %\n\np99 higher than 10 %\n",
        5,
        "7",
    );
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let expected = format!(
        "run\nbench/my duel.toml\n--results\n{}\n--fail-if\nslower than 3 %\n--fail-if\np99 higher than 10 %\n",
        results.display()
    );
    assert_eq!(read("dbduel-arguments"), expected);
    let record = results.join("20261120-1-duel");
    assert_eq!(
        read("output"),
        format!("exit-code=5\nrecord={}\n", record.display())
    );
    assert_eq!(read("summary"), "# the verdict\n");
    let comment = read("gh-arguments");
    assert!(comment.starts_with("pr\ncomment\n7\n"), "{comment}");
    assert!(comment.contains(&record.join("report.md").display().to_string()));
}

#[test]
fn outside_of_a_pull_request_the_action_comments_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = act(folder.path(), "", 0, "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!folder.path().join("gh-arguments").exists());
    assert!(folder.path().join("summary").exists());
}
