//! Small git repositories for tests.

use std::path::Path;

use dbduel_record::bisect::Commit;

use super::repository::{git, output_of};

/// Output of git in a repository of a test.
pub(crate) fn test_git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = git(folder);
    command.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]);
    output_of(command.args(arguments)).unwrap()
}

/// Makes a repository whose commits have the file `speed` with these texts; gives them in this order.
pub(crate) fn test_repository(folder: &Path, speeds: &[&str]) -> Vec<Commit> {
    test_git(folder, &["init", "--quiet", "--initial-branch=main"]);
    for speed in speeds {
        std::fs::write(folder.join("speed"), speed).unwrap();
        test_git(folder, &["add", "speed"]);
        test_git(
            folder,
            &["commit", "--quiet", "-m", &format!("Speed {speed}")],
        );
    }
    let all = test_git(folder, &["log", "--reverse", "--format=%H"]);
    let commit = |hash: &str| Commit {
        hash: hash.to_owned(),
        subject: String::new(),
        author_date: String::new(),
    };
    all.lines().map(commit).collect()
}
