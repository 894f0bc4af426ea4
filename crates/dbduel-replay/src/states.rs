//! Settings of sessions: what a captured session had set when one of its transactions began.
//!
//! A state is the list of the session's statements that set something, the last one of each class; earlier ones stay where a later one
//! reads a user variable, which they may have set. Equal states of different
//! sessions are one, so that a client which has the state already sends nothing.

use std::collections::HashMap;

use dbduel_capture::import::Permission;
use dbduel_sql::{Lexer, Syntax, TokenKind};

/// Place of a state.
pub(crate) type StateId = u32;
/// The state of a session that has set nothing.
pub(crate) const INITIAL: StateId = 0;

/// Different texts of statements that set something, in one capture.
const SETTINGS_MAX: usize = 1 << 20;
/// Different states of one capture.
const STATES_MAX: usize = 1 << 20;
/// Classes of settings of one session.
const SETTINGS_OF_SESSION_MAX: usize = 200;

/// Why transactions are left out whose sessions have more than these.
pub(crate) const TOO_MANY: &str = "settings of sessions beyond the limit of a replay";

/// A statement that sets something.
#[derive(Debug, Clone, Copy)]
struct Setting {
    class: u32,
    /// Its place in the capture.
    statement: u32,
    /// True where it depends on a user variable, and so on settings before it.
    reads_variable: bool,
}

/// The states of the sessions of a capture.
#[derive(Debug)]
pub(crate) struct States {
    settings: Vec<Setting>,
    states: Vec<Box<[u32]>>,
}

/// How a session gets from one state to another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change<'s> {
    /// True where it begins with a reset of the session.
    pub(crate) resets: bool,
    /// Settings to send, in order.
    pub(crate) settings: &'s [u32],
}

impl States {
    /// Place in the capture of the statement that makes a setting.
    pub(crate) fn statement(&self, setting: u32) -> Option<usize> {
        let setting = self.settings.get(setting as usize)?;
        Some(setting.statement as usize)
    }

    /// How a session gets to the state `to`; `from` is `None` where its state is unknown.
    ///
    /// No reset is needed where every class of settings of the old state is in the new one: the statements of a class set the same
    /// things.
    pub(crate) fn change(&self, from: Option<StateId>, to: StateId) -> Change<'_> {
        let list = |state: StateId| self.states.get(state as usize).map_or(&[][..], |list| list);
        let new = list(to);
        let Some(old) = from.map(list) else {
            return Change {
                resets: true,
                settings: new,
            };
        };
        if let Some(further) = new.strip_prefix(old) {
            return Change {
                resets: false,
                settings: further,
            };
        }
        let class = |setting: &u32| self.settings.get(*setting as usize).map(|one| one.class);
        let is_set_again = |setting: &u32| new.iter().any(|one| class(one) == class(setting));
        Change {
            resets: !old.iter().all(is_set_again),
            settings: new,
        }
    }
}

/// Finds the states while sessions are walked through; `'c` is the capture.
#[derive(Debug)]
pub(crate) struct StateFinder<'c> {
    syntax: Syntax,
    /// Each text that sets something: its setting, or why a replay does not run it.
    texts: HashMap<&'c [u8], Result<u32, &'static str>>,
    settings: Vec<Setting>,
    states: HashMap<Box<[u32]>, StateId>,
    current: Vec<u32>,
    /// The state of `current`, where it was asked for.
    known: Option<StateId>,
    /// True where the session has more settings than are kept.
    is_beyond: bool,
}

impl<'c> StateFinder<'c> {
    pub(crate) fn new(syntax: Syntax) -> Self {
        StateFinder {
            syntax,
            texts: HashMap::new(),
            settings: Vec::new(),
            states: HashMap::from([(Box::default(), INITIAL)]),
            current: Vec::new(),
            known: Some(INITIAL),
            is_beyond: false,
        }
    }

    /// Begins a session, or resets the present one.
    pub(crate) fn clear(&mut self) {
        self.current.clear();
        self.known = Some(INITIAL);
        self.is_beyond = false;
    }

    /// Adds a statement that sets something.
    ///
    /// # Errors
    /// Why a replay does not run it; the state is as before then.
    pub(crate) fn set(
        &mut self,
        class: u32,
        statement: usize,
        text: &'c [u8],
    ) -> Result<(), &'static str> {
        let known = self.texts.get(text).copied();
        let setting = known.unwrap_or_else(|| self.add(class, statement, text));
        let setting = setting.inspect_err(|why| self.is_beyond |= *why == TOO_MANY)?;
        let settings = &self.settings;
        let reads_variable = |setting: u32| {
            let setting = settings.get(setting as usize);
            setting.is_some_and(|one| one.reads_variable)
        };
        if self.current.last() == Some(&setting) && !reads_variable(setting) {
            return Ok(());
        }
        let class_of = |setting: u32| settings.get(setting as usize).map(|one| one.class);
        // What stands before a setting that reads a variable stays.
        let kept = match reads_variable(setting) {
            true => self.current.len(),
            false => {
                let last = self.current.iter().rposition(|one| reads_variable(*one));
                last.map_or(0, |last| last + 1)
            }
        };
        let mut place = 0;
        self.current.retain(|earlier| {
            place += 1;
            place <= kept || class_of(*earlier) != Some(class)
        });
        self.known = None;
        if self.current.len() >= SETTINGS_OF_SESSION_MAX {
            self.is_beyond = true;
            return Err(TOO_MANY);
        }
        self.current.push(setting);
        Ok(())
    }

    /// The setting of a text that was not seen before.
    fn add(&mut self, class: u32, statement: usize, text: &'c [u8]) -> Result<u32, &'static str> {
        if self.texts.len() >= SETTINGS_MAX {
            return Err(TOO_MANY);
        }
        let setting = match Permission::of(text, self.syntax).refused {
            Some(why) => Err(why),
            None => {
                self.settings.push(Setting {
                    class,
                    // Statements of a capture have numbers of 32 bits.
                    statement: statement as u32,
                    reads_variable: reads_variable(text, self.syntax),
                });
                Ok(self.settings.len() as u32 - 1)
            }
        };
        self.texts.insert(text, setting);
        setting
    }

    /// The present state of the session; `None` beyond the limits.
    pub(crate) fn state(&mut self) -> Option<StateId> {
        if self.is_beyond {
            return None;
        }
        if self.known.is_none() {
            let next = self.states.len();
            self.known = match self.states.get(self.current.as_slice()) {
                Some(state) => Some(*state),
                None if next >= STATES_MAX => return None,
                None => {
                    self.states
                        .insert(self.current.as_slice().into(), next as u32);
                    Some(next as u32)
                }
            };
        }
        self.known
    }

    pub(crate) fn finish(self) -> States {
        let mut states = vec![Box::default(); self.states.len()];
        for (list, state) in self.states {
            states[state as usize] = list;
        }
        States {
            settings: self.settings,
            states,
        }
    }
}

