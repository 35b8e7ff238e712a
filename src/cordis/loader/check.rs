//! Whether a config fits its plugin, and what is said if it does not.

use serde_json::Value;

use super::{
    Entry, Fault,
    placeholders::{Filling, has_placeholder},
    plan::Planner,
    tree::join,
};
use crate::cordis::{Fault as ConfigFault, PluginDef, guard, module::did_you_mean, nearest};

impl<'a> Planner<'a> {
    pub(super) fn fill<'d>(&self, entry: &Entry, def: &'d PluginDef) -> Filling<'d>
    where
        'a: 'd,
    {
        let options = &self.loader.options;
        let set: Vec<_> = options.set.iter().filter(|(id, ..)| *id == entry.id).collect();
        // A schema is made when it is first asked for, and most configs are what they say.
        let asked = !set.is_empty() || has_placeholder(&entry.config);
        let schema = if asked { def.schema() } else { None };
        let mut filling = Filling::new(&entry.config, schema, &*options.env);
        for (_, key, text) in set {
            filling.set(key, text);
        }
        filling
    }

    /// The config that the plugin is to be mounted with, or all that is wrong with it.
    pub(super) fn fit(
        &self,
        place: usize,
        entry: &Entry,
        def: &PluginDef,
    ) -> Result<Value, Vec<Fault>> {
        let filling = self.fill(entry, def);
        let known = |path: &str| filling.faults.iter().any(|(at, _)| at == path);
        let checked = checked(def, &filling.config)
            .into_iter()
            .filter(|it| !known(&it.path))
            .map(|it| (quote_hint(filling.hide(&it.path, it.problem)), it.path));
        let found =
            filling.faults.iter().map(|(at, problem)| (problem.clone(), at.clone())).chain(checked);
        let mut faults: Vec<_> = found
            .map(|(problem, path)| self.fault(place, entry, &filling, &path, problem))
            .collect();
        faults.extend(self.optional_guard(place, entry, def));
        if faults.is_empty() { Ok(filling.config) } else { Err(faults) }
    }

    fn fault(
        &self,
        place: usize,
        entry: &Entry,
        filling: &Filling<'_>,
        path: &str,
        problem: String,
    ) -> Fault {
        match filling.set_from(path) {
            Some(key) => Fault {
                entry: format!("--set {}.{key}", entry.id),
                line: None,
                field: String::new(),
                problem,
            },
            None => {
                Fault::at(&self.places, place, named(&entry.id), &join("config", path), problem)
            }
        }
    }

    pub(super) fn optional_guard(
        &self,
        place: usize,
        entry: &Entry,
        def: &PluginDef,
    ) -> Option<Fault> {
        let problem = "a guard cannot be optional: without it nothing would be guarded".to_owned();
        let wrong = entry.optional && def.is_guard();
        wrong.then(|| Fault::at(&self.places, place, named(&entry.id), "optional", problem))
    }

    /// A mistyped `--set` or `--disable` must not be without effect. Later an entry may go, and they with it.
    pub(super) fn check_arguments(&mut self, entries: &[Entry]) {
        let options = &self.loader.options;
        let set = options.set.iter().map(|(id, key, _)| (id, format!("--set {id}.{key}")));
        let disable = options.disable.iter().map(|id| (id, format!("--disable {id}")));
        for (id, entry) in
            set.chain(disable).filter(|(id, _)| !entries.iter().any(|it| it.id == **id))
        {
            let near = nearest(id, entries.iter().map(|it| &*it.id));
            let problem = format!("no entry has the id `{id}`{}", did_you_mean(near.as_deref()));
            self.faults.push(Fault { entry, line: None, field: String::new(), problem });
        }
    }
}

fn named(id: &str) -> String {
    format!("entry `{id}`")
}

/// What the plugin has against a config. A validator that panics has one thing against it.
fn checked(def: &PluginDef, config: &Value) -> Vec<ConfigFault> {
    match guard::call(|| def.check(config)) {
        Ok(Ok(_)) => Vec::new(),
        Ok(Err(err)) => err.faults,
        Err(panic) => vec![ConfigFault { path: String::new(), problem: panic.to_string() }],
    }
}

/// `model: 1.10` is a number in YAML, and so is `1e3`.
fn quote_hint(problem: String) -> String {
    let found = problem.strip_prefix("must be a text, not ").unwrap_or_default();
    let is_scalar = found.parse::<f64>().is_ok() || found.parse::<bool>().is_ok();
    if is_scalar { format!("{problem}; put it in quotes") } else { problem }
}
