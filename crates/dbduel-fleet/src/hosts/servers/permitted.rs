//! Orders that a server host accepts from an orchestrator: servers of the catalogue, installed ones and, if its agent
//! shares, those that are sent to it.
//!
//! Every plan is checked, even if the orchestrator checked it: no program, path or statement of the author's choice.

use dbduel_experiment::{CLIENTS_MAX, STOP_PERIOD_S, STOPPED_SHARE, check_stalls};
use dbduel_lab::server_host::orders::{ServerOrder, ServerTask};
use dbduel_record::Plan;
use dbduel_record::plan::{Contender, Injection};
use dbduel_server::{Meaning, ServerName};

use crate::permitted::{check_plan_of, check_plan_workloads};

/// Refuses an order that an agent does not pass on, and a line that is not an order. `shares`: whether it accepts
/// servers from others.
///
/// # Errors
/// The reason.
pub fn check(line: &[u8], shares: bool) -> Result<(), String> {
    let order: ServerOrder =
        serde_json::from_slice(line).map_err(|error| format!("not an order: {error}"))?;
    match &order.what {
        ServerTask::Prepare { plan, sent, .. } => {
            if sent.is_some() && !shares {
                return Err(
                    "it accepts no servers from others; start its agent with `--share`, or name a \
                     server of `dbduel servers list`"
                        .to_owned(),
                );
            }
            check_plan(plan, order.contender, sent.is_some())
        }
        ServerTask::ResumeInjection { injection } => check_injection(injection),
        ServerTask::Start { .. }
        | ServerTask::KeepData { .. }
        | ServerTask::Restart
        | ServerTask::Freeze
        | ServerTask::Thaw
        | ServerTask::Health
        | ServerTask::Watch
        | ServerTask::Measure { .. }
        | ServerTask::EndWatch
        | ServerTask::PauseInjection
        | ServerTask::Sizes
        | ServerTask::Files
        | ServerTask::Stop
        | ServerTask::Remove => Ok(()),
    }
}

fn check_plan(plan: &Plan, contender: usize, is_taken: bool) -> Result<(), String> {
    plan.check()?;
    let Some(contender) = plan.contenders.get(contender) else {
        return Err(format!("the plan has no contender {contender}"));
    };
    check_server(contender, is_taken)?;
    check_plan_of(contender)?;
    let mut levels = plan.levels.iter();
    if levels.any(|level| !(1..=CLIENTS_MAX).contains(&i64::from(level.clients))) {
        return Err(format!("a load level has 1 to {CLIENTS_MAX} clients"));
    }
    check_plan_workloads(plan)
}

fn check_injection(injection: &Injection) -> Result<(), String> {
    let Injection {
        stopped_share,
        period_s,
        stalls,
        ..
    } = injection;
    if let Some(stalls) = stalls {
        return check_stalls(stalls);
    }
    match STOPPED_SHARE.contains(stopped_share) && STOP_PERIOD_S.contains(period_s) {
        true => Ok(()),
        false => Err(format!(
            "a server is stopped for a share from {} to less than {} of a period from {} s to {} s",
            STOPPED_SHARE.start,
            STOPPED_SHARE.end,
            STOP_PERIOD_S.start(),
            STOP_PERIOD_S.end()
        )),
    }
}

/// Refuses a server, unless it is taken from the orchestrator.
fn check_server(contender: &Contender, is_taken: bool) -> Result<(), String> {
    let name = ServerName::parse(&contender.server).map_err(|error| error.to_string())?;
    match name.meaning {
        Meaning::InProcess => Err("server hosts run servers, and SQLite has none".to_owned()),
        Meaning::Provided { .. } if is_taken => Ok(()),
        Meaning::Provided { .. } | Meaning::Running(_) => {
            name.objection_of_agents().map_or(Ok(()), Err)
        }
    }
}

#[cfg(test)]
mod tests {
    use dbduel_record::plan::InjectedStalls;

    use super::*;
    use dbduel_testkit::synthetic::Scenario;

    /// The answer to an order to prepare the second contender of a plan.
    fn answer(change: impl FnOnce(&mut Plan)) -> Result<(), String> {
        answer_of(None, true, change)
    }

    /// As [`answer`], for a server that was sent or not, of an agent that shares or not.
    fn answer_of(
        sent: Option<&str>,
        shares: bool,
        change: impl FnOnce(&mut Plan),
    ) -> Result<(), String> {
        let mut plan = Scenario::duel().plan();
        change(&mut plan);
        let order = ServerOrder {
            contender: 1,
            what: ServerTask::Prepare {
                run: "run-1".to_owned(),
                plan: Box::new(plan),
                sent: sent.map(str::to_owned),
            },
        };
        check(&serde_json::to_vec(&order).unwrap(), shares)
    }

