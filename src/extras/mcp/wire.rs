//! Messages as the lines that they are: those that this client says and hears, and no others.
//!
//! Watch for: the SDK can read and write all of the protocol, which makes a program larger by a megabyte, and one odd part
//! makes it lose the whole of a list or of a result. So what answers a request is handed on as the text that it is, and
//! what a server asks is not read beyond its name: all but a ping is refused.

use std::io::{self, ErrorKind};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, CustomResult,
    ErrorData, InitializeResult, JsonRpcMessage, PingRequest, ProtocolVersion, RequestId,
    ServerCapabilities, ServerJsonRpcMessage, ServerNotification, ServerRequest, ServerResult,
    ToolListChangedNotification, ToolsCapability,
};
use serde_json::{Value, json};

use super::{
    raw::{members, small, text},
    server::short,
};

/// How much is repeated of what cannot be read, in characters.
const SHOWN: usize = 200;

/// What a line of a server is.
pub(super) enum Heard {
    Message(Box<ServerJsonRpcMessage>),
    /// A message that does not matter here, or an empty line.
    Nothing,
    /// No message.
    Noise,
}

/// The line of a message.
pub(super) fn line(message: ClientJsonRpcMessage) -> io::Result<Vec<u8>> {
    let (id, mut body) = match message {
        JsonRpcMessage::Request(it) => (Some(it.id), request(it.request)?),
        JsonRpcMessage::Notification(it) => (None, notification(it.notification)?),
        JsonRpcMessage::Response(it) => (Some(it.id), json!({ "result": {} })),
        JsonRpcMessage::Error(it) => (it.id, json!({ "error": it.error })),
    };
    body["jsonrpc"] = "2.0".into();
    if let Some(id) = id {
        body["id"] = id.into_json_value();
    }
    Ok(format!("{body}\n").into_bytes())
}

fn request(request: ClientRequest) -> io::Result<Value> {
    let (method, params) = match request {
        ClientRequest::InitializeRequest(it) => {
            let me = it.params.client_info;
            let me = json!({ "name": me.name, "version": me.version });
            let version = it.params.protocol_version.to_string();
            let params =
                json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": me });
            ("initialize", params)
        }
        ClientRequest::ListToolsRequest(it) => match it.params.and_then(|it| it.cursor) {
            Some(cursor) => ("tools/list", json!({ "cursor": cursor })),
            None => ("tools/list", json!({})),
        },
        ClientRequest::CallToolRequest(it) => {
            let arguments = it.params.arguments.unwrap_or_default();
            ("tools/call", json!({ "name": it.params.name, "arguments": arguments }))
        }
        _ => return Err(ErrorKind::Unsupported.into()),
    };
    Ok(json!({ "method": method, "params": params }))
}

fn notification(notification: ClientNotification) -> io::Result<Value> {
    match notification {
        ClientNotification::InitializedNotification(_) => {
            Ok(json!({ "method": "notifications/initialized" }))
        }
        ClientNotification::CancelledNotification(it) => {
            let id = it.params.request_id.map(RequestId::into_json_value);
            let params = json!({ "requestId": id, "reason": it.params.reason });
            Ok(json!({ "method": "notifications/cancelled", "params": params }))
        }
        _ => Err(ErrorKind::Unsupported.into()),
    }
}

/// What a line is. The first answer can only be that to the greeting. A server hands on what others wrote, so that bytes
/// may stand in a message that no JSON has: they are replaced.
pub(super) fn read(line: &[u8], has_begun: bool) -> Heard {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Heard::Nothing;
    }
    let found = str::from_utf8(line).ok().and_then(|it| message(it, has_begun));
    found
        .or_else(|| line.starts_with(b"{").then(|| mended(line, has_begun))?)
        .unwrap_or(Heard::Noise)
}

fn mended(line: &[u8], has_begun: bool) -> Option<Heard> {
    let text = String::from_utf8_lossy(line).replace(|it: char| it.is_ascii_control(), " ");
    message(&text, has_begun).or_else(|| unreadable(&text))
}

/// The answer to a request that is no JSON. Whoever waits for it need not wait any longer.
fn unreadable(text: &str) -> Option<Heard> {
    let (_, rest) = text.split_once("\"id\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    let id = small::<RequestId>(&rest[..end])?;
    let problem = format!("its answer is no JSON: {}", short(text, SHOWN));
    let error = ErrorData::parse_error(problem, None);
    Some(Heard::Message(JsonRpcMessage::error(error, Some(id)).into()))
}

fn message(line: &str, has_begun: bool) -> Option<Heard> {
    let [id, method, error, result] = members(line, ["id", "method", "error", "result"])?;
    let id = id.and_then(small::<RequestId>);
    if let Some(method) = method.and_then(text) {
        return Some(asked(method, id));
    }
    let answer = match (error.filter(|it| *it != "null").map(refusal), result, id) {
        (Some(error), _, id) => Some(JsonRpcMessage::error(error, id)),
        (None, Some(result), Some(id)) => {
            Some(JsonRpcMessage::response(answer(result, has_begun), id))
        }
        _ => None,
    };
    Some(answer.map_or(Heard::Noise, |it| Heard::Message(it.into())))
}

fn asked(method: String, id: Option<RequestId>) -> Heard {
    let message = match (&*method, id) {
        ("ping", Some(id)) => {
            let (method, extensions) = Default::default();
            let ping = ServerRequest::PingRequest(PingRequest { method, extensions });
            JsonRpcMessage::request(ping, id)
        }
        (_, Some(id)) => {
            let other = ServerRequest::CustomRequest(CustomRequest::new(method, None));
            JsonRpcMessage::request(other, id)
        }
        ("notifications/tools/list_changed", None) => {
            let (method, extensions) = Default::default();
            let changed = ToolListChangedNotification { method, extensions };
            JsonRpcMessage::notification(ServerNotification::ToolListChangedNotification(changed))
        }
        _ => return Heard::Nothing,
    };
    Heard::Message(message.into())
}

/// An error that does not look like one is told as it is written.
fn refusal(error: &str) -> ErrorData {
    let read = || {
        let [code, message] = members(error, ["code", "message"])?;
        Some(ErrorData::new(small(code?)?, text(message?)?, None))
    };
    read().unwrap_or_else(|| ErrorData::internal_error(short(error, SHOWN), None))
}

fn answer(result: &str, has_begun: bool) -> ServerResult {
    match greeting(result).filter(|_| !has_begun) {
        Some(greeting) => ServerResult::InitializeResult(greeting),
        None => ServerResult::CustomResult(CustomResult(result.into())),
    }
}

/// What matters of a greeting: the version, and whether there are tools.
fn greeting(result: &str) -> Option<InitializeResult> {
    let [version, able] = members(result, ["protocolVersion", "capabilities"])?;
    let version = small::<ProtocolVersion>(version?)?;
    let mut capabilities = ServerCapabilities::default();
    let [tools] = able.and_then(|it| members(it, ["tools"])).unwrap_or_default();
    capabilities.tools = tools.map(|_| ToolsCapability::default());
    Some(InitializeResult::new(capabilities).with_protocol_version(version))
}

/// The text of what answers a request.
pub(super) fn result(answer: ServerResult) -> String {
    match answer {
        ServerResult::CustomResult(CustomResult(Value::String(text))) => text,
        // A second greeting, where none was asked for.
        _ => "null".into(),
    }
}
