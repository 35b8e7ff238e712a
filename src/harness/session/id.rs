//! Ids of sessions: `YYYYMMDD-HHMMSS-xxxxxx` in UTC, so that their order is that of time.
//!
//! Watch for: an id is part of a file's name. What is no id never comes near the file system.

use std::{
    hash::{BuildHasher, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

/// What a session takes from outside. Tests pass their own.
pub struct Surroundings {
    /// The time in Unix milliseconds.
    pub now: Box<dyn Fn() -> u64>,
    /// A number that nobody else is likely to draw.
    pub random: Box<dyn Fn() -> u64>,
}

impl Surroundings {
    /// The clock of the system, and the randomness that hash maps are seeded with.
    pub fn system() -> Self {
        let now = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        };
        Self {
            now: Box::new(now),
            random: Box::new(|| RandomState::new().hash_one(std::process::id())),
        }
    }
}

/// Letters, digits, `-` and `_`, at most 64.
pub fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(fits)
}

/// The id of a session that begins now.
pub(super) fn fresh(now: u64, random: u64) -> String {
    let seconds = now / 1000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{}", letters(random))
}

fn letters(mut random: u64) -> String {
    let mut text = String::new();
    for _ in 0..6 {
        text.push(char::from(
            b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::from((random % 36) as u8)],
        ));
        random /= 36;
    }
    text
}

/// Days since 1970 as a date. Years are counted from March, so that the leap day is the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::{fresh, is_id};

    #[test]
    fn an_id_tells_the_time_in_utc() {
        assert_eq!(fresh(1_796_054_400_000, 0), "20261130-160000-000000");
        assert_eq!(fresh(951_782_400_000, 35), "20000229-000000-z00000");
        assert_eq!(fresh(0, u64::MAX), "19700101-000000-fsgs46");
    }

    #[test]
    fn an_id_is_short_and_plain() {
        assert!(is_id(&fresh(1_796_054_400_000, 7)));
        for text in ["", ".", "..", "a/b", "a\nb", "ä", &"a".repeat(65)] {
            assert!(!is_id(text), "{text:?}");
        }
    }
}
