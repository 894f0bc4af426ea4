//! sysbench's own tests, which are cram files, run through `dbduel sysbench`. They are not part of this project:
//! `DBDUEL_TEST_SYSBENCH` names a checkout of sysbench 1.0.20, and without it the tests count as ignored.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dbduel_driver::address::Address;

use super::super::harness::skip_always;
use super::super::lab::home;
use super::super::on_server::server::{ALL, MARIADB, Server};

/// Which files pass, by server.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sysbench.md");
/// The title of the table's section.
const TITLE: &str = "## What sysbench's own tests say";

/// Some of the tests expect seconds to be counted in time, which a busy machine may not do.
const RETRIES: u32 = 2;

/// Stands in for the command-line client by which the tests look at tables.
const CLIENT: &str = r#"
local con = sysbench.sql.driver():connect()
local query, vertical = os.getenv("DBDUEL_TEST_QUERY"):gsub("\\G%s*$", "")
local ok, rows = pcall(con.query, con, query)
if not ok then
   io.stderr:write(("ERROR %d (%s) at line 1: %s\n"):format(con.sql_errno, con.sql_state, con.sql_errmsg))
   os.exit(1)
end
for number = 1, rows.nrows do
   if vertical > 0 then
      print(("*"):rep(27) .. (" %d. row "):format(number) .. ("*"):rep(27))
   end
   print(table.concat(rows:fetch_row(), vertical > 0 and "\n" or "\t"))
end
"#;

/// Whether each file passes on the server, as the document's table has it.
fn documented(server: &Server) -> BTreeMap<String, bool> {
    let text = fs::read_to_string(DOCUMENT).unwrap();
    let (_, section) = text.split_once(TITLE).expect(TITLE);
    let section = section.split("\n## ").next().unwrap();
    let column = if server.name() == MARIADB { 2 } else { 3 };
    let mut outcomes = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let passes = match cells[column] {
            "passes" => true,
            "differs" => false,
            other => panic!("`{other}` in {row}"),
        };
        let has_reason = !cells[4].is_empty();
        assert_eq!(has_reason, cells[2..4].contains(&"differs"), "{row}");
        outcomes.insert(cells[1].trim_matches('`').to_owned(), passes);
    }
    outcomes
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes programs of the names that the tests call, in an empty folder.
fn write_programs(folder: &Path, socket: &Path) {
    let program = env!("CARGO_BIN_EXE_dbduel");
    let home = home();
    let sysbench = format!("'{program}' --home '{}' sysbench", home.display());
    write_program(
        &folder.join("sysbench"),
        &format!("#!/bin/sh\nexec {sysbench} \"$@\"\n"),
    );
    let client = folder.join("client.lua");
    fs::write(&client, CLIENT).unwrap();
    write_program(
        &folder.join("mysql"),
        &format!(
            "#!/bin/bash\nDBDUEL_TEST_QUERY=\"${{@: -1}}\" exec {sysbench} --verbosity=0 --mysql-user=root \
             --mysql-ignore-errors=all --mysql-socket='{}' '{}'\n",
            socket.display(),
            client.display()
        ),
    );
}

/// What the tests of a checkout need to run on a server.
struct Suite {
    checkout: PathBuf,
    socket: PathBuf,
    /// Holds `sysbench` and `mysql`.
    programs: tempfile::TempDir,
    /// Holds the files of tests, beside which cram leaves what differs.
    files: tempfile::TempDir,
}

impl Suite {
    fn new(checkout: PathBuf, server: &Server) -> Self {
        let Address::Unix { path: socket } = server.unix() else {
            unreachable!("a test's server has a socket");
        };
        let programs = tempfile::tempdir().unwrap();
        write_programs(programs.path(), &socket);
        Suite {
            checkout,
            socket,
            programs,
            files: tempfile::tempdir().unwrap(),
        }
    }

