//! The commits between two revisions of a git repository. The repository is only read: `rev-parse`, `rev-list` and `log`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use dbduel_record::bisect::{Commit, Revision};

/// Separates the fields of a commit in the output of `git log`; no field contains it.
const FIELD: char = '\u{1f}';

/// The commits of a repository that are searched.
#[derive(Debug)]
pub(super) struct Commits {
    /// Absolute path of the repository.
    pub path: PathBuf,
    /// The good commit first, the bad one last; of merges only first parents.
    pub revisions: Vec<Revision>,
    /// Merges among them.
    pub merges: usize,
}

/// A git command on a repository that changes nothing in it, not even a refreshed index.
pub(super) fn git(repository: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(repository)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE");
    command
}

/// Standard output of a git command that ended well.
pub(super) fn output_of(command: &mut Command) -> Result<String> {
    let asked = format!("{command:?}");
    let output = command
        .output()
        .context("could not start `git`; a bisection of a repository needs it")?;
    if !output.status.success() {
        bail!(
            "{asked} failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The absolute path of a repository.
fn located(repository: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(repository)
        .with_context(|| format!("there is no repository at `{}`", repository.display()))
}

/// The hash of a revision as the user names it.
fn hash_of(path: &Path, revision: &str) -> Result<String> {
    ensure!(
        !revision.starts_with('-'),
        "`{revision}` is no commit; the name of one does not begin with a hyphen"
    );
    let commit = format!("{revision}^{{commit}}");
    let hash = output_of(git(path).args(["rev-parse", "--verify", "--quiet", commit.as_str()]))
        .with_context(|| format!("`{revision}` is no commit of `{}`", path.display()))?;
    Ok(hash.trim().to_owned())
}

/// A commit and its parents as `git log` prints them.
struct LoggedCommit {
    revision: Revision,
    parents: Vec<String>,
}

/// The commits that `git log` with these arguments prints, the oldest first; of merges only first parents.
fn log(path: &Path, arguments: &[&str]) -> Result<Vec<LoggedCommit>> {
    let format = format!("--format=%H{FIELD}%h{FIELD}%P{FIELD}%aI{FIELD}%s");
    let text = output_of(
        git(path)
            .args(["log", "--first-parent", "--reverse", &format])
            .args(arguments),
    )?;
    let commit = |line: &str| {
        let fields: Vec<&str> = line.split(FIELD).collect();
        let &[hash, short, parents, author_date, subject] = fields.as_slice() else {
            bail!("`git log` printed a line of another form: `{line}`");
        };
        Ok(LoggedCommit {
            revision: Revision {
                name: short.to_owned(),
                commit: Some(Commit {
                    hash: hash.to_owned(),
                    subject: subject.to_owned(),
                    author_date: author_date.to_owned(),
                }),
            },
            parents: parents.split_whitespace().map(str::to_owned).collect(),
        })
    };
    text.lines().map(commit).collect()
}

/// One commit of a repository, and the absolute path of that.
///
/// # Errors
/// When there is no repository or revision.
pub(super) fn revision(repository: &Path, name: &str) -> Result<(PathBuf, Revision)> {
    let path = located(repository)?;
    let hash = hash_of(&path, name)?;
    let found = log(&path, &["-1", &hash])?.into_iter().next();
    let found = found.with_context(|| format!("`git log` printed no commit for `{name}`"))?;
    Ok((path, found.revision))
}

/// Number of commits that are reachable from `bad` and not from `good`.
///
/// # Errors
/// When there is no such revision.
pub(super) fn count_between(repository: &Path, good: &str, bad: &str) -> Result<u32> {
    let range = format!(
        "{}..{}",
        hash_of(repository, good)?,
        hash_of(repository, bad)?
    );
    let count = output_of(git(repository).args(["rev-list", "--count", &range]))?;
    count
        .trim()
        .parse()
        .with_context(|| format!("`git rev-list --count` printed `{}`", count.trim()))
}

/// The commits from `good` to `bad`.
///
/// # Errors
/// When there is no repository or revision, or `good` is not among the first parents of `bad`.
pub(super) fn revisions(repository: &Path, good: &str, bad: &str) -> Result<Commits> {
    let (path, first) = revision(repository, good)?;
    let good_hash = hash_of(&path, good)?;
    let between = log(&path, &[&format!("{good_hash}..{}", hash_of(&path, bad)?)])?;
    ensure!(
        !between.is_empty(),
        "there is no commit after `{good}` up to `{bad}` in `{}`",
        path.display()
    );
    ensure!(
        between[0].parents.first() == Some(&good_hash),
        "`{good}` is not among the first parents of `{bad}`: the oldest commit after their common ancestor is {}; \
         name a commit of the main line with --good",
        between[0].revision.name
    );
    let merges = between.iter().filter(|one| one.parents.len() > 1).count();
    let between = between.into_iter().map(|one| one.revision);
    Ok(Commits {
        path,
        revisions: [first].into_iter().chain(between).collect(),
        merges,
    })
}

#[cfg(test)]
mod tests {
    use dbduel_test_attribute::needs_program;

    use super::super::test_repository::{test_git, test_repository};
    use super::*;

    #[test]
    #[needs_program("git")]
    fn the_commits_between_two_are_listed_by_first_parents() {
        let folder = tempfile::tempdir().unwrap();
        let commits = test_repository(folder.path(), &["1", "2", "3", "4"]);
        let listed = revisions(folder.path(), &commits[1].hash, "HEAD");
        let listed = listed.unwrap();
        let hashes = listed.revisions.iter().flat_map(|one| &one.commit);
        let found: Vec<(&str, &str)> = hashes
            .map(|one| (one.hash.as_str(), one.subject.as_str()))
            .collect();
        let expected = commits[1..].iter().zip(["Speed 2", "Speed 3", "Speed 4"]);
        let expected: Vec<(&str, &str)> = expected
            .map(|(commit, subject)| (commit.hash.as_str(), subject))
            .collect();
        assert_eq!((found, listed.merges), (expected, 0));
        for (good, bad, part) in [
            ("nothing", "HEAD", "`nothing` is no commit"),
            ("HEAD", "HEAD", "there is no commit after"),
            ("HEAD", &commits[0].hash, "there is no commit after"),
        ] {
            let refused = revisions(folder.path(), good, bad);
            let refused = format!("{:#}", refused.unwrap_err());
            assert!(refused.contains(part), "{refused}");
        }
    }
    #[test]
    #[needs_program("git")]
    fn a_merge_stands_for_what_it_merged_and_a_commit_beside_the_main_line_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let commits = test_repository(path, &["1", "2"]);
        test_git(path, &["checkout", "--quiet", "-b", "side", "HEAD~1"]);
        std::fs::write(path.join("other"), "x").unwrap();
        test_git(path, &["add", "other"]);
        test_git(path, &["commit", "--quiet", "-m", "Beside"]);
        test_git(path, &["checkout", "--quiet", "main"]);
        test_git(
            path,
            &["merge", "--quiet", "--no-ff", "-m", "Merge side", "side"],
        );
        let found = revisions(path, &commits[0].hash, "main").unwrap();
        let subjects = found.revisions.iter().flat_map(|one| &one.commit);
        let subjects: Vec<&str> = subjects.map(|one| one.subject.as_str()).collect();
        assert_eq!(subjects, ["Speed 1", "Speed 2", "Merge side"]);
        assert_eq!(found.merges, 1);
        let refused = revisions(path, "side", "main").unwrap_err().to_string();
        assert!(
            refused.contains("`side` is not among the first parents of `main`"),
            "{refused}"
        );
        // Of all parents.
        assert_eq!(count_between(path, &commits[0].hash, "main").unwrap(), 3);
        let (_, head) = revision(path, "HEAD").unwrap();
        assert_eq!(Some(&head), found.revisions.last());
    }
}
