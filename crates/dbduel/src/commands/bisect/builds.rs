//! Builds of commits, kept in the home by commit and command.
//!
//! ```text
//! HOME/builds/KEY/out/       what the command put into $DBDUEL_BUILD
//! HOME/builds/KEY/complete   written at the end; locked while the build is in use
//! HOME/builds/KEY/source/    the clone, only while it is built
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result};
use dbduel_experiment::quantity::size;
use dbduel_machine::interrupt::{self, Interrupted, Urgency};
use dbduel_record::bisect::{Commit, Repository};
use dbduel_server::{Home, create_folder, tree_size};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::repository::{git, output_of};
use crate::commands::positive_duration;
use crate::console;

/// Stands for the directory of a build in the name of its server.
pub(super) const PLACEHOLDER: &str = "{build}";
/// Variable of the build command with the directory for its output.
const OUTPUT_VARIABLE: &str = "DBDUEL_BUILD";
/// How often a running build is looked at.
const POLL: Duration = Duration::from_millis(50);
/// Time that a build gets to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Characters of a key.
const KEY_CHARACTERS: usize = 32;

/// Limits of builds.
#[derive(Debug, clap::Args)]
pub struct BuildLimits {
    /// Time limit of a build.
    #[arg(long, value_name = "TIME", default_value = "2 h", value_parser = positive_duration)]
    pub build_limit: Duration,
    /// Size of all kept builds; the oldest are removed.
    #[arg(long, value_name = "SIZE", default_value = "20 GiB", value_parser = size)]
    pub cache_size: u64,
}

/// A commit cannot be built.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the build {how}; its output is in `{}`", .log.display())]
pub(super) struct BuildFailed {
    how: String,
    log: PathBuf,
}

/// The builds of a process that failed, by the hashes of their commits. They are not kept longer: a cause outside of the
/// repository, such as a missing library, may be gone when the bisection is resumed.
pub(super) type FailedBuilds = Mutex<BTreeMap<String, BuildFailed>>;

/// The builds of one repository by one command.
#[derive(Debug)]
pub(super) struct Builds<'b> {
    folder: PathBuf,
    repository: &'b Repository,
    failed: &'b FailedBuilds,
}

/// A build that is in use until it is dropped.
#[derive(Debug)]
pub(super) struct Build {
    /// Name of its server.
    pub server: String,
    /// Holds the shared lock that keeps it from being removed.
    _in_use: File,
}

impl<'b> Builds<'b> {
    /// The builds in a home.
    pub(super) fn open(
        home: &Home,
        repository: &'b Repository,
        failed: &'b FailedBuilds,
    ) -> Result<Self> {
        let folder = home.root().join("builds");
        create_folder(&folder)
            .with_context(|| format!("could not create `{}`", folder.display()))?;
        // Servers are found by absolute paths.
        let folder = fs::canonicalize(&folder)
            .with_context(|| format!("could not resolve `{}`", folder.display()))?;
        Ok(Self {
            folder,
            repository,
            failed,
        })
    }

    /// The build of a commit, from the store or made now; its output is kept in `logs`. One that failed is not made again.
    ///
    /// # Errors
    /// [`BuildFailed`]; when the store or the clone cannot be written.
    pub(super) fn build(&self, commit: &Commit, logs: &Path) -> Result<Build> {
        let place = self.folder.join(self.key(commit));
        // One build at a time in a home: each takes all processors.
        let guard = self.folder.join("lock");
        let guard = File::create(&guard)
            .with_context(|| format!("could not create `{}`", guard.display()))?;
        guard
            .lock()
            .context("could not wait for another build in this home")?;
        let complete = place.join("complete");
        if !complete.is_file() {
            self.make_once(commit, &place, logs)?;
        }
        let in_use = File::options()
            .append(true)
            .open(&complete)
            .with_context(|| format!("could not open `{}`", complete.display()))?;
        in_use
            .lock_shared()
            .with_context(|| format!("could not lock `{}`", complete.display()))?;
        // The time of its last use; without it an older build is removed first.
        let _ = in_use.set_modified(SystemTime::now());
        self.prune()?;
        Ok(Build {
            server: self.server(commit),
            _in_use: in_use,
        })
    }

