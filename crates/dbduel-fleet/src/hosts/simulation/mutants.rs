//! Defects of the protocol, the links and the agents that the simulations must find.
//!
//! A mutant replaces one text of the sources. The test of the gate checks that each text is there; the ignored one
//! builds and simulates each mutant in a copy of the workspace:
//! `cargo test -p dbduel-fleet --lib mutants:: -- --ignored --nocapture`.

/// How the message of a simulation begins that finds a property broken.
const BREACH: &str = "; the first: seed ";
/// Contests of each kind that a mutant is simulated in.
const SEEDS: u64 = 200;

/// A defect.
struct Mutant {
    /// What is wrong.
    defect: &'static str,
    /// Its file, below `crates`.
    file: &'static str,
    /// Text of the sources, which occurs once.
    text: &'static str,
    /// Text in its place.
    replacement: &'static str,
}

const PROTOCOL: &str = "dbduel-nats/src/link/protocol.rs";
const ATTACH: &str = "dbduel-fleet/src/hosts/attach.rs";
const DESK: &str = "dbduel-fleet/src/hosts/desk.rs";
const SLICE: &str = "dbduel-fleet/src/hosts/load/slice.rs";
const SERVER_LINK: &str = "dbduel-fleet/src/hosts/servers/link.rs";
const SERVER_HOSTS: &str = "dbduel-lab/src/server_host/mod.rs";
const REMOTE_SERVER: &str = "dbduel-lab/src/server_host/remote_server.rs";

