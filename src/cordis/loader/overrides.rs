//! What the command line has to say about entries: it holds for the whole run, so each save that is applied is followed
//! by a reminder.

use super::Loader;

impl Loader {
    /// What of a file just applied is not in force, because the command line says otherwise.
    pub(super) fn reminders(&self) -> Vec<String> {
        let (file, options) = (self.file_name(), &self.options);
        let set: Vec<_> = options.set.iter().map(|(id, key, _)| format!("{id}.{key}")).collect();
        let said = [("set for this run", set), ("left out of this run", options.disable.clone())];
        let lines = said.into_iter().filter(|(_, what)| !what.is_empty());
        lines
            .map(|(how, what)| format!("{how}, whatever {file} says: {}", what.join(", ")))
            .collect()
    }
}