    /// Copies the files that are not PostgreSQL's; their names.
    fn copy_files(&self) -> Vec<String> {
        let folder = self.checkout.join("tests/t");
        let entries = fs::read_dir(&folder);
        let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names
            .filter(|name| name.ends_with(".t") && !name.ends_with("_pgsql.t"))
            .collect();
        for name in &names {
            fs::copy(folder.join(name), self.files.path().join(name)).unwrap();
        }
        names
    }

    /// Runs files with cram; the lines by which each differs, empty for one that passes.
    fn run(&self, names: Vec<String>) -> BTreeMap<String, String> {
        let (tests, scripts) = (self.checkout.join("tests"), self.checkout.join("src/lua"));
        let include = tests.join("include");
        let lua_path = [&scripts, &include].map(|path| format!("{0}/?;{0}/?.lua;", path.display()));
        let path = std::env::var("PATH").unwrap();
        let server = format!("--mysql-user=root --mysql-socket={}", self.socket.display());
        let output = Command::new("cram")
            .arg("--shell=/bin/bash")
            .args(&names)
            .current_dir(self.files.path())
            .env("PATH", format!("{}:{path}", self.programs.path().display()))
            .env("LUA_PATH", lua_path.concat())
            .env("SBTEST_SCRIPTDIR", &scripts)
            .env("SBTEST_SUITEDIR", tests.join("t"))
            .env("SBTEST_INCDIR", &include)
            .env("SBTEST_VERSION", "1.0.20")
            .env("SBTEST_VERSION_STRING", "sysbench 1.0.20")
            .env("SBTEST_HAS_MYSQL", "yes")
            .env("SBTEST_HAS_PGSQL", "")
            .env("SBTEST_MYSQL_ARGS", server)
            .env_remove("MYSQL_PWD")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let summary = format!("# Ran {} tests, 0 skipped", names.len());
        assert!(printed.contains(&summary), "{output:?}");
        let lines_of = |name: &String| {
            let begin = format!("--- {name}\n");
            let found = printed.split_once(&begin).map_or("", |(_, rest)| rest);
            found.split("\n--- ").next().unwrap_or_default().to_owned()
        };
        let outcomes = names.into_iter().map(|name| (lines_of(&name), name));
        outcomes.map(|(lines, name)| (name, lines)).collect()
    }
}

#[test(on = ALL, lab)]
fn tests_of_sysbench_pass_where_the_document_says(server: &Server) {
    let Some(checkout) = std::env::var_os("DBDUEL_TEST_SYSBENCH").map(PathBuf::from) else {
        return skip_always("DBDUEL_TEST_SYSBENCH names no checkout of sysbench 1.0.20");
    };
    if Command::new("cram").arg("--version").output().is_err() {
        return skip_always(
            "cram is not installed, which runs sysbench's tests (pip install cram)",
        );
    }
    let documented = documented(server);
    let suite = Suite::new(checkout, server);
    let mut differences = suite.run(suite.copy_files());
    let names: Vec<&String> = differences.keys().collect();
    assert_eq!(names, documented.keys().collect::<Vec<_>>());
    let unexpected = |differences: &BTreeMap<String, String>| -> Vec<String> {
        let is_unexpected =
            |(name, lines): &(&String, &String)| documented[*name] != lines.is_empty();
        let found = differences.iter().filter(is_unexpected);
        found.map(|(name, _)| name.clone()).collect()
    };
    for _ in 0..RETRIES {
        let again = unexpected(&differences);
        if !again.is_empty() {
            differences.extend(suite.run(again));
        }
    }
    let report: Vec<String> = unexpected(&differences)
        .into_iter()
        .map(|name| match differences[&name].as_str() {
            "" => format!("{name} passes, and {DOCUMENT} says that it differs"),
            lines => format!("{name} differs, and {DOCUMENT} says that it passes:\n{lines}"),
        })
        .collect();
    assert!(report.is_empty(), "{}", report.join("\n"));
}
