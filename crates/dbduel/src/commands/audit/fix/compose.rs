//! A new experiment for servers without one: their settings, and those that make them equal.

use std::fmt::Write as _;

use dbduel_audit::finding::RemedySetting;
use dbduel_audit::{Fix, ServerEvidence};
use dbduel_inspect::Gathered;
use dbduel_server::{Meaning, ServerName, reserved};

use super::left;

/// Text of a new experiment for servers without one.
pub(super) fn experiment(contest: &Gathered, addresses: &[Option<String>], fix: &Fix) -> String {
    let mut text = String::from(
        "# Written by `dbduel audit --fix`: the servers with settings that make them equal.\n",
    );
    for line in left(fix) {
        let _ = writeln!(text, "# {}", line.replace(char::is_control, " "));
    }
    text.push_str("question = \"Do these servers differ when their settings are equal?\"\n");
    for (contender, address) in contest.case.contenders.iter().zip(addresses) {
        compose_contender(&mut text, contender, address.as_deref(), fix);
    }
    text.push_str(
        "\n# The workload and the load are examples; put your own here.\n\
         [workload]\nname = \"oltp-read-write\"\n\n[load]\nclients = [1, 16]\n",
    );
    text
}

fn compose_contender(
    text: &mut String,
    contender: &ServerEvidence,
    address: Option<&str>,
    fix: &Fix,
) {
    let name = quoted(&contender.name);
    let _ = writeln!(text, "\n[contenders.{name}]");
    let of = |settings: &[RemedySetting]| -> Vec<RemedySetting> {
        let own = settings.iter();
        own.filter(|setting| setting.contender == contender.name)
            .cloned()
            .collect()
    };
    if let Some(address) = address {
        let _ = writeln!(text, "server = {}", quoted(address));
        let settings = of(&fix.settings);
        if !settings.is_empty() {
            text.push_str(
                "# dbduel does not configure a server that runs already. Set these there first:\n",
            );
        }
        for setting in settings {
            let _ = writeln!(text, "#   {} = {}", setting.name, setting.value);
        }
        return;
    }
    let (remark, server) = server_of(contender);
    if let Some(remark) = remark {
        let _ = writeln!(text, "# {remark}");
    }
    let _ = writeln!(
        text,
        "server = {}\n\n[contenders.{name}.settings]",
        quoted(&server)
    );
    for mut setting in of(&fix.kept) {
        // The log stays, in the sandbox.
        if setting.name == "log_bin"
            && let Some((_, file)) = setting.value.rsplit_once('/')
        {
            setting.value = file.to_owned();
        }
        let line = format!("{} = {}", setting.name, quoted(&setting.value));
        match reserved(&setting.name, &setting.value) {
            Some(why) => {
                let _ = writeln!(text, "# left out, {why}: {line}");
            }
            None => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    let settings = of(&fix.settings);
    if !settings.is_empty() {
        text.push_str("# Above what was theirs, below what makes them equal.\n");
    }
    for setting in settings {
        let _ = writeln!(text, "{} = {}", setting.name, quoted(&setting.value));
    }
}

/// Name of a known build, with a remark when its version differs or no build is known.
fn server_of(contender: &ServerEvidence) -> (Option<String>, String) {
    let (product, version) = (contender.product.word(), contender.version);
    let series = format!("{product}-{}.{}", version.major, version.minor);
    for name in [format!("{product}-{version}"), series] {
        let Ok(ServerName {
            meaning: Meaning::Provided {
                known: Some(known), ..
            },
            ..
        }) = ServerName::parse(&name)
        else {
            continue;
        };
        let remark = format!(
            "{version} itself cannot be fetched by name; this is {} of the same series. For your own: \"path:/opt/{product}\"",
            known.version
        );
        return ((!known.promises(version)).then_some(remark), name);
    }
    let remark = format!(
        "FILL IN where {product} {version} is on this machine: no such server can be fetched by name."
    );
    (Some(remark), format!("path:/FILL-IN/{product}-{version}"))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbduel_audit::Defaults;

    #[test]
    fn servers_are_named_as_they_can_be_had() {
        let server = |recorded: &str, version: &str| {
            let mut server = Defaults::of(recorded).unwrap().evidence("a").unwrap();
            server.version = dbduel_text::Version::parse(version).unwrap();
            server_of(&server)
        };
        assert_eq!(
            server("mysql-5.6.24", "5.6.24"),
            (None, "mysql-5.6.24".to_owned())
        );
        assert_eq!(
            server("mariadb-10.11.19", "10.11.19"),
            (None, "mariadb-10.11".to_owned())
        );
        let (remark, name) = server("mysql-5.6.24", "5.6.23");
        assert!(name == "mysql-5.6" && remark.unwrap().contains("5.6.24"));
        let (remark, name) = server("mysql-5.6.24", "5.1.73");
        assert!(name.starts_with("path:/FILL-IN") && remark.unwrap().contains("FILL IN"));
    }
}