    /// Conducts a contest, and builds these commits one after the other meanwhile; after the contest it begins none. A failure is
    /// reported by [`Builds::build`] when its commit is needed.
    pub(super) fn ahead<T>(
        &self,
        commits: &[&Commit],
        logs: &Path,
        contest: impl FnOnce() -> T,
    ) -> T {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for commit in commits {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let _ = self.build(commit, logs);
                }
            });
            let ended = contest();
            is_over.store(true, Ordering::Relaxed);
            ended
        })
    }

    /// Name of the server of a commit's build.
    pub(super) fn server(&self, commit: &Commit) -> String {
        let output = self.folder.join(self.key(commit)).join("out");
        let output = output.display().to_string();
        self.repository.server.replace(PLACEHOLDER, &output)
    }

    /// The name of a build: by its commit, its command and its repository.
    fn key(&self, commit: &Commit) -> String {
        let parts = [&commit.hash, &self.repository.build, &self.repository.path];
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let hash = hasher.finalize().to_hex();
        hash.chars().take(KEY_CHARACTERS).collect()
    }

    /// Builds a commit unless that has failed before.
    fn make_once(&self, commit: &Commit, place: &Path, logs: &Path) -> Result<()> {
        let failed = || self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = failed().get(&commit.hash) {
            return Err(why.clone().into());
        }
        let made = self.make(commit, place, logs);
        let why = made.as_ref().err().and_then(|error| error.downcast_ref());
        if let Some(why) = why {
            failed().insert(commit.hash.clone(), BuildFailed::clone(why));
        }
        made
    }

    /// Builds a commit in a clone of its own.
    fn make(&self, commit: &Commit, place: &Path, logs: &Path) -> Result<()> {
        // Left by a killed process.
        if place.exists() {
            remove(place)?;
        }
        let [source, output] = ["source", "out"].map(|name| place.join(name));
        for folder in [&output, &logs.to_owned()] {
            fs::create_dir_all(folder)
                .with_context(|| format!("could not create `{}`", folder.display()))?;
        }
        console::status_line(&format!("building {}", commit.hash));
        // Objects are shared; the clone has its own index, work tree and refs.
        output_of(
            Command::new("git")
                .env("GIT_OPTIONAL_LOCKS", "0")
                .args([
                    "clone",
                    "--quiet",
                    "--shared",
                    "--no-checkout",
                    "--no-tags",
                    "--",
                ])
                .arg(&self.repository.path)
                .arg(&source),
        )?;
        output_of(git(&source).args(["checkout", "--quiet", "--detach", &commit.hash]))?;
        let log = logs.join(format!("{}.log", commit.hash));
        let built = self.run(&source, &output, &log);
        if built.is_err() {
            // Nothing uses what it left. Where that cannot be removed, why the build failed is still what to report.
            let _ = remove(place);
        }
        built?;
        remove(&source)?;
        let complete = place.join("complete");
        fs::write(&complete, &commit.hash)
            .with_context(|| format!("could not write `{}`", complete.display()))
    }

    /// Runs the command in a process group that ends with it, when the user stops dbduel, and when dbduel is killed.
    fn run(&self, source: &Path, output: &Path, log: &Path) -> Result<()> {
        let written =
            File::create(log).with_context(|| format!("could not create `{}`", log.display()))?;
        let mut child = Command::new("sh")
            .args(["-c", &self.repository.build])
            .current_dir(source)
            .env(OUTPUT_VARIABLE, output)
            .stdin(Stdio::null())
            .stdout(written.try_clone()?)
            .stderr(written)
            .process_group(0)
            .spawn()
            .context("could not start `sh`, which runs the build command")?;
        let group = Pid::from_raw(i32::try_from(child.id())?);
        let reaper = GroupReaper::start(group);
        let waited = self.wait(&mut child, log);
        // Whatever the command started and left.
        end_group(&mut child, group);
        reaper?.dismiss();
        waited
    }

    fn wait(&self, child: &mut Child, log: &Path) -> Result<()> {
        let failed = |how: String| BuildFailed {
            how,
            log: log.to_owned(),
        };
        let limit = Duration::from_secs_f64(self.repository.build_limit_s);
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().context("could not wait for the build")? {
                return match status.success() {
                    true => Ok(()),
                    false => Err(failed(format!("ended with {status}")).into()),
                };
            }
            if interrupt::urgency() > Urgency::None {
                return Err(Interrupted.into());
            }
            if begun.elapsed() > limit {
                let seconds = limit.as_secs_f64();
                let limit = dbduel_report::words::duration(seconds);
                return Err(failed(format!("took longer than {limit}")).into());
            }
            std::thread::sleep(POLL);
        }
    }

    /// Removes what killed processes left of builds, and the builds that were not used for the longest time, until the rest fits
    /// into the quota; none that is in use. The lock of all builds must be held.
    fn prune(&self) -> Result<()> {
        let mut builds = Vec::new();
        let listed = || format!("could not list `{}`", self.folder.display());
        for entry in fs::read_dir(&self.folder).with_context(listed)? {
            let place = entry.with_context(listed)?.path();
            if !place.is_dir() {
                continue;
            }
            let complete = match place.join("complete").metadata() {
                Ok(complete) => complete,
                Err(error) => {
                    // What cannot be removed now is tried again by the next build; no build needs its space at once.
                    if error.kind() == ErrorKind::NotFound {
                        let _ = remove(&place);
                    }
                    continue;
                }
            };
            let used = complete.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let size = tree_size(&place)?.allocated_bytes;
            builds.push((used, size, place));
        }
        builds.sort();
        let mut sum: u64 = builds.iter().map(|(_, size, _)| size).sum();
        for (_, size, place) in builds {
            if sum <= self.repository.cache_bytes_max {
                break;
            }
            let complete = File::options().append(true).open(place.join("complete"))?;
            match complete.try_lock() {
                Ok(()) => {
                    // First what says that the rest is there.
                    fs::remove_file(place.join("complete"))
                        .with_context(|| format!("could not remove `{}`", place.display()))?;
                    remove(&place)?;
                    sum -= size;
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("could not remove `{}`", folder.display()))
}

/// Ends a process group: first on request, then by force.
fn end_group(child: &mut Child, group: Pid) {
    // An error is that of a group without processes.
    if killpg(group, Signal::SIGTERM).is_err() {
        return;
    }
    let deadline = Instant::now() + END_TIMEOUT;
    while Instant::now() < deadline {
        let _ = child.try_wait();
        if killpg(group, None::<Signal>).is_err() {
            return;
        }
        std::thread::sleep(POLL);
    }
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
}

/// A shell that ends a process group when this process is killed: its input then ends without a line.
struct GroupReaper(Child);

impl GroupReaper {
    fn start(group: Pid) -> Result<Self> {
        let script = format!("read line || kill -KILL -{group}");
        let shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        Ok(Self(shell.context("could not start `sh`")?))
    }

    fn dismiss(mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            let _ = input.write_all(b"ended\n");
        }
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use dbduel_test_attribute::needs_program;

    use super::super::test_repository::test_repository;
    use super::*;

    fn source(path: &Path, build: &str, limit_s: f64, cache_bytes_max: u64) -> Repository {
        Repository {
            path: path.display().to_string(),
            build: build.to_owned(),
            server: "path:{build}/server".to_owned(),
            build_limit_s: limit_s,
            cache_bytes_max,
            builds_ahead: false,
            merges: 0,
        }
    }

    /// Every file below a folder with its content and time of change.
    fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => found.extend(files(&path)),
                false => {
                    let modified = path.metadata().unwrap().modified().unwrap();
                    found.push((path.clone(), fs::read(&path).unwrap(), modified));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    #[needs_program("git")]
    fn a_build_is_made_once_and_the_repository_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [repo, home, logs] = ["repo", "home", "logs"].map(|name| folder.path().join(name));
        fs::create_dir(&repo).unwrap();
        let commits = test_repository(&repo, &["1", "2"]);
        // A change that is not committed must neither be lost nor built.
        fs::write(repo.join("speed"), "own").unwrap();
        let before = files(&repo);
        let home = Home::new(&home);
        let repository = source(
            &repo,
            "echo built; cp speed \"$DBDUEL_BUILD/server\"; echo x >> junk",
            60.0,
            1 << 30,
        );
        let failed = FailedBuilds::default();
        let builds = Builds::open(&home, &repository, &failed).unwrap();
        for (commit, speed) in commits.iter().zip(["1", "2"]) {
            let build = builds.build(commit, &logs).unwrap();
            let path = build.server.strip_prefix("path:").unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), speed);
            let log = logs.join(format!("{}.log", commit.hash));
            assert_eq!(fs::read_to_string(&log).unwrap(), "built\n");
            fs::remove_file(&log).unwrap();
            builds.build(commit, &logs).unwrap();
            assert!(!log.exists(), "it was built twice");
        }
        assert_eq!(files(&repo), before);
    }

    #[test]
    #[needs_program("git")]
    fn a_build_that_fails_or_takes_too_long_is_said_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let [repo, home, logs] = ["repo", "home", "logs"].map(|name| folder.path().join(name));
        fs::create_dir(&repo).unwrap();
        let commits = test_repository(&repo, &["1"]);
        let home = Home::new(&home);
        for (command, limit_s, part) in [
            ("echo no rule >&2; exit 2", 60.0, "exit status: 2"),
            ("sleep 600 & sleep 600", 0.0, "took longer than"),
        ] {
            let repository = source(&repo, command, limit_s, 1 << 30);
            let failed = FailedBuilds::default();
            let builds = Builds::open(&home, &repository, &failed).unwrap();
            let error = builds.build(&commits[0], &logs).unwrap_err();
            let failed = error.downcast::<BuildFailed>().unwrap().to_string();
            assert!(failed.contains(part) && failed.contains(".log"), "{failed}");
            let left = builds.folder.join(builds.key(&commits[0]));
            assert!(!left.exists(), "{}", left.display());
        }
    }

    #[test]
    #[needs_program("git")]
    fn the_oldest_builds_are_removed_beyond_the_quota_but_none_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let [repo, home, logs] = ["repo", "home", "logs"].map(|name| folder.path().join(name));
        fs::create_dir(&repo).unwrap();
        let commits = test_repository(&repo, &["1", "2", "3"]);
        let home = Home::new(&home);
        let repository = source(&repo, "cp speed \"$DBDUEL_BUILD/server\"", 60.0, 1);
        let failed = FailedBuilds::default();
        let builds = Builds::open(&home, &repository, &failed).unwrap();
        let unfinished = builds.folder.join("of-a-killed-process");
        fs::create_dir_all(unfinished.join("out")).unwrap();
        let first = builds.build(&commits[0], &logs).unwrap();
        assert!(!unfinished.exists());
        drop(builds.build(&commits[1], &logs).unwrap());
        let third = builds.build(&commits[2], &logs).unwrap();
        let is_kept = |number: usize| builds.folder.join(builds.key(&commits[number])).exists();
        assert_eq!([0, 1, 2].map(is_kept), [true, false, true]);
        drop((first, third));
    }

    #[test]
    #[needs_program("git")]
    fn commits_are_built_while_a_contest_runs_and_their_failures_do_not_end_it() {
        let folder = tempfile::tempdir().unwrap();
        let [repo, home, logs] = ["repo", "home", "logs"].map(|name| folder.path().join(name));
        fs::create_dir(&repo).unwrap();
        let commits = test_repository(&repo, &["1", "2", "3"]);
        let home = Home::new(&home);
        let command = "test \"$(cat speed)\" != 1 && cp speed \"$DBDUEL_BUILD/server\"";
        let repository = source(&repo, command, 60.0, 1 << 30);
        let failed = FailedBuilds::default();
        let builds = Builds::open(&home, &repository, &failed).unwrap();
        let is_built = |number: usize| {
            let place = builds.folder.join(builds.key(&commits[number]));
            place.join("complete").is_file()
        };
        let begun = Instant::now();
        let answer = builds.ahead(&[&commits[0], &commits[1]], &logs, || {
            while !is_built(1) {
                assert!(
                    begun.elapsed() < Duration::from_secs(120),
                    "it is not built"
                );
                std::thread::sleep(POLL);
            }
            7
        });
        assert_eq!(answer, 7);
        assert_eq!([0, 1, 2].map(is_built), [false, true, false]);
        let log = logs.join(format!("{}.log", commits[0].hash));
        fs::remove_file(&log).unwrap();
        let error = builds.build(&commits[0], &logs).unwrap_err();
        assert!(error.is::<BuildFailed>(), "{error:#}");
        assert!(!log.exists(), "it was built twice");
    }
}
