//! Programs that tests run beside dbduel, and what brings them.

use std::path::{Path, PathBuf};

/// A program, its package in Debian and Ubuntu, and what needs it.
struct Program {
    name: &'static str,
    package: &'static str,
    used_for: &'static str,
}

const PROGRAMS: &[Program] = &[
    program("cc", "gcc", "clocks of single processes, power cuts"),
    program("chromium", "chromium", "reports in a browser"),
    program("curl", "curl", "servers from addresses"),
    program("docker-registry", "docker-registry", "images of containers"),
    program("mvn", "maven", "MySQL 8.0"),
    program("nats-server", "nats-server", "fleets"),
    program("nft", "nftables", "networks that are cut"),
    program("npm", "npm", "MySQL 5.6"),
    program("openssl", "openssl", "certificates"),
    program("perf", "linux-perf", "stacks of servers"),
    program("postgres", "postgresql", "PostgreSQL's protocol"),
    program("python3", "python3", "damaged archives, Parquet"),
    program("skopeo", "skopeo", "images of containers"),
    program("sysbench", "sysbench", "comparisons with sysbench"),
];

const fn program(name: &'static str, package: &'static str, used_for: &'static str) -> Program {
    Program {
        name,
        package,
        used_for,
    }
}

/// Where Debian puts PostgreSQL, not on the path: one folder for each major version below this one.
const POSTGRESQL_VERSIONS: &str = "/usr/lib/postgresql";

/// Folders in which programs are found.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Not on the path of every user.
    folders.push("/usr/sbin".into());
    let versions = std::fs::read_dir(POSTGRESQL_VERSIONS).into_iter().flatten();
    folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    folders
}

/// Lines for people: programs that are in none of the folders, and the command that installs them; none where all are there.
fn missing_in(folders: &[PathBuf]) -> Vec<String> {
    let is_there = |program: &&Program| {
        let places = folders.iter().map(|folder| folder.join(program.name));
        places.into_iter().any(|place| Path::is_file(&place))
    };
    let missing: Vec<&Program> = PROGRAMS.iter().filter(|one| !is_there(one)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let row = |one: &&Program| format!("  {:<16}{}", one.name, one.used_for);
    let mut packages: Vec<&str> = missing.iter().map(|one| one.package).collect();
    packages.dedup();
    let mut lines: Vec<String> = missing.iter().map(row).collect();
    lines.push(format!("  apt install {}", packages.join(" ")));
    lines
}

/// Prints which programs this machine lacks, once for all tests of the workspace.
pub fn print_missing() {
    let lines = missing_in(&folders());
    if !lines.is_empty() {
        println!("\nPrograms that this machine lacks; tests that need one count as ignored:");
    }
    for line in lines {
        println!("{line}");
    }
}

#[test]
fn programs_that_are_missing_are_listed_with_the_command_that_installs_them() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [folder.path().to_owned()];
    for program in PROGRAMS {
        std::fs::write(folder.path().join(program.name), "").unwrap();
    }
    assert_eq!(missing_in(&folders), Vec::<String>::new());
    for name in ["chromium", "mvn"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let lines = missing_in(&folders);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains("chromium") && lines[0].contains("browser"));
    assert_eq!(lines[2], "  apt install chromium maven");
}

#[test]
fn contributors_are_told_to_install_every_program() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CONTRIBUTING.md");
    let text = std::fs::read_to_string(file).unwrap();
    let words: Vec<&str> = text.split([' ', '\n', '`']).collect();
    for program in PROGRAMS {
        let package = program.package;
        let is_named = words
            .iter()
            .any(|word| word.trim_end_matches('.') == package);
        assert!(is_named, "{package}");
    }
}
