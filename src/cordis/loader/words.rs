//! What the user is told of a save.

use std::iter::once;

use super::{
    Applied, Cause, LoadError, Loader, Notice, Warning,
    plan::{Plan, Planned, Step},
};

impl Loader {
    /// What the user is told of a save that was applied. At the start whoever started the loader asks for the problem,
    /// so that only what is none is told: an optional entry that cannot be loaded.
    pub(super) fn lines(&self, plan: &Plan, applied: &Applied) -> Vec<String> {
        if self.is_starting() {
            let optional = plan.planned.iter().filter(|it| it.entry.optional);
            return optional.filter_map(Planned::failure_line).collect();
        }
        self.outcome_lines(plan, applied).into_iter().chain(plan.lines()).collect()
    }

    fn outcome_lines(&self, plan: &Plan, applied: &Applied) -> Vec<String> {
        let (file, nothing) = (self.file_name(), applied.changed.is_empty());
        let detail = if nothing { " (no entry changed)" } else { "" };
        if !plan.fresh {
            // Who takes a refused save back wants to know that it is gone.
            let was_refused = matches!(*self.outcome.borrow(), Some(Err(_)));
            let is_news = plan.modules.is_empty() && (was_refused || !nothing);
            return is_news.then(|| format!("applied {file}{detail}")).into_iter().collect();
        }
        once(format!("applied {file}{detail}")).chain(self.reminders()).collect()
    }

    /// Nothing has been applied or refused yet.
    pub(super) fn is_starting(&self) -> bool {
        self.outcome.borrow().is_none()
    }

    /// What of a file just applied is not in force, because the command line says otherwise for the whole run.
    fn reminders(&self) -> Vec<String> {
        let (file, options) = (self.file_name(), &self.options);
        let set: Vec<_> = options.set.iter().map(|(id, key, _)| format!("{id}.{key}")).collect();
        let said = [("set for this run", set), ("left out of this run", options.disable.clone())];
        let lines = said.into_iter().filter(|(_, what)| !what.is_empty());
        lines
            .map(|(how, what)| format!("{how}, whatever {file} says: {}", what.join(", ")))
            .collect()
    }

    /// What was applied is at rest.
    pub(super) fn say_applied(&self) {
        if let Some(applied) = self.news.take() {
            self.new_waits(&applied).into_iter().for_each(|it| self.host.emit(&Warning(it)));
            self.host.emit(&applied);
        }
    }

    pub(super) fn say(&self, line: String) {
        self.host.emit(&Notice(line));
    }

    pub(super) fn error(&self, cause: Cause) -> LoadError {
        LoadError { file: self.file_name(), cause }
    }

    pub(super) fn file_name(&self) -> String {
        let Some(path) = self.options.file.as_deref() else {
            return "the built-in cordis.yml".into();
        };
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }

    /// How messages call what was saved.
    pub(super) fn called(&self, plan: &Plan) -> String {
        let modules = plan.saved_names();
        if plan.fresh || modules.is_empty() { self.file_name() } else { modules.join(", ") }
    }
}

impl Plan {
    /// Ids of the entries that cannot be loaded, with the reason.
    pub(super) fn failed(&self) -> Vec<(String, String)> {
        self.planned
            .iter()
            .filter_map(|it| Some((it.entry.id.clone(), it.failure()?.to_owned())))
            .collect()
    }

    /// The saved modules as their entries call them.
    pub(super) fn saved_names(&self) -> Vec<&str> {
        let users = |key| self.planned.iter().find(move |it| it.key.as_ref() == Some(key));
        self.modules.iter().filter_map(|key| Some(&*users(key)?.entry.name)).collect()
    }

    /// What the user is told of single modules and entries.
    pub(super) fn lines(&self) -> Vec<String> {
        let saved = self.saved_names().into_iter().flat_map(|name| self.module_line(name));
        let of_saved =
            |it: &&Planned| it.key.as_ref().is_some_and(|key| self.modules.contains(key));
        let failed =
            self.planned.iter().filter(|it| !of_saved(it)).filter_map(Planned::failure_line);
        saved.chain(failed).collect()
    }

    fn module_line(&self, name: &str) -> Vec<String> {
        let users = self.planned.iter().filter(|it| it.entry.name == name);
        if users.clone().any(|it| matches!(it.step, Step::Mount(..))) {
            return once(format!("reloaded {name}"))
                .chain(users.filter_map(Planned::failure_line))
                .collect();
        }
        let failure = { users }.find_map(Planned::failure);
        failure.map(|it| format!("{name} not applied: {it}")).into_iter().collect()
    }
}

impl Planned {
    fn failure(&self) -> Option<&str> {
        match &self.step {
            Step::Fail(problem) => Some(problem),
            _ => None,
        }
    }

    fn failure_line(&self) -> Option<String> {
        let runs = self.before.as_ref().is_some_and(|it| it.running.is_some());
        let stays = if runs { "; what runs of it stays" } else { "" };
        Some(format!("entry `{}`: {}{stays}", self.entry.id, self.failure()?))
    }
}
