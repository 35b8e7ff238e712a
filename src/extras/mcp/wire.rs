//! Messages as the lines that they are: those that this client says and hears, and no others.
//!
//! Watch for: the SDK can read and write all of the protocol, which makes a program larger by a megabyte, and one odd part
//! makes it lose the whole of a list or of a result. So what answers a request is handed on as plain JSON, and what a server
//! asks is not read beyond its name: all but a ping is refused.

use std::io::{self, ErrorKind};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, CustomResult,
    ErrorData, InitializeResult, JsonRpcMessage, PingRequest, ProtocolVersion, RequestId,
    ServerCapabilities, ServerJsonRpcMessage, ServerNotification, ServerRequest, ServerResult,
    ToolListChangedNotification, ToolsCapability,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

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

/// What a line is. The first answer can only be that to the greeting.
pub(super) fn read(line: &[u8], has_begun: bool) -> Heard {
    if line.trim_ascii().is_empty() {
        return Heard::Nothing;
    }
    let message = serde_json::from_slice::<Value>(line);
    let Some(mut message) = message.ok().filter(Value::is_object) else { return Heard::Noise };
    let id = read_as::<RequestId>(message["id"].take());
    if let Some(method) = message["method"].as_str() {
        return asked(method, id);
    }
    let (error, result) = (message["error"].take(), message.get_mut("result").map(Value::take));
    let answer = match (read_as::<ErrorData>(error), result, id) {
        (Some(error), _, id) => Some(JsonRpcMessage::error(error, id)),
        (None, Some(result), Some(id)) => {
            Some(JsonRpcMessage::response(answer(result, has_begun), id))
        }
        _ => None,
    };
    answer.map_or(Heard::Noise, |it| Heard::Message(it.into()))
}

fn asked(method: &str, id: Option<RequestId>) -> Heard {
    let message = match (method, id) {
        ("ping", Some(id)) => {
            let (method, extensions) = Default::default();
            let ping = ServerRequest::PingRequest(PingRequest { method, extensions });
            JsonRpcMessage::request(ping, id)
        }
        (method, Some(id)) => {
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

fn answer(result: Value, has_begun: bool) -> ServerResult {
    match greeting(&result).filter(|_| !has_begun) {
        Some(greeting) => ServerResult::InitializeResult(greeting),
        None => ServerResult::CustomResult(CustomResult(result)),
    }
}

/// What matters of a greeting: the version, and whether there are tools.
fn greeting(result: &Value) -> Option<InitializeResult> {
    let version = read_as::<ProtocolVersion>(result["protocolVersion"].clone())?;
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = result["capabilities"].get("tools").map(|_| ToolsCapability::default());
    Some(InitializeResult::new(capabilities).with_protocol_version(version))
}

fn read_as<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}
