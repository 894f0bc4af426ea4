//! Inputs of the load process, and validation of orders.

use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::AsFd as _;
use std::sync::mpsc::Sender;
use std::time::Duration;

use dbduel_client::tally::Window;
use dbduel_record::plan::Arrival;
use nix::unistd::dup2_stdin;

use crate::load_thread::Report;
use crate::order::{Order, SliceOrder};

/// The longest time in an order: a day, so that sums of a few of them stay far from overflow.
const SECONDS_MAX: f64 = 86_400.0;

/// Maximum number of ticks of a slice; they are kept in memory.
const TICKS_MAX: u64 = 1_000_000;

/// One thing in the inbox.
pub(super) enum Input {
    /// An order.
    Order(Order),
    /// An invalid line, with the reason.
    Nonsense(String),
    /// The end of the orders.
    End,
    /// A report of a load thread.
    Report(Report),
}

/// Takes over standard input as the source of orders and replaces it by an empty one, because a script, a library or a
/// child process that reads it would read orders. Call it before the first read.
///
/// # Errors
/// When the system gives no descriptor, or there is no `/dev/null`.
pub fn take_standard_input() -> io::Result<File> {
    // Closed in child processes.
    let orders = io::stdin().as_fd().try_clone_to_owned()?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(File::from(orders))
}

/// Reads orders on a separate thread, which ends with the input or with the process.
pub(super) fn read(input: impl BufRead + Send + 'static, inbox: Sender<Input>) -> io::Result<()> {
    std::thread::Builder::new()
        .name("orders".to_owned())
        .spawn(move || {
            for line in input.lines() {
                let event = match line {
                    Err(_) => break,
                    Ok(line) if line.trim().is_empty() => continue,
                    // The line is not repeated: it may hold a password.
                    Ok(line) => serde_json::from_str(&line).map_or_else(
                        |error| Input::Nonsense(format!("a line is not an order: {error}")),
                        Input::Order,
                    ),
                };
                if inbox.send(event).is_err() {
                    return;
                }
            }
            let _ = inbox.send(Input::End);
        })?;
    Ok(())
}

/// The times of a slice order, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretches {
    /// The longest extent, drain included.
    pub window: Window,
    /// The planned end.
    pub close_ns: u64,
    pub drain: Duration,
}

/// A valid time in seconds as nanoseconds.
pub(super) fn nanoseconds(seconds: f64) -> Option<u64> {
    (0.0..=SECONDS_MAX)
        .contains(&seconds)
        .then_some((seconds * 1e9) as u64)
}

/// The times of a slice, if all are valid.
pub(super) fn stretches(order: &SliceOrder) -> Result<Stretches, String> {
    let read = |name: &str, seconds: f64| {
        nanoseconds(seconds).ok_or_else(|| {
            format!("`{name}` cannot be {seconds}; it must be from 0 to a day, in seconds")
        })
    };
    let open_ns = read("guard_s", order.guard_s)?;
    let measured_ns = read("measured_s", order.measured_s)?;
    let tick_ns = read("tick_s", order.tick_s)?;
    let drain = Duration::from_nanos(read("drain_s", order.drain_s)?);
    let close_ns = open_ns + measured_ns;
    if tick_ns == 0 || close_ns / tick_ns > TICKS_MAX {
        return Err(format!(
            "`tick_s` cannot be {}; a slice has at most {TICKS_MAX} ticks",
            order.tick_s
        ));
    }
    match order.arrival {
        Arrival::Closed { think_ms } => {
            read("think_ms", think_ms / 1e3)?;
        }
        Arrival::Constant { per_second } | Arrival::Poisson { per_second } => {
            if !(per_second > 0.0 && per_second <= 1e9) {
                return Err(format!(
                    "`per_second` cannot be {per_second}; it must be above 0 and at most 1e9"
                ));
            }
        }
    }
    Ok(Stretches {
        window: Window {
            open_ns,
            close_ns: close_ns + drain.as_nanos() as u64,
            tick_ns,
        },
        close_ns,
        drain,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// Signals [`a_process_that_takes_its_standard_input`] that there are orders.
    const ORDERS: &str = "DBDUEL_TEST_ORDERS";

    #[test]
    #[ignore = "not for itself: the next test runs it with orders on standard input"]
    fn a_process_that_takes_its_standard_input() {
        let Ok(expected) = std::env::var(ORDERS) else {
            return;
        };
        let orders = take_standard_input().unwrap();
        let child = Command::new("cat").stdin(Stdio::inherit()).output();
        assert_eq!(child.unwrap().stdout, b"");
        assert_eq!(io::read_to_string(io::stdin()).unwrap(), "");
        assert_eq!(io::read_to_string(orders).unwrap(), expected);
    }

    #[test]
    fn nobody_else_reads_orders() {
        let orders = "one\ntwo\n";
        let (_, module) = module_path!().split_once("::").unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact"])
            .arg(format!("{module}::a_process_that_takes_its_standard_input"))
            .env(ORDERS, orders)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = process.stdin.take().unwrap();
        input.write_all(orders.as_bytes()).unwrap();
        drop(input);
        let said = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout);
        assert!(said.contains("1 passed"), "{said}");
    }

    fn order() -> SliceOrder {
        SliceOrder {
            contender: "a".to_owned(),
            clients: 1,
            arrival: Arrival::Closed { think_ms: 0.0 },
            guard_s: 1.0,
            measured_s: 2.0,
            tick_s: 0.5,
            drain_s: 3.0,
            until_halted: false,
            quantum: None,
            seed: 1,
        }
    }

    #[test]
    fn times_become_borders() {
        let window = Window {
            open_ns: 1_000_000_000,
            close_ns: 6_000_000_000,
            tick_ns: 500_000_000,
        };
        assert_eq!(
            stretches(&order()),
            Ok(Stretches {
                window,
                close_ns: 3_000_000_000,
                drain: Duration::from_secs(3)
            })
        );
    }

    #[test]
    fn numbers_without_sense_are_refused() {
        for bad in [f64::NAN, -1.0, f64::INFINITY, 1e9] {
            assert!(
                stretches(&SliceOrder {
                    guard_s: bad,
                    ..order()
                })
                .is_err(),
                "{bad}"
            );
            assert!(
                stretches(&SliceOrder {
                    measured_s: bad,
                    ..order()
                })
                .is_err(),
                "{bad}"
            );
            assert!(
                stretches(&SliceOrder {
                    tick_s: bad,
                    ..order()
                })
                .is_err()
                    || bad == 1e9,
                "{bad}"
            );
        }
        for tick_s in [0.0, 1e-9] {
            assert!(
                stretches(&SliceOrder { tick_s, ..order() }).is_err(),
                "{tick_s}"
            );
        }
        for per_second in [0.0, -5.0, f64::NAN, f64::INFINITY] {
            let arrival = Arrival::Poisson { per_second };
            assert!(
                stretches(&SliceOrder { arrival, ..order() }).is_err(),
                "{per_second}"
            );
        }
    }
}
