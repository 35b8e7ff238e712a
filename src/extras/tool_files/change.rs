//! Part of `tool-files`: `write` and `edit`, from what is asked for to what is on the disk.
//!
//! Watch for: a change is worked out three times, for the check, for the question and for the write. Each time everything is
//! looked at anew, so what could not be done is never asked about, and what was asked about is what is done.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    diff::{bounded, unified},
    error::FileError,
    open::{LARGEST, read_whole},
    place::{Place, Root},
    protected::Protected,
    replace::{Fault, Scope, replaced, rewritten},
    seen::{Seen, Version},
    store,
};
use crate::{
    cordis::BoxError,
    harness::{
        session::Session,
        tools::{Call, Tool},
    },
};

/// Where files are changed: what may be, and what each session knows.
pub(super) struct Desk {
    pub(super) root: Root,
    protected: Protected,
    pub(super) seen: Seen,
}

/// What the model fills in to write a file.
#[derive(Deserialize, JsonSchema)]
struct WriteArguments {
    /// Path of the file. Folders that are missing are made.
    file_path: String,
    /// All that is to be in it.
    content: String,
}

/// What the model fills in to change one.
#[derive(Deserialize, JsonSchema)]
struct EditArguments {
    /// Path of the file.
    file_path: String,
    /// The text to replace, exactly as it stands there; it must be there once.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replaces it wherever it stands.
    replace_all: Option<bool>,
}

const WRITE: &str = "Write a whole file. One that is there must have been read in this session; a new one needs nothing. To \
                     change a part of a file use edit.";
const EDIT: &str = "Replace a text in a file that was read in this session. Give enough of the text around it to make it \
                    unique, without the line numbers that read shows.";

pub(super) fn write_tool(desk: &Rc<Desk>) -> Tool {
    changing("write", WRITE, desk, Desk::written)
}

pub(super) fn edit_tool(desk: &Rc<Desk>) -> Tool {
    changing("edit", EDIT, desk, Desk::edited)
}

/// A tool that makes a change of its arguments.
fn changing<A: DeserializeOwned + JsonSchema + 'static>(
    name: &str,
    description: &str,
    desk: &Rc<Desk>,
    plan: fn(&Desk, &A, Option<&Session>) -> Result<Change, FileError>,
) -> Tool {
    let (checking, showing, desk) = (desk.clone(), desk.clone(), desk.clone());
    let run = async move |arguments: A, call: Rc<Call>| {
        let session = call.session.as_deref();
        let change = plan(&desk, &arguments, session)?;
        Ok::<_, BoxError>(desk.carry_out(&change, session)?)
    };
    Tool::typed(name, description, run)
        .checked_in_session(move |arguments, session| {
            let arguments = parsed(arguments)?;
            plan(&checking, &arguments, session).map(drop).map_err(|it| it.to_string())
        })
        .previewed(move |arguments, session| {
            let arguments = parsed(arguments).ok()?;
            Some(plan(&showing, &arguments, session).ok()?.diff())
        })
}

/// The arguments as the type that they are read as.
pub(super) fn parsed<A: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<A, String> {
    serde_json::from_value(Value::Object(arguments.clone())).map_err(|it| it.to_string())
}

/// What is to be done.
struct Change {
    place: Place,
    /// What is there now.
    before: Option<Vec<u8>>,
    after: Vec<u8>,
}

impl Change {
    fn diff(&self) -> String {
        unified(&self.place.name, self.before.as_deref(), &self.after)
    }
}

impl Desk {
    pub(super) fn new(root: Root, protected: Protected) -> Self {
        Self { root, protected, seen: Seen::default() }
    }

    fn written(
        &self,
        asked: &WriteArguments,
        session: Option<&Session>,
    ) -> Result<Change, FileError> {
        let place = self.root.place(&asked.file_path)?;
        self.protected.check(&place)?;
        let before = match place.exists {
            true => Some(self.known(&place, session)?),
            false if asked.file_path.ends_with('/') => {
                return Err(FileError::Folder { name: place.name });
            }
            false => {
                store::check_writable(&place)?;
                None
            }
        };
        let after = rewritten(before.as_deref().unwrap_or_default(), &asked.content);
        match after.len() as u64 {
            size if size > LARGEST => {
                Err(FileError::Large { name: place.name, size, limit: LARGEST })
            }
            _ => Ok(Change { place, before, after }),
        }
    }

    fn edited(
        &self,
        asked: &EditArguments,
        session: Option<&Session>,
    ) -> Result<Change, FileError> {
        let EditArguments { file_path, old_string: old, new_string: new, replace_all } = asked;
        let place = self.root.find(file_path)?;
        self.protected.check(&place)?;
        let before = self.known(&place, session)?;
        if old.is_empty() {
            return Err(FileError::Empty);
        }
        let name = place.name.clone();
        if !new.is_ascii() && std::str::from_utf8(&before).is_err() {
            return Err(FileError::Encoding { name });
        }
        let scope = if *replace_all == Some(true) { Scope::All } else { Scope::One };
        let after = match replaced(&before, old, new, scope, LARGEST) {
            _ if old == new => return Err(FileError::Same),
            Ok(after) if after == before => return Err(FileError::Same),
            Ok(after) => after,
            Err(Fault::NoMatch) => return Err(FileError::NoMatch { name }),
            Err(Fault::Ambiguous(count)) => return Err(FileError::Ambiguous { name, count }),
            Err(Fault::Large(size)) => {
                return Err(FileError::Large { name, size, limit: LARGEST });
            }
        };
        Ok(Change { place, before: Some(before), after })
    }

    /// The content of a file that the session has read and nobody has changed since.
    fn known(&self, place: &Place, session: Option<&Session>) -> Result<Vec<u8>, FileError> {
        let (bytes, _) = read_whole(place)?;
        self.seen.check(session, place, Version::of(&bytes))?;
        store::check_writable(place)?;
        Ok(bytes)
    }

    // Differs: it does not go to a thread, as the searches do. What is written is small, and a turn that is stopped
    // meanwhile could not say whether it was written.
    fn carry_out(&self, change: &Change, session: Option<&Session>) -> Result<String, FileError> {
        let Change { place, before, after } = change;
        match before {
            Some(before) => store::replace(place, after, Version::of(before))?,
            None => store::create(place, after)?,
        }
        self.seen.note(session, &place.path, Version::of(after));
        let name = &place.name;
        Ok(match before {
            // The model has just written all of it.
            None => format!("created `{name}`"),
            Some(before) if before == after => format!("updated `{name}`: it said so already"),
            Some(_) => format!("updated `{name}`\n\n{}", bounded(&change.diff())),
        })
    }
}
