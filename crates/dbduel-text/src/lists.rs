//! Lists in sentences.

/// Texts joined by commas and a final "and".
#[must_use]
pub fn joined_texts(texts: &[String]) -> String {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    joined(&texts)
}

/// As [`joined_texts`].
#[must_use]
pub fn joined(labels: &[&str]) -> String {
    match labels {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [start @ .., last] => format!("{} and {last}", start.join(", ")),
    }
}
