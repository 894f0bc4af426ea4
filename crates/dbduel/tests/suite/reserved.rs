//! Settings that belong to the lab, held against what real servers take for them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::bare_server::Tree;
use super::lab::{Lab, plan_of, servers_left, short_experiment, signal};

/// With these a contender leaves its sandbox, lets others in or ends.
const RESERVED: &[&str] = &[
    "admin_address",
    "admin_port",
    "basedir",
    "bind_address",
    "bootstrap",
    "character_sets_dir",
    "chroot",
    "daemonize",
    "datadir",
    "extra_port",
    "help",
    "init_file",
    "initialize",
    "initialize_insecure",
    "language",
    "lc_messages_dir",
    "log_basename",
    "log_error",
    "mysqlx",
    "mysqlx_bind_address",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "plugin_dir",
    "port",
    "skip_grant_tables",
    "skip_networking",
    "socket",
    "tmpdir",
    "user",
    "validate_config",
    "version",
];
/// What may stand before the name of an option.
const BEFORE: &[&str] = &[
    "",
    "skip_",
    "disable_",
    "enable_",
    "loose_",
    "maximum_",
    "x.",
    "enable_skip_",
    "loose_x.",
    "skip_loose_enable_",
];
/// Names in one contender's settings, below what an experiment may have.
const NAMES_PER_CONTENDER: usize = 400;

/// The option that a server takes a name for: the one of that name, or the only one that begins with it, otherwise the
/// one that it finds behind a prefix or a dot. Names with underscores.
fn resolved(name: &str, options: &BTreeSet<String>) -> Option<String> {
    let mut rest = name;
    loop {
        if options.contains(rest) {
            return Some(rest.to_owned());
        }
        let mut longer = options.iter().filter(|option| option.starts_with(rest));
        match (longer.next(), longer.next()) {
            (Some(only), None) => return Some(only.clone()),
            (Some(_), Some(_)) => return None,
            (None, _) => {}
        }
        rest = ["skip_", "disable_", "enable_", "maximum_", "loose_"]
            .iter()
            .find_map(|prefix| rest.strip_prefix(prefix))
            .or_else(|| rest.split_once('.').map(|(_, after)| after))?;
    }
}

/// Every beginning of an option's name and every form of that which the server takes for a reserved option.
fn forms(options: &BTreeSet<String>) -> Vec<String> {
    let mut forms = Vec::new();
    for option in options {
        for length in 1..=option.len() {
            for before in BEFORE {
                let form = format!("{before}{}", &option[..length]);
                let taken = resolved(&form, options);
                if taken.is_some_and(|taken| RESERVED.contains(&taken.as_str())) {
                    forms.push(form);
                }
            }
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

/// An experiment whose contenders have these settings, and what the program says when it plans it.
fn said_of(names: &[String]) -> String {
    let mut text = String::new();
    for (number, names) in names.chunks(NAMES_PER_CONTENDER).enumerate() {
        write!(
            text,
            "[contenders.c{number}]\nserver = \"mariadb-10.11\"\n[contenders.c{number}.settings]\n"
        )
        .unwrap();
        for (number, name) in names.iter().enumerate() {
            let written = match number % 3 {
                0 => name.clone(),
                1 => name.replace('_', "-"),
                _ => name.to_uppercase(),
            };
            writeln!(text, "\"{written}\" = \"1\"").unwrap();
        }
    }
    text.push_str("[contenders.last]\nserver = \"mariadb-10.11\"\n");
    text.push_str("[workload]\nname = \"oltp-point-select\"\n");
    let lab = Lab::new(&text);
    let output = plan_of(&lab.experiment());
    String::from_utf8_lossy(&output.stderr).to_lowercase()
}

fn what_a_server_takes_for_a_reserved_setting_is_refused(server: &str) {
    let tree = Tree::open(server);
    let options = tree.options();
    assert!(options.len() > 400, "{server}: {options:?}");

    let forms = forms(&options);
    // Several for each reserved option that the server has.
    let listed = RESERVED.iter().filter(|option| options.contains(**option));
    assert!(
        forms.len() > 20 * listed.count(),
        "{server}: {}",
        forms.len()
    );
    for some in forms.chunks(NAMES_PER_CONTENDER * 10) {
        let said = said_of(some);
        for form in some {
            let is_refused = [form.clone(), form.replace('_', "-")]
                .iter()
                .any(|form| said.contains(&format!("`{form}` cannot be set")));
            assert!(is_refused, "{server}: `{form}`");
        }
    }

    let own: Vec<String> = options
        .iter()
        .filter(|option| !RESERVED.contains(&option.as_str()))
        .cloned()
        .collect();
    let said = said_of(&own);
    assert!(!said.contains("cannot be set"), "{server}: {said}");

    // The server itself is asked about the shortest form of each, and about names that it must not know.
    let abbreviates = tree.takes_abbreviations();
    for option in RESERVED.iter().filter(|option| options.contains(**option)) {
        // With these it ends before it looks at anything.
        if ["help", "version", "validate_config", "daemonize"].contains(option) {
            continue;
        }
        let shortest = (1..option.len())
            .map(|length| &option[..length])
            .find(|form| resolved(form, &options).as_deref() == Some(option));
        if let Some(shortest) = shortest {
            assert_eq!(tree.takes(shortest), abbreviates, "{server}: `{shortest}`");
        }
    }
    for (form, is_taken) in [
        ("skip_enable_skip_net", abbreviates),
        ("x.init_fil", abbreviates),
        ("enable_skip_grant_tables", true),
        ("inno", false),
        ("net_work", false),
    ] {
        assert_eq!(tree.takes(form), is_taken, "{server}: `{form}`");
    }
}

#[test(lab, needs = &["mariadb-10.11"])]
fn what_mariadb_takes_for_a_reserved_setting_is_refused() {
    what_a_server_takes_for_a_reserved_setting_is_refused("mariadb-10.11");
}

#[test(lab, needs = &["mysql-5.6.24", "mysql-8.0.33"])]
fn what_mysql_takes_for_a_reserved_setting_is_refused() {
    for server in ["mysql-5.6.24", "mysql-8.0.33"] {
        what_a_server_takes_for_a_reserved_setting_is_refused(server);
    }
}

#[test(lab, needs = &["mysql-8.0.33"])]
fn servers_of_a_contest_listen_on_no_port() {
    // It has a second protocol with a port of its own.
    let server = "mysql-8.0.33";
    let lab = Lab::new(&short_experiment([server; 2], ""));
    let mut run = lab.spawn();
    lab.wait_for_slices(&mut run, 1);
    let running = servers_left();
    assert_eq!(running.len(), 2);
    for (pid, _) in running {
        assert_eq!(listening(pid), Vec::<String>::new());
    }
    signal(&run, Signal::SIGINT);
    assert_eq!(lab.exit_code(&mut run, Duration::from_secs(120)), Some(130));
}

/// The TCP sockets on which a process listens, as the kernel lists them.
pub fn listening(pid: i32) -> Vec<String> {
    const LISTENS: &str = "0A";
    let own: BTreeSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|target| {
            let target = target.to_string_lossy().into_owned();
            Some(
                target
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .to_owned(),
            )
        })
        .collect();
    assert!(!own.is_empty(), "the server has its Unix socket");
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let is_own = words.get(9).is_some_and(|inode| own.contains(*inode));
            if is_own && words.get(3) == Some(&LISTENS) {
                found.push(line.to_owned());
            }
        }
    }
    found
}
