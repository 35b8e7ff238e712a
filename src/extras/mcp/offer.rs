//! What a server offers, made fit for the table of tools: names, descriptions and schemas come from a stranger.
//!
//! Watch for: a name is the same at each start, whatever else the server offers. Characters that do not fit become `_`; a
//! name that is too long is cut, and ends with a piece of the hash of the whole. Of two that become one the second is left
//! out, and so is whatever else does not fit, each with a line that names it.

use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::server::short;
use crate::harness::{cli::text::harmless, tools::arguments::completed};

/// What model services accept as the name of a tool.
const NAME: usize = 64;
/// Hexadecimal digits of the hash at the end of a name that was cut.
const HASH: usize = 8;
/// The longest description, in bytes; all that is sent with each request.
const DESCRIPTION: usize = 8_000;
/// The longest schema, as JSON.
const SCHEMA: usize = 64_000;
/// More tools of one server than a model can keep apart.
pub(super) const MOST_TOOLS: usize = 256;

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
}

/// Reads a list as the server wrote it.
pub(super) fn offers(server: &str, tools: &[Value]) -> Offers {
    let mut offers = Offers::default();
    for tool in tools.iter().take(MOST_TOOLS) {
        match offer(server, tool) {
            Ok(offer) => match offers.tools.iter().find(|it| it.name == offer.name) {
                Some(first) => offers.complaints.push(format!(
                    "the tools `{}` and `{}` would both be {}; the second is left out",
                    short(&first.theirs, NAME),
                    short(&offer.theirs, NAME),
                    offer.name
                )),
                None => offers.tools.push(offer),
            },
            Err(complaint) => offers.complaints.push(complaint),
        }
    }
    if tools.is_empty() {
        offers.complaints.push("it offers no tools".into());
    }
    if tools.len() > MOST_TOOLS {
        offers
            .complaints
            .push(format!("it has more than {MOST_TOOLS} tools; the rest is left out"));
    }
    offers
}

fn offer(server: &str, tool: &Value) -> Result<Offer, String> {
    let theirs = tool["name"].as_str().filter(|it| !it.is_empty());
    let theirs = theirs.ok_or("a tool without a name is left out")?.to_owned();
    let left_out = |why: &str| format!("the tool `{}` is left out: {why}", short(&theirs, NAME));
    let parameters = parameters(&tool["inputSchema"]).map_err(|why| left_out(&why))?;
    let described = tool["description"].as_str().or(tool["title"].as_str()).unwrap_or_default();
    let (name, description) = (name(server, &theirs), cut(described, DESCRIPTION));
    Ok(Offer { name, theirs, description, parameters })
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

/// The schema of the arguments, if it is one.
fn parameters(schema: &Value) -> Result<Value, String> {
    let schema = clean(schema.clone());
    let length = schema.to_string().len();
    if length > SCHEMA {
        return Err(format!("its schema is {length} bytes long"));
    }
    completed(schema).map_err(|why| format!("its schema {}", short(&why, 200)))
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
