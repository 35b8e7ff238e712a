//! What the user is told of a save.

use std::{iter::once, path::Path};

use super::{
    Applied, Loader,
    plan::{Plan, Planned, Step},
};

impl Loader {
    /// What the user is told of a save that was applied.
    pub(super) fn lines(&self, plan: &Plan, applied: &Applied) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.is_starting() {
            let file = self.file_name();
            match plan.fresh {
                true if applied.changed.is_empty() => {
                    lines.push(format!("applied {file} (no entry changed)"))
                }
                true => lines.push(format!("applied {file}")),
                false if plan.modules.is_empty() && !applied.changed.is_empty() => {
                    lines.push(format!("applied {file}"))
                }
                false => {}
            }
            let set: Vec<_> =
                self.options.set.iter().map(|(id, key, _)| format!("{id}.{key}")).collect();
            if plan.fresh && !set.is_empty() {
                lines.push(format!("set for this run, whatever {file} says: {}", set.join(", ")));
            }
        }
        lines.extend(plan.lines());
        lines
    }

    pub(super) fn file_name(&self) -> String {
        let name = self.options.file.as_deref().and_then(Path::file_name);
        name.map_or("the built-in cordis.yml".into(), |it| it.to_string_lossy().into_owned())
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
        let failures: Vec<_> = users.clone().filter_map(Planned::failure_line).collect();
        match users.clone().any(|it| matches!(it.step, Step::Mount(..))) {
            true => once(format!("reloaded {name}")).chain(failures).collect(),
            false => users
                .filter_map(Planned::failure)
                .take(1)
                .map(|it| format!("{name} not applied: {it}"))
                .collect(),
        }
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
