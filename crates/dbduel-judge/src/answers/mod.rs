//! Compares the contenders' answers to the same statements, class by class.

use dbduel_record::answers::{Answer, Answers, AskedClass, AskedStatement, Rows};
use dbduel_record::{Plan, Record};
use dbduel_text::counts;

use crate::summary::{
    AnswerDifference, AnswersSummary, ClassAnswers, ContenderAnswer, DifferenceKind,
    RefusedSettings,
};

/// What two answers to a statement show.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Equal,
    /// One is missing, and why.
    NotCompared(String),
    /// They differ, and both sides as a phrase.
    Differs(DifferenceKind, String),
}

/// The comparison; `None` where the record has no answers.
pub fn summary(record: &Record) -> Option<AnswersSummary> {
    let answers = record.answers.as_ref()?;
    let plan = &record.plan;
    let classes = answers.classes.iter();
    let refused = answers.refused.iter().filter_map(|one| {
        Some(RefusedSettings {
            contender: plan.contenders.get(one.contender)?.name.clone(),
            id: one.id.clone(),
            text: one.text.clone(),
            position: one.position.clone(),
            error: one.refusal.name.clone(),
            settings: one.settings,
            transactions: one.transactions,
            share: share(one.transactions, answers.transactions),
        })
    });
    Some(AnswersSummary {
        classes: classes
            .map(|class| of_class(plan, answers, class))
            .collect(),
        classes_beyond: answers.classes_beyond,
        refused: refused.collect(),
        because: answers.because.clone(),
    })
}

