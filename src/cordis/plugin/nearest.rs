//! What somebody may have meant who wrote a word that is not known.

/// The known word that looks most like the given one, if any does.
#[expect(
    single_use_lifetimes,
    reason = "an anonymous lifetime is not allowed in an associated type"
)]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = ((word.chars().count() + 1) / 3).max(1);
    let scored = known.map(|other| (distance(&word.to_lowercase(), &other.to_lowercase()), other));
    scored.filter(|(score, _)| *score <= limit).min().map(|(_, other)| other.to_owned())
}

/// Number of letters to change, add or drop.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
