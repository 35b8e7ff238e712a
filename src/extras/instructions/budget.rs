//! Part of `instructions`: what there is room for.
//!
//! Watch for: the file of the folder that the user works in says most about it, so room is given from there upwards. Only
//! that one is ever cut; of any other one half would be worse than none.

use super::source::Source;

/// What is taken, and what is not.
#[derive(Debug, PartialEq)]
pub(super) struct Kept {
    taken: Vec<Source>,
    /// Name and size.
    dropped: Vec<(String, u64)>,
    /// Of the last one that is taken: so many bytes of it are not.
    cut: u64,
}

/// Room is given to the last first.
pub(super) fn fit(files: Vec<Source>, max_bytes: usize) -> Kept {
    let mut kept = Kept { taken: Vec::new(), dropped: Vec::new(), cut: 0 };
    let mut room = max_bytes;
    for mut file in files.into_iter().rev() {
        let is_whole = file.text.len() <= room && file.size <= max_bytes as u64;
        if !is_whole && !kept.taken.is_empty() {
            kept.dropped.push((file.name, file.size));
            continue;
        }
        if !is_whole {
            file.text.truncate(file.text.floor_char_boundary(room));
            kept.cut = file.size.saturating_sub(file.text.len() as u64);
        }
        room -= file.text.len();
        kept.taken.push(file);
    }
    kept.taken.reverse();
    kept.dropped.reverse();
    kept
}

impl Kept {
    /// The section of the prompt; empty if there is nothing.
    pub(super) fn text(&self, heading: &str) -> String {
        if self.taken.is_empty() {
            return String::new();
        }
        let one = |it: &Source| format!("\n\n## {}\n\n{}", it.name, it.text.trim());
        let cut = if self.cut > 0 { "\n\n(The rest of this file was left out.)" } else { "" };
        heading.to_owned() + &self.taken.iter().map(one).collect::<String>() + cut
    }

    /// What was loaded, in one line.
    pub(super) fn summary(&self) -> Option<String> {
        let one = |it: &Source| format!("{} ({} bytes)", it.name, it.text.len());
        let all: Vec<_> = self.taken.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// What was not, a line each.
    pub(super) fn left_out(&self, max_bytes: usize) -> Vec<String> {
        let rule = format!("there is room for {max_bytes} bytes (maxBytes)");
        let cut =
            self.taken.last().filter(|_| self.cut > 0).map(|it| {
                format!("{} is cut, {} bytes of it are left out: {rule}", it.name, self.cut)
            });
        let dropped = self.dropped.iter();
        let dropped =
            dropped.map(|(name, size)| format!("{name} ({size} bytes) is left out: {rule}"));
        dropped.chain(cut).collect()
    }
}
