//! What a server offers, made fit for the table of tools: names, descriptions and schemas come from a stranger.
//!
//! Watch for: a name is the same at each start, whatever else the server offers. Characters that do not fit become `_`; a
//! name that is too long is cut, and ends with a piece of the hash of the whole. Of two that become one the second is left
//! out, and so is whatever else does not fit, each with a line that names it.

use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::{
    raw::{members, text},
    server::short,
};
use crate::harness::{cli::text::harmless, tools::arguments::completed};

/// What model services accept as the name of a tool.
const NAME: usize = 64;
/// Hexadecimal digits of the hash at the end of a name that was cut.
const HASH: usize = 8;
/// The longest description, in bytes; all that is sent with each request.
const DESCRIPTION: usize = 8_000;
/// The longest schema, as JSON,
const SCHEMA: usize = 64_000;
/// and all schemas of one server: more than models can read, and as much more than that as a list in memory takes.
const SCHEMAS: usize = 1_000_000;
/// A schema may be written with this many times the room that it needs.
const WIDE: usize = 4;
/// The longest name that a call of the tool sends back.
const THEIRS: usize = 1_000;
/// More tools of one server than a model can keep apart.
const MOST_TOOLS: usize = 256;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offer {
    /// As this agent calls it.
    pub(super) name: String,
    /// As the server does.
    pub(super) theirs: String,
    pub(super) description: String,
    pub(super) parameters: Value,
}

/// All tools of a server, and what was left out.
#[derive(Default)]
pub(super) struct Offers {
    pub(super) tools: Vec<Offer>,
    pub(super) complaints: Vec<String>,
    /// How many tools the server has named, whatever became of them.
    pub(super) seen: usize,
    /// How long the schemas are.
    schemas: usize,
}

impl Offers {
    /// There are more tools than are looked at.
    pub(super) fn is_full(&self) -> bool {
        self.seen > MOST_TOOLS
    }

    /// Reads a tool as the server wrote it.
    pub(super) fn add(&mut self, server: &str, tool: &str) {
        self.seen += 1;
        if self.is_full() {
            return;
        }
        match self.offer(server, tool) {
            Ok(offer) => match self.tools.iter().find(|it| it.name == offer.name) {
                Some(first) => self.complaints.push(format!(
                    "the tools `{}` and `{}` would both be {}; the second is left out",
                    short(&first.theirs, NAME),
                    short(&offer.theirs, NAME),
                    offer.name
                )),
                None => self.tools.push(offer),
            },
            Err(complaint) => self.complaints.push(complaint),
        }
    }

    /// There is no more to come.
    pub(super) fn complete(mut self) -> Self {
        if self.seen == 0 {
            self.complaints.push("it offers no tools".into());
        }
        if self.is_full() {
            self.complaints
                .push(format!("it has more than {MOST_TOOLS} tools; the rest is left out"));
        }
        self
    }

    fn offer(&mut self, server: &str, tool: &str) -> Result<Offer, String> {
        let parts = members(tool, ["name", "description", "title", "inputSchema"]);
        let [theirs, description, title, schema] = parts.unwrap_or_default();
        let theirs = theirs.and_then(text).filter(|it| !it.is_empty());
        let theirs = theirs.ok_or("a tool without a name is left out")?;
        let left_out = |why| format!("the tool `{}` is left out: {why}", short(&theirs, NAME));
        if theirs.len() > THEIRS {
            return Err(left_out(format!("its name is {} bytes long", theirs.len())));
        }
        let (schema, room) = (schema.unwrap_or_default(), SCHEMAS - self.schemas);
        let (parameters, length) = parameters(schema, room).map_err(left_out)?;
        self.schemas += length;
        let described = description.and_then(text).or(title.and_then(text)).unwrap_or_default();
        let (name, description) = (name(server, &theirs), cut(&described, DESCRIPTION));
        Ok(Offer { name, theirs, description, parameters })
    }
}

fn name(server: &str, tool: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let prefix = format!("mcp__{server}__");
    let name: String = prefix.chars().chain(tool.chars().map(fit)).collect();
    if name.len() <= NAME {
        return name;
    }
    let hash = digest(&SHA256, tool.as_bytes());
    let digits = hash.as_ref().iter().flat_map(|it| [it >> 4, it & 15]);
    let hash: String = digits.filter_map(|it| char::from_digit(it.into(), 16)).collect();
    format!("{}_{}", &name[..NAME - HASH - 1], &hash[..HASH])
}

/// The schema of the arguments, if it is one and there is room for it, and its length. What model services insist on is
/// added.
fn parameters(schema: &str, room: usize) -> Result<(Value, usize), String> {
    let too_long = |length| Err(format!("its schema is {length} bytes long"));
    if schema.len() > SCHEMA * WIDE {
        return too_long(schema.len());
    }
    let schema = clean(serde_json::from_str(schema).unwrap_or_default());
    let length = schema.to_string().len();
    if length > SCHEMA {
        return too_long(length);
    }
    // Before it is compiled: that takes longer than to read it.
    if length > room {
        return Err(format!("all schemas of a server may be {SCHEMAS} bytes long"));
    }
    let schema = completed(schema).map_err(|why| format!("its schema {}", short(&why, 200)))?;
    Ok((schema, length))
}

/// The same without characters that a terminal would obey and that nobody sees, in names too.
fn clean(value: Value) -> Value {
    match value {
        Value::String(text) => harmless(&text).into_owned().into(),
        Value::Array(items) => items.into_iter().map(clean).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(key, it)| (harmless(&key).into_owned(), clean(it))).collect()
        }
        other => other,
    }
}

fn cut(text: &str, most: usize) -> String {
    let text = harmless(&text[..text.floor_char_boundary(most * 2)]).into_owned();
    if text.len() <= most {
        return text;
    }
    format!("{} … (cut)", &text[..text.floor_char_boundary(most)])
}
