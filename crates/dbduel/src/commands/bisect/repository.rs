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

/// The commits from `good` to `bad`.
///
/// # Errors
/// When there is no repository or revision, or `good` is not among the first parents of `bad`.
pub(super) fn revisions(repository: &Path, good: &str, bad: &str) -> Result<Commits> {
    let path = std::fs::canonicalize(repository)
        .with_context(|| format!("there is no repository at `{}`", repository.display()))?;
    let hash_of = |revision: &str| -> Result<String> {
        ensure!(
            !revision.starts_with('-'),
            "`{revision}` is no commit; the name of one does not begin with a hyphen"
        );
        let commit = format!("{revision}^{{commit}}");
        let hash =
            output_of(git(&path).args(["rev-parse", "--verify", "--quiet", commit.as_str()]))
                .with_context(|| format!("`{revision}` is no commit of `{}`", path.display()))?;
        Ok(hash.trim().to_owned())
    };
    let (good_hash, bad_hash) = (hash_of(good)?, hash_of(bad)?);
    let log = |arguments: &[&str]| -> Result<String> {
        let format = format!("--format=%H{FIELD}%h{FIELD}%P{FIELD}%aI{FIELD}%s");
        output_of(
            git(&path)
                .args(["log", "--first-parent", "--reverse", &format])
                .args(arguments),
        )
    };
    let first = log(&["-1", good_hash.as_str()])?;
    let between = log(&[format!("{good_hash}..{bad_hash}").as_str()])?;
    let mut revisions = Vec::new();
    let mut merges = 0;
    for (number, line) in first.lines().chain(between.lines()).enumerate() {
        let fields: Vec<&str> = line.split(FIELD).collect();
        let &[hash, short, parents, author_date, subject] = fields.as_slice() else {
            bail!("`git log` printed a line of another form: `{line}`");
        };
        let parents: Vec<&str> = parents.split_whitespace().collect();
        if number == 1 {
            ensure!(
                parents.first() == Some(&good_hash.as_str()),
                "`{good}` is not among the first parents of `{bad}`: the oldest commit after their common ancestor is {short}; \
                 name a commit of the main line with --good"
            );
        }
        if number > 0 && parents.len() > 1 {
            merges += 1;
        }
        revisions.push(Revision {
            name: short.to_owned(),
            commit: Some(Commit {
                hash: hash.to_owned(),
                subject: subject.to_owned(),
                author_date: author_date.to_owned(),
            }),
        });
    }
    ensure!(
        revisions.len() >= 2,
        "there is no commit after `{good}` up to `{bad}` in `{}`",
        path.display()
    );
    Ok(Commits {
        path,
        revisions,
        merges,
    })
}
