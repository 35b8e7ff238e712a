//! What the loader says of a save: before it applies it, when it has, and to the user.

use std::rc::Rc;

use super::{Cause, Entry, LoadError};
use crate::cordis::{Context, Emit, Parallel, ParallelError};

/// `cordis/notice`: one line for the user.
#[derive(Debug, Clone)]
pub struct Notice(pub String);

impl Emit for Notice {
    const NAME: &'static str = "cordis/notice";
}

/// `cordis/warning`: the same for what the user must not miss, however little they want to hear: a guard that guards
/// nothing, a log that is not kept, a save that is not in force.
#[derive(Debug, Clone)]
pub struct Warning(pub String);

impl Emit for Warning {
    const NAME: &'static str = "cordis/warning";
}

/// `loader/before-apply`: a listener that returns later holds the change; one that fails refuses it.
///
/// A listener that holds says so itself, at once: `ctx.emit(&change.held("applied when this turn ends"))`.
pub struct BeforeApply;

impl Parallel for BeforeApply {
    const NAME: &'static str = "loader/before-apply";
    type Input = Change;
}

/// What is about to be applied.
#[derive(Debug, Clone)]
pub struct Change {
    /// How messages call what was saved: `cordis.yml`, `./tool.ts`.
    pub file: String,
    /// The entries that will not stay as they are.
    pub entries: Vec<EntryChange>,
}

impl Change {
    /// The line of a listener that holds this change.
    pub fn held(&self, until: &str) -> Notice {
        Notice(format!("{} changed; {until}", self.file))
    }

    /// Asks everybody who may hold or refuse it.
    pub(super) async fn ask(&self, host: &Context) -> Result<(), LoadError> {
        let answer = host.parallel::<BeforeApply>(Rc::new(self.clone())).await;
        answer.map_err(|ParallelError(errors)| {
            let reasons: Vec<_> = errors.iter().map(|it| it.source.to_string()).collect();
            LoadError { file: self.file.clone(), cause: Cause::Refused(reasons.join("; ")) }
        })
    }
}

/// One entry that will not stay as it is. Both sides are equal if only its module changed, or if it is tried again.
#[derive(Debug, Clone)]
pub struct EntryChange {
    /// The entry in force; none if it is new.
    pub before: Option<Entry>,
    /// The entry to come; none if it is removed.
    pub after: Option<Entry>,
    /// Whether the plugin before or after is a guard.
    pub guard: bool,
}

impl EntryChange {
    /// The id of the entry.
    pub fn id(&self) -> &str {
        self.after.as_ref().or(self.before.as_ref()).map_or("", |it| &it.id)
    }
}

/// `loader/applied`: the outcome of the start or of a save, raised when no entry is starting or stopping any more.
#[derive(Debug, Clone)]
pub struct Applied {
    /// How messages call what was saved.
    pub file: String,
    /// Ids of the entries that did not stay as they were.
    pub changed: Vec<String>,
    /// Ids of entries whose module could not be loaded, each with the reason.
    pub failed: Vec<(String, String)>,
}

impl Emit for Applied {
    const NAME: &'static str = "loader/applied";
}