/// The answers of these contenders alone, by their places in the plan.
pub fn restricted(answers: &Answers, shown: &[usize]) -> Answers {
    let mut own = answers.clone();
    for asked in own.classes.iter_mut().flat_map(|class| &mut class.examples) {
        let chosen = shown.iter();
        let first = chosen.clone().filter_map(|place| asked.first.get(*place));
        asked.first = first.copied().collect();
        let second = chosen.map(|place| asked.second.get(*place).copied().flatten());
        asked.second = second.collect();
    }
    own.refused.retain_mut(|one| {
        let place = shown.iter().position(|place| *place == one.contender);
        one.contender = place.unwrap_or_default();
        place.is_some()
    });
    own
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

fn of_class(plan: &Plan, answers: &Answers, class: &AskedClass) -> ClassAnswers {
    let others = (0..plan.contenders.len()).filter(|contender| *contender != plan.baseline);
    ClassAnswers {
        id: class.id.clone(),
        text: class.text.clone(),
        share: share(class.statements, answers.statements),
        unsettled: class.unsettled.clone(),
        contenders: others
            .map(|contender| of_contender(plan, class, contender))
            .collect(),
    }
}

fn of_contender(plan: &Plan, class: &AskedClass, contender: usize) -> ContenderAnswer {
    let mut own = ContenderAnswer {
        contender: plan.contenders[contender].name.clone(),
        compared: 0,
        difference: None,
        not_compared: None,
    };
    // With the length of the text, so that the shortest is the example.
    let mut found: Vec<(u64, AnswerDifference)> = Vec::new();
    for asked in &class.examples {
        match compare(class, asked.of(plan.baseline), asked.of(contender)) {
            Outcome::Equal => own.compared += 1,
            Outcome::NotCompared(why) => {
                own.not_compared.get_or_insert(why);
            }
            Outcome::Differs(kind, detail) => {
                own.compared += 1;
                let difference = AnswerDifference {
                    kind,
                    excuse: excuse(plan, class, asked, contender, kind),
                    detail,
                    statements: 1,
                    position: asked.position.clone(),
                };
                found.push((asked.bytes, difference));
            }
        }
    }
    let heaviest = found.iter().map(|(_, one)| rank(one)).min();
    let alike = found.iter().filter(|(_, one)| Some(rank(one)) == heaviest);
    let statements = alike.clone().count() as u32;
    own.difference = alike
        .min_by_key(|(bytes, _)| *bytes)
        .map(|(_, one)| AnswerDifference {
            statements,
            ..one.clone()
        });
    own
}

/// Heaviest first.
fn rank(difference: &AnswerDifference) -> (bool, DifferenceKind) {
    (!difference.weighs(), difference.kind)
}

/// Why equal data may give a difference that weighs.
fn excuse(
    plan: &Plan,
    class: &AskedClass,
    asked: &AskedStatement,
    contender: usize,
    kind: DifferenceKind,
) -> Option<String> {
    if !kind.weighs() {
        return None;
    }
    for one in [plan.baseline, contender] {
        let again = compare(class, asked.of(one), asked.again(one));
        if matches!(again, Outcome::Differs(kind, _) if kind.weighs()) {
            let name = &plan.contenders[one].name;
            return Some(format!("`{name}` answers differently a second time"));
        }
    }
    let on = class.unsettled.as_ref()?;
    match kind {
        DifferenceKind::Rows
        | DifferenceKind::Values
        | DifferenceKind::Order
        | DifferenceKind::Affected => Some(format!("depends on {on}")),
        DifferenceKind::Error
        | DifferenceKind::Columns
        | DifferenceKind::LimitTies
        | DifferenceKind::Floats
        | DifferenceKind::Ties
        | DifferenceKind::UnknownOrder
        | DifferenceKind::Types
        | DifferenceKind::Warnings => None,
    }
}

/// Compares a contender's answer with the baseline's.
fn compare(class: &AskedClass, baseline: Option<&Answer>, own: Option<&Answer>) -> Outcome {
    match (baseline, own) {
        (None, _) | (_, None) => Outcome::NotCompared("not asked".to_owned()),
        (Some(Answer::Missing(why)), _) | (_, Some(Answer::Missing(why))) => {
            Outcome::NotCompared(why.clone())
        }
        (Some(Answer::Refused(baseline)), Some(Answer::Refused(own))) => match baseline == own {
            true => Outcome::Equal,
            false => {
                let detail = format!("error {} instead of {}", own.name, baseline.name);
                Outcome::Differs(DifferenceKind::Error, detail)
            }
        },
        (Some(Answer::Done(_)), Some(Answer::Refused(own))) => {
            Outcome::Differs(DifferenceKind::Error, format!("error {}", own.name))
        }
        (Some(Answer::Refused(baseline)), Some(Answer::Done(_))) => {
            let detail = format!("no error; `{}` only", baseline.name);
            Outcome::Differs(DifferenceKind::Error, detail)
        }
        (Some(Answer::Done(baseline)), Some(Answer::Done(own))) => {
            match difference(class, baseline, own) {
                Some((kind, detail)) => Outcome::Differs(kind, detail),
                None => Outcome::Equal,
            }
        }
    }
}

/// The heaviest difference between what two servers gave.
fn difference(class: &AskedClass, baseline: &Rows, own: &Rows) -> Option<(DifferenceKind, String)> {
    let numbers = |own: u64, other: u64, one: &str| {
        format!(
            "{} instead of {}",
            counts::things(own, one),
            counts::of(other)
        )
    };
    if own.columns.len() != baseline.columns.len() {
        let [own, other] = [own, baseline].map(|rows| rows.columns.len() as u64);
        return Some((DifferenceKind::Columns, numbers(own, other, "column")));
    }
    if own.rows != baseline.rows {
        return Some((
            DifferenceKind::Rows,
            numbers(own.rows, baseline.rows, "row"),
        ));
    }
    let has_equal_keys = own.keys.is_some() && own.keys == baseline.keys;
    if own.set != baseline.set {
        let of = format!("in {}", counts::things(own.rows, "row"));
        let are_floats = own.set_without_floats == baseline.set_without_floats;
        let kind = match (are_floats, class.is_limited && has_equal_keys) {
            (true, _) => DifferenceKind::Floats,
            (false, true) => DifferenceKind::LimitTies,
            (false, false) => DifferenceKind::Values,
        };
        return Some((kind, of));
    }
    if class.is_ordered && own.sequence != baseline.sequence {
        let of = format!("in {}", counts::things(own.rows, "row"));
        let kind = match (
            has_equal_keys,
            own.keys.is_some() && baseline.keys.is_some(),
        ) {
            (true, _) => DifferenceKind::Ties,
            (false, true) => DifferenceKind::Order,
            (false, false) => DifferenceKind::UnknownOrder,
        };
        return Some((kind, of));
    }
    if own.affected != baseline.affected {
        let detail = numbers(own.affected, baseline.affected, "row");
        return Some((DifferenceKind::Affected, detail));
    }
    let mut types = own.columns.iter().zip(&baseline.columns).enumerate();
    if let Some((place, (own, other))) = types.find(|(_, (own, other))| own != other) {
        let detail = format!(
            "column {}: {} instead of {}",
            place + 1,
            own.name(),
            other.name()
        );
        return Some((DifferenceKind::Types, detail));
    }
    (own.warnings != baseline.warnings).then(|| {
        let detail = numbers(own.warnings, baseline.warnings, "warning");
        (DifferenceKind::Warnings, detail)
    })
}

#[cfg(test)]
mod tests;
