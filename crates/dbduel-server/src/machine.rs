//! Machine architectures that a server program can be built for, and what each needs to run here.
//!
//! A table: how an ELF header identifies the architecture, where its libraries are, and the name of its dynamic loader.
//! Runs nothing.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Result, bail};

/// A machine architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    /// Rust's name of it.
    arch: &'static str,
    /// Class of the ELF header: 1 for 32 bits, 2 for 64.
    elf_class: u8,
    /// Machine number of the ELF header.
    elf_machine: u16,
    /// Debian's name of it.
    pub debian: &'static str,
    /// Folder name of its libraries in Debian's trees.
    pub triplet: &'static str,
    /// File name of its dynamic loader.
    pub loader: &'static str,
    /// The architecture whose kernel runs its programs besides its own, if any.
    guest_of: Option<&'static str>,
}

const MACHINES: &[Machine] = &[
    Machine {
        arch: "x86_64",
        elf_class: 2,
        elf_machine: 62,
        debian: "amd64",
        triplet: "x86_64-linux-gnu",
        loader: "ld-linux-x86-64.so.2",
        guest_of: None,
    },
    Machine {
        arch: "aarch64",
        elf_class: 2,
        elf_machine: 183,
        debian: "arm64",
        triplet: "aarch64-linux-gnu",
        loader: "ld-linux-aarch64.so.1",
        guest_of: None,
    },
    Machine {
        arch: "x86",
        elf_class: 1,
        elf_machine: 3,
        debian: "i386",
        triplet: "i386-linux-gnu",
        loader: "ld-linux.so.2",
        guest_of: Some("x86_64"),
    },
];

impl Machine {
    /// The architecture of a program that runs here.
    ///
    /// # Errors
    /// The file is not a program, or its architecture does not run here.
    pub fn of_program(path: &Path) -> Result<&'static Machine> {
        let mut header = [0u8; 20];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
        if read.is_err() || header[..4] != *b"\x7fELF" {
            bail!(
                "`{}` is not a program: it is a script, a broken link, or empty",
                path.display()
            );
        }
        let class = header[4];
        let number = u16::from_le_bytes([header[18], header[19]]);
        let fits = MACHINES.iter().find(|machine| {
            (machine.elf_class, machine.elf_machine) == (class, number)
                && (machine.is_this() || machine.guest_of == Some(std::env::consts::ARCH))
        });
        match fits {
            Some(machine) => Ok(machine),
            None => bail!(
                "`{}` was built for another architecture ({} bits, ELF machine {number})",
                path.display(),
                if class == 2 { 64 } else { 32 }
            ),
        }
    }

    /// True for the architecture of this program.
    pub fn is_this(&self) -> bool {
        self.arch == std::env::consts::ARCH
    }
}

/// Programs for tests.
#[cfg(test)]
pub mod examples {
    use super::*;

    /// The beginning of a program for a machine of `class` and `number`.
    pub fn elf(class: u8, number: u16) -> Vec<u8> {
        let mut header = vec![0u8; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        header[4] = class;
        header[18..20].copy_from_slice(&number.to_le_bytes());
        header
    }

    /// This machine's row.
    pub fn this_machine() -> &'static Machine {
        let this = MACHINES.iter().find(|machine| machine.is_this());
        this.expect("the tests run on a machine of the table")
    }

    /// The beginning of a program for this machine.
    pub fn ours() -> Vec<u8> {
        let this = this_machine();
        elf(this.elf_class, this.elf_machine)
    }
}

#[cfg(test)]
mod tests {
    use super::examples::{elf, ours, this_machine};
    use super::*;

    fn of(bytes: &[u8]) -> Result<&'static Machine> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Machine::of_program(file.path())
    }

    #[test]
    fn programs_of_this_machine_and_of_its_32_bit_mode_fit() {
        assert_eq!(of(&ours()).unwrap(), this_machine());
        let guest = of(&elf(1, 3));
        if std::env::consts::ARCH == "x86_64" {
            assert_eq!(guest.unwrap().debian, "i386");
        } else {
            assert!(guest.unwrap_err().to_string().contains("32 bits"));
        }
    }

    #[test]
    fn what_does_not_fit_says_why() {
        let error = |bytes: &[u8]| of(bytes).unwrap_err().to_string();
        assert!(error(&elf(2, 22)).contains("another architecture (64 bits, ELF machine 22)"));
        assert!(error(b"#!/bin/sh").contains("script"));
        assert!(error(b"").contains("empty"));
    }
}