const MUTANTS: &[Mutant] = &[
    Mutant {
        defect: "repeated frames are accepted",
        file: PROTOCOL,
        text: "frame.number != self.expected {",
        replacement: "frame.number > self.expected {",
    },
    Mutant {
        defect: "frames after a lost one are accepted",
        file: PROTOCOL,
        text: "frame.number != self.expected {",
        replacement: "frame.number < self.expected {",
    },
    Mutant {
        defect: "a frame is acknowledged before it is received",
        file: PROTOCOL,
        text: "let acknowledged = self.expected - 1;",
        replacement: "let acknowledged = self.expected;",
    },
    Mutant {
        defect: "nothing is sent again",
        file: PROTOCOL,
        text: ">= Self::RESEND_AFTER;",
        replacement: ">= Duration::MAX;",
    },
    Mutant {
        defect: "a session after a break has the identity of the one before",
        file: ATTACH,
        text: "let session = secret(8).map_err(|error| failed(error.to_string()))?;",
        replacement: "let session = format!(\"{}-{name}\", asker.orchestrator);",
    },
    Mutant {
        defect: "a contest gives up a host after 8 s",
        file: ATTACH,
        text: "if silent > SILENCE_MAX {",
        replacement: "if silent > SILENCE_MAX / 5 {",
    },
    Mutant {
        defect: "a contest waits for a silent host for ever",
        file: ATTACH,
        text: "if silent > SILENCE_MAX {",
        replacement: "if silent > Duration::MAX {",
    },
    Mutant {
        defect: "an agent gives up a contest after 8 s",
        file: DESK,
        text: "work.silent_for() > SILENCE_MAX",
        replacement: "work.silent_for() > SILENCE_MAX / 5",
    },
    Mutant {
        defect: "an agent keeps the work of a contest that is gone",
        file: DESK,
        text: "work.silent_for() > SILENCE_MAX",
        replacement: "work.silent_for() > Duration::MAX",
    },
    Mutant {
        defect: "a host is not released when its work has ended",
        file: DESK,
        text: "work.has_ended() || work.is_broken()",
        replacement: "work.is_broken()",
    },
    Mutant {
        defect: "a host is taken from the contest that has it",
        file: DESK,
        text: "current.orchestrator != request.orchestrator",
        replacement: "current.contest.is_empty()",
    },
    Mutant {
        defect: "a slice of which one host began late counts",
        file: SLICE,
        text: "let what = if late > LATE_MAX {",
        replacement: "let what = if late > Duration::MAX {",
    },
    Mutant {
        defect: "a slice in which a load host was out of reach counts",
        file: SLICE,
        text: "} else if silent > OUT_OF_REACH_MAX {",
        replacement: "} else if silent > Duration::MAX {",
    },
    Mutant {
        defect: "a slice has the transactions of one host",
        file: SLICE,
        text: "sum.add_host(answer).map_err(Stop::Unreachable)?;",
        replacement: "drop(answer);",
    },
    Mutant {
        defect: "a contest does not release its server hosts",
        file: SERVER_LINK,
        text: "self.host.link.send(BYE.to_vec());",
        replacement: "",
    },
    Mutant {
        defect: "a contest is not told that a server host was out of reach",
        file: SERVER_LINK,
        text: "self.host.longest_silence > OUT_OF_REACH_MAX",
        replacement: "self.host.longest_silence > Duration::MAX",
    },
    Mutant {
        defect: "a turn in which a server host was out of reach counts",
        file: SERVER_HOSTS,
        text: "self.silences += 1;",
        replacement: "",
    },
    Mutant {
        defect: "servers of an earlier session are taken for running",
        file: SERVER_HOSTS,
        text: "self.session += 1;",
        replacement: "",
    },
    Mutant {
        defect: "a server that is started again loses its data",
        file: REMOTE_SERVER,
        text: "self.start(true)?",
        replacement: "self.start(false)?",
    },
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};

    use super::*;

    fn workspace() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn the_texts_that_mutants_replace_are_in_the_sources() {
        for mutant in MUTANTS {
            let path = workspace().join("crates").join(mutant.file);
            let source = fs::read_to_string(path).unwrap();
            let times = source.matches(mutant.text).count();
            assert_eq!(times, 1, "`{}` in {}", mutant.text, mutant.file);
        }
    }

    /// Copies a folder. Unchanged files keep their times, so that they are not built again.
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            match from.is_dir() {
                true => copy(&from, &to),
                false => copy_file(&from, &to),
            }
        }
    }

    fn copy_file(from: &Path, to: &Path) {
        let source = fs::read(from).unwrap();
        if fs::read(to).ok().as_ref() != Some(&source) {
            fs::write(to, source).unwrap();
        }
    }

    /// Tests the simulations of a copy of the workspace.
    fn test(tree: &Path, options: &[&str]) -> Output {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["test", "--locked", "-p", "dbduel-fleet", "--lib"])
            .args(options)
            .args(["simulation::", "--", "--skip", "mutants::"])
            .env("CARGO_TARGET_DIR", tree.with_extension("target"))
            .env("DBDUEL_SIMULATE", SEEDS.to_string())
            .env_remove("DBDUEL_SIMULATE_FROM")
            .current_dir(tree);
        command.output().unwrap()
    }

    #[test]
    #[ignore = "builds the crates of hosts once per mutant"]
    fn the_simulations_find_every_mutant() {
        let tree = workspace().join("target/mutants");
        copy(&workspace().join("crates"), &tree.join("crates"));
        for name in ["Cargo.toml", "Cargo.lock"] {
            copy_file(&workspace().join(name), &tree.join(name));
        }
        let sound = test(&tree, &[]);
        assert!(
            sound.status.success(),
            "{}",
            String::from_utf8_lossy(&sound.stdout)
        );
        let mut missed = Vec::new();
        for mutant in MUTANTS {
            let path = tree.join("crates").join(mutant.file);
            let source = fs::read_to_string(&path).unwrap();
            fs::write(&path, source.replace(mutant.text, mutant.replacement)).unwrap();
            let built = test(&tree, &["--no-run"]);
            let tested = test(&tree, &[]);
            fs::write(&path, source).unwrap();
            let said = String::from_utf8_lossy(&built.stderr);
            assert!(built.status.success(), "{}: {said}", mutant.defect);
            let said = String::from_utf8_lossy(&tested.stdout).into_owned();
            let mut lines = said.lines();
            match lines.find(|line| line.contains(BREACH)) {
                Some(breach) => println!("{}: {breach}", mutant.defect),
                None => missed.push(mutant.defect),
            }
        }
        assert_eq!(missed, [""; 0], "defects that no simulation finds");
    }
}