    /// The answer to an order to give a server a handicap.
    fn inject(injection: Injection) -> Result<(), String> {
        let order = ServerOrder {
            contender: 0,
            what: ServerTask::ResumeInjection { injection },
        };
        check(&serde_json::to_vec(&order).unwrap(), true)
    }

    /// The answer to an order to stop a server for a share of each period.
    fn slow_down(stopped_share: f64, period_s: f64) -> Result<(), String> {
        inject(Injection {
            contender: 0,
            stopped_share,
            period_s,
            stalls: None,
        })
    }

    /// The answer to an order to stall a server.
    fn stall(stall_s: f64, every_s: [f64; 2]) -> Result<(), String> {
        inject(Injection::of_stalls(0, InjectedStalls { stall_s, every_s }))
    }

    #[track_caller]
    fn refused(part: &str, change: impl FnOnce(&mut Plan)) {
        let why = answer(change).unwrap_err();
        assert!(why.contains(part), "{why}");
    }

    #[test]
    fn servers_of_the_catalogue_and_their_settings_are_permitted() {
        answer(|_| {}).unwrap();
        check(br#"{"contender":0,"what":{"task":"freeze"}}"#, false).unwrap();
        slow_down(0.5, 0.1).unwrap();
        stall(1.0, [4.0, 4.0]).unwrap();
        stall(10.0, [2.0, 600.0]).unwrap();
    }

    #[test]
    fn servers_of_others_are_taken_by_agents_that_share() {
        let own_build = |plan: &mut Plan| {
            plan.contenders[1].server = "path:/opt/mysql".to_owned();
        };
        answer_of(Some("0f"), true, own_build).unwrap();
        assert!(answer_of(None, true, own_build).is_err());
        for plan in [own_build, |_: &mut Plan| {}] {
            let why = answer_of(Some("0f"), false, plan).unwrap_err();
            assert!(why.contains("start its agent with `--share`"), "{why}");
        }
        let running = |plan: &mut Plan| plan.contenders[1].server = "tcp://db1".to_owned();
        assert!(answer_of(Some("0f"), true, running).is_err());
    }

    #[test]
    fn programs_paths_statements_and_numbers_out_of_bounds_are_not() {
        refused("agents run servers", |plan| {
            plan.contenders[1].server = "path:/opt/mysql".to_owned();
        });
        refused("SQLite has none", |plan| {
            plan.contenders[1].server = "sqlite".to_owned();
        });
        let set = |name: &'static str, value: &'static str| {
            move |plan: &mut Plan| {
                plan.contenders[1].settings = vec![dbduel_record::plan::Setting {
                    name: name.to_owned(),
                    value: value.to_owned(),
                }];
            }
        };
        refused("`init`", set("init_connect", "SET a = 1"));
        refused("may be paths", set("log_error", "/etc/x"));
        refused("setting `datadir`", set("datadir", "x"));
        refused("no scripts", |plan| {
            plan.workload.name = dbduel_workloads::script::NAME.to_owned();
        });
        refused("no captured statements", |plan| {
            plan.workload.name = dbduel_record::captured::NAME.to_owned();
        });
        refused("';'", |plan| {
            let tables = &mut plan.contenders[1].tables;
            tables.insert("engine".to_owned(), "InnoDB; DROP".into());
        });
        refused("no contender 1", |plan| {
            plan.contenders.truncate(1);
            plan.blocks.clear();
        });
        refused("limits.server_stop_s", |plan| {
            plan.limits.server_stop_s = -1.0;
        });
        for clients in [0, 100_001, u32::MAX] {
            refused("1 to 100000 clients", |plan| {
                plan.levels[1].clients = clients;
            });
        }
        for (share, period_s) in [
            (-1.0, 0.1),
            (0.0, 0.1),
            (1.0, 0.1),
            (0.5, 0.0),
            (0.5, 1e-9),
            (0.5, 60.0),
        ] {
            let why = slow_down(share, period_s).unwrap_err();
            assert!(why.contains("of a period from 0.005 s"), "{why}");
        }
        for (stall_s, every_s) in [
            (0.0, [4.0, 4.0]),
            (60.0, [100.0, 100.0]),
            (1.0, [0.0, 4.0]),
            (1.0, [4.0, 2.0]),
            (1.0, [4.0, 1e6]),
            (10.0, [0.1, 0.1]),
            (0.05, [600.0, 600.0]),
        ] {
            let why = stall(stall_s, every_s).unwrap_err();
            assert!(why.contains("expected stalls"), "{why}");
        }
        // JSON has no such number.
        assert!(slow_down(0.5, f64::NAN).is_err());
        assert!(
            check(b"rm -rf /", true)
                .unwrap_err()
                .contains("not an order")
        );
    }
}