/// True when a statement of MySQL has a user variable other than as what it sets.
fn reads_variable(text: &[u8], syntax: Syntax) -> bool {
    let mut tokens = Lexer::new(text, syntax).peekable();
    while let Some(token) = tokens.next() {
        let name = token.of(text);
        let is_variable = syntax.is_mysql
            && token.kind == TokenKind::Word
            && name.starts_with(b"@")
            && !name.starts_with(b"@@");
        let is_set = tokens
            .peek()
            .is_some_and(|next| matches!(next.of(text), b"=" | b":"));
        if is_variable && !is_set {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session's statements as class and text; the state after them.
    fn after(finder: &mut StateFinder<'static>, statements: &[(u32, &'static str)]) -> StateId {
        finder.clear();
        for (class, text) in statements {
            finder.set(*class, 0, text.as_bytes()).unwrap();
        }
        finder.state().unwrap()
    }

    const NAMES: (u32, &str) = (1, "SET NAMES utf8mb4");
    const STRICT: (u32, &str) = (2, "SET sql_mode = 'STRICT_ALL_TABLES'");
    const LOOSE: (u32, &str) = (2, "SET sql_mode = ''");

    #[test]
    fn equal_states_of_different_sessions_are_one() {
        let mut finder = StateFinder::new(Syntax::MYSQL);
        let one = after(&mut finder, &[NAMES, LOOSE, STRICT, STRICT]);
        assert_eq!(after(&mut finder, &[NAMES, STRICT]), one);
        assert_ne!(after(&mut finder, &[NAMES]), one);
        assert_eq!(after(&mut finder, &[]), INITIAL);
        assert_eq!(finder.finish().states.len(), 3);
    }

    #[test]
    fn what_a_variable_is_read_from_stays() {
        let mut finder = StateFinder::new(Syntax::MYSQL);
        let save = (3, "SET @a := '+02:00'");
        let read = (4, "SET time_zone = @a, @b = @@time_zone");
        let clear = (3, "SET @a = ''");
        let count = (5, "SET @n = @n + 1");
        let lists = [
            (vec![save, read, clear], 3),
            (vec![save, clear, read], 2),
            (vec![save, clear, save], 1),
            (vec![save, read, clear, save], 3),
            (vec![count, count], 2),
        ];
        let states: Vec<StateId> = lists
            .iter()
            .map(|(list, _)| after(&mut finder, list))
            .collect();
        let found = finder.finish();
        for (state, (list, length)) in states.into_iter().zip(&lists) {
            assert_eq!(found.states[state as usize].len(), *length, "{list:?}");
        }
    }

    #[test]
    fn only_what_is_missing_is_sent_and_what_must_go_is_reset() {
        let mut finder = StateFinder::new(Syntax::MYSQL);
        let names = after(&mut finder, &[NAMES]);
        let strict = after(&mut finder, &[NAMES, STRICT]);
        let loose = after(&mut finder, &[NAMES, LOOSE]);
        let states = finder.finish();
        let counts = |from, to| {
            let change = states.change(from, to);
            (change.resets, change.settings.len())
        };
        assert_eq!(counts(Some(INITIAL), strict), (false, 2));
        assert_eq!(counts(Some(names), strict), (false, 1));
        assert_eq!(counts(Some(strict), strict), (false, 0));
        assert_eq!(counts(Some(strict), loose), (false, 2));
        assert_eq!(counts(Some(strict), names), (true, 1));
        assert_eq!(counts(None, names), (true, 1));
    }

    #[test]
    fn a_refused_setting_changes_nothing_and_too_many_leave_the_session_out() {
        let mut finder = StateFinder::new(Syntax::MYSQL);
        finder.set(1, 0, b"SET NAMES utf8mb4").unwrap();
        let before = finder.state();
        assert!(finder.set(2, 1, b"SET GLOBAL max_connections = 5").is_err());
        assert_eq!(finder.state(), before);
        let texts: Vec<String> = (0..=SETTINGS_OF_SESSION_MAX)
            .map(|number| format!("SET @v{number} = 1"))
            .collect();
        let mut finder = StateFinder::new(Syntax::MYSQL);
        for (class, text) in texts.iter().enumerate() {
            let set = finder.set(class as u32, 0, text.as_bytes());
            assert_eq!(set.is_ok(), class < SETTINGS_OF_SESSION_MAX);
        }
        assert_eq!(finder.state(), None);
        finder.clear();
        assert_eq!(finder.state(), Some(INITIAL));
    }
}
