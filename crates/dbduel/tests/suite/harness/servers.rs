//! Servers that tests run on: fetched in a step of its own, before the first test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::suite::lab::{home, program};

/// A mirror may fail for a moment. Pauses between attempts.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];

/// Servers that were asked for, and why one is not here. Printed at the end.
static TRIED: Mutex<BTreeMap<&'static str, Result<(), String>>> = Mutex::new(BTreeMap::new());

/// Fetches those servers that are not in the home yet, and says what that takes.
pub fn fetch(names: impl Iterator<Item = &'static str>) {
    let names: BTreeSet<&str> = names.collect();
    for name in names {
        let is_here = home().join("servers").join(name).exists();
        if !is_here {
            println!("fetching {name}");
        }
        let began = Instant::now();
        let outcome = install(name);
        match &outcome {
            Ok(()) if is_here => {}
            Ok(()) => println!("fetched {name} in {:.0} s", began.elapsed().as_secs_f64()),
            Err(_) => println!("{name} could not be fetched; the reason is at the end"),
        }
        let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        tried.insert(name, outcome);
    }
}

/// Whether all of these were fetched; else which was not.
pub fn presence(names: impl Iterator<Item = &'static str>) -> Result<(), String> {
    let tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    for name in names {
        if tried.get(name).expect("fetched before the tests").is_err() {
            return Err(format!("{name} could not be fetched"));
        }
    }
    Ok(())
}

/// Prints why servers could not be fetched.
pub fn print_failures() {
    let tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    for why in tried.values().filter_map(|outcome| outcome.as_ref().err()) {
        println!("{why}");
    }
}

fn install(name: &str) -> Result<(), String> {
    let attempt = || {
        let output = program()
            .args(["servers", "install", name])
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    };
    let mut outcome = attempt();
    for pause in PAUSES {
        if outcome.is_ok() {
            break;
        }
        std::thread::sleep(pause);
        outcome = attempt();
    }
    outcome.map_err(|why| {
        let attempts = PAUSES.len() + 1;
        format!("\n`dbduel servers install {name}` failed {attempts} times:\n{why}")
    })
}
