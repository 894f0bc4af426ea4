//! The classes of the single statements that are measured, and what the capture says about them.

use dbduel_capture::store::Capture;
use dbduel_capture::store::manifest::ClassRow;
use dbduel_record::statement_classes::StatementClass;
use dbduel_text::visible;

use super::classes::{ClassFacts, Role, id};
use super::mix::ReplayTransaction;

/// Most classes that are measured, the one of the others included: each takes up to 28 kB per load thread.
const CLASSES_MAX: usize = 1_000;
/// Class of the statements of no class of their own.
const OTHER: &str = "other";

/// The classes of single statements that are measured.
#[derive(Debug)]
pub(crate) struct StatementClasses {
    /// Their names in records.
    pub(crate) names: Vec<String>,
    /// Place in `names` for each class of the capture.
    places: Vec<u32>,
    /// Whether each class of the capture changes rows.
    writes: Vec<bool>,
    /// Whether each class of the capture sets something for its session.
    settings: Vec<bool>,
}

impl StatementClasses {
    /// Those of a capture that a replay sends: all, or of too many those with the most statements and the most time.
    pub(crate) fn of(rows: &[ClassRow], facts: &[ClassFacts]) -> Self {
        // A damaged capture may have any number.
        let sum = |of: fn(&ClassRow) -> u64| {
            let numbers = rows.iter().map(of);
            numbers.fold(0_u64, u64::saturating_add)
        };
        let statements = sum(|row| row.statements);
        let duration_ns = sum(|row| row.duration_ns);
        let share = |class: &usize| {
            let row = &rows[*class];
            let of_count = row.statements as f64 / (statements as f64).max(1.0);
            of_count.max(row.duration_ns as f64 / (duration_ns as f64).max(1.0))
        };
        let mut own: Vec<usize> = (0..rows.len().min(facts.len()))
            .filter(|class| {
                facts[*class].is_sent() && rows[*class].refused < rows[*class].statements
            })
            .collect();
        // Stable, so that the same capture has the same classes in the same order.
        own.sort_by(|one, other| share(other).total_cmp(&share(one)));
        let has_others = own.len() > CLASSES_MAX;
        if has_others {
            own.truncate(CLASSES_MAX - 1);
        }
        let mut names: Vec<String> = own
            .iter()
            .map(|class| id(&rows[*class]).to_owned())
            .collect();
        // The last of them where there are others, otherwise of no statement.
        let mut places = vec![names.len() as u32; rows.len()];
        for (place, class) in own.into_iter().enumerate() {
            places[class] = place as u32;
        }
        if has_others {
            names.push(OTHER.to_owned());
        }
        StatementClasses {
            names,
            places,
            writes: facts.iter().map(|facts| facts.writes).collect(),
            settings: facts
                .iter()
                .map(|facts| facts.role == Role::Setting)
                .collect(),
        }
    }

    /// The place in [`StatementClasses::names`] of a class of the capture.
    pub(crate) fn place(&self, class: u32) -> u32 {
        self.places.get(class as usize).copied().unwrap_or(u32::MAX)
    }

    /// True where statements of a class of the capture change rows.
    pub(crate) fn writes(&self, class: u32) -> bool {
        self.writes.get(class as usize).copied().unwrap_or(false)
    }

    /// What a capture says about the statements that its replay draws, and about settings.
    pub(crate) fn captured(
        &self,
        capture: &Capture,
        transactions: &[ReplayTransaction],
    ) -> Vec<StatementClass> {
        let mut classes: Vec<StatementClass> = self
            .names
            .iter()
            .map(|name| StatementClass {
                id: name.clone(),
                text: name.clone(),
                ..StatementClass::default()
            })
            .collect();
        for (row, class) in capture.classes().iter().zip(0..) {
            if let Some(own) = classes.get_mut(self.place(class) as usize)
                && own.id != OTHER
            {
                own.text = visible(&row.text).replace(['\n', '\t'], " ");
                own.writes = self.writes(class);
            }
        }
        // Settings are no part of what is drawn, and are sent where they change.
        for (row, class) in capture.classes().iter().zip(0..) {
            let is_setting = self.settings.get(class as usize) == Some(&true);
            if let Some(own) = classes
                .get_mut(self.place(class) as usize)
                .filter(|_| is_setting)
            {
                let sent = row.statements.saturating_sub(row.refused);
                own.captured = own.captured.saturating_add(sent);
                own.captured_s += row.duration_ns as f64 / 1e9;
            }
        }
        let drawn = transactions.iter();
        for statement in drawn.flat_map(|one| capture.ordered(one.first, one.count)) {
            let Some(stored) = capture.statement(statement) else {
                continue;
            };
            let is_setting = self.settings.get(stored.class as usize) == Some(&true);
            let own = classes.get_mut(self.place(stored.class) as usize);
            let Some(own) = own.filter(|_| !is_setting) else {
                continue;
            };
            own.captured = own.captured.saturating_add(1);
            own.captured_s += stored.duration_ns.unwrap_or(0) as f64 / 1e9;
            if let Some(rows) = stored.rows_affected.filter(|_| own.writes) {
                own.captured_with_rows += 1;
                own.captured_unchanged += u64::from(rows == 0);
            }
        }
        classes
    }
}
