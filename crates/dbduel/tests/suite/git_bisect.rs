//! `git bisect run dbduel bisect-step`: what is not an answer must not read as one.

use std::path::Path;
use std::process::{Command, Output};

use super::lab::program;

const EXPERIMENT: &str = "budget = \"5 min\"\nhorizon = \"3 %\"\n[contenders.server]\nserver = \"mariadb-10.11\"\n\
                          [workload]\nname = \"oltp-point-select\"\n[load]\nclients = 1\n";

fn git(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
        .args(arguments)
        .output();
    output.unwrap()
}

fn text(output: &Output) -> String {
    let parts = [&output.stdout, &output.stderr];
    parts.map(|part| String::from_utf8_lossy(part)).concat()
}

#[test]
#[needs_program("git")]
fn a_commit_that_does_not_build_is_skipped_and_a_failure_ends_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("repository");
    std::fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    for builds in ["true", "false", "true"] {
        std::fs::write(repository.join("build.sh"), builds).unwrap();
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "--quiet", "-m", builds]);
    }
    let experiment = folder.path().join("bisect.toml");
    std::fs::write(&experiment, EXPERIMENT).unwrap();
    let home = folder.path().join("home");
    let step = |experiment: &Path, server: &str| {
        let words = [
            program().get_program().to_owned(),
            "--home".into(),
            home.clone().into(),
            "bisect-step".into(),
            experiment.into(),
            "--good".into(),
            "ends/good".into(),
            "--bad".into(),
            "ends/bad".into(),
            "--build".into(),
            "sh build.sh".into(),
            "--server".into(),
            server.into(),
        ];
        words.map(|word: std::ffi::OsString| word.into_string().unwrap())
    };
    for (end, revision) in [("ends/good", "HEAD~2"), ("ends/bad", "HEAD")] {
        git(&repository, &["tag", end, revision]);
    }
    let run = |words: &[String]| {
        git(&repository, &["bisect", "start", "ends/bad", "ends/good"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = git(
            &repository,
            &[&["bisect", "run"], words.as_slice()].concat(),
        );
        git(&repository, &["bisect", "reset"]);
        output
    };
    let skipped = run(&step(&experiment, "path:{build}/bin/mariadbd"));
    let said = text(&skipped);
    assert!(said.contains("only 'skip'ped commits left"), "{said}");
    assert!(
        said.contains("the build ended with exit status: 1"),
        "{said}"
    );
    // An experiment or an option that is wrong says nothing about the commit.
    for words in [
        step(
            &folder.path().join("missing.toml"),
            "path:{build}/bin/mariadbd",
        ),
        step(&experiment, "path:/usr/bin/mariadbd"),
        step(&experiment, "path:{build}/bin/mariadbd")
            .map(|word| word.replace("--good", "--goood")),
    ] {
        let failed = run(&words);
        let said = text(&failed);
        assert!(!failed.status.success(), "{said}");
        assert!(said.contains("exit code 128"), "{said}");
        assert!(!said.contains("first bad commit"), "{said}");
    }
    let status = git(&repository, &["status", "--porcelain"]);
    assert_eq!(text(&status), "", "the repository is as it was");
}
