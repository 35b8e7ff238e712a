//! Part of `script`: `fetch`, as far as the entry allows it.
//!
//! `allow` in the config of a script is a list of hosts, each with its port unless that is the usual one. Everything else
//! is refused, and so is a redirect to it. Only this machine is spoken to without TLS.
//! Watch for: no key of ours is known here. What goes out is what the script says.

use std::{rc::Rc, time::Duration};

use reqwest::{
    Method, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Bridge, Done, Reply, shown, text};
use crate::harness::llm_openai::client::{self, Plain};

/// An answer may be so long.
const LARGEST: usize = 8 << 20;
/// So many redirects are followed.
const REDIRECTS: usize = 10;
/// An answer may take so long in all.
const PATIENCE: Duration = Duration::from_mins(5);
/// So many requests of a script are under way at a time; each has a connection of its own. The others wait.
pub(super) const AT_A_TIME: usize = 16;
/// What the connection itself needs.
const OURS: [&str; 4] = ["host", "content-length", "connection", "transfer-encoding"];

/// The config of every script may say which hosts it talks to; where the script itself says something of `allow`, that
/// stands.
pub(in crate::extras::script) fn with_allow(schema: Option<Value>) -> Value {
    let allow = json!({
        "type": "array",
        "items": { "type": "string", "minLength": 1 },
        "description": "Hosts that the script may fetch from: `api.example.com`, `localhost:8080`.",
    });
    let Some(mut schema) = schema else {
        return json!({ "type": "object", "properties": { "allow": allow }, "additionalProperties": true });
    };
    let is_map = schema.get("properties").is_some() || schema.get("type") == Some(&"object".into());
    if let Some(map) = schema.as_object_mut().filter(|_| is_map) {
        let properties = map.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.entry("allow").or_insert(allow);
        }
    }
    schema
}

/// Where a config gets `allow` from that says nothing of it: then the script would choose its hosts itself.
pub(in crate::extras::script) fn grants_itself(schema: &Value) -> bool {
    let (mut seen, mut waiting) = (Vec::new(), vec![schema]);
    while let Some(shape) = waiting.pop() {
        if seen.iter().any(|it| std::ptr::eq(*it, shape)) {
            continue;
        }
        seen.push(shape);
        let default = &shape["properties"]["allow"]["default"];
        if default.as_array().is_some_and(|it| !it.is_empty()) {
            return true;
        }
        let parts = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|it| shape[it].as_array());
        waiting.extend(parts.flatten());
        let target = shape["$ref"].as_str().and_then(|it| schema.pointer(it.strip_prefix('#')?));
        waiting.extend(target);
    }
    false
}

/// One request.
struct Asking {
    url: Url,
    method: Method,
    headers: HeaderMap,
    body: Option<String>,
}

impl Bridge {
    /// The operation, if it is this one.
    pub(super) fn fetching(self: &Rc<Self>, operation: &str, args: &[Value]) -> Option<Reply> {
        let ("fetch", [cancel, url, method, headers, body]) = (operation, args) else {
            return None;
        };
        let asking = match Asking::read(url, method, headers, body) {
            Ok(asking) => asking,
            Err(problem) => return Some(Reply::Now(Err(problem))),
        };
        let (bridge, (held, cancel)) = (self.clone(), self.cancellation(cancel));
        Some(Reply::Later(Box::pin(async move {
            let work = timeout(PATIENCE, async {
                let _turn = bridge.fetches.acquire().await.map_err(shown)?;
                bridge.fetch(asking).await
            });
            let outcome = cancel.run_until_cancelled(work).await;
            drop(held);
            match outcome {
                None => Err("the request was cancelled".to_owned()),
                Some(Err(_)) => Err(format!("no whole answer within {} s", PATIENCE.as_secs())),
                Some(Ok(outcome)) => outcome,
            }
        })))
    }

    async fn fetch(&self, mut asking: Asking) -> Done {
        for _ in 0..=REDIRECTS {
            let response = self.send(&asking).await?;
            let Some(target) = redirect(&response, &asking.url)? else {
                return read(response).await;
            };
            asking.follow(target, response.status());
        }
        Err(format!("more than {REDIRECTS} redirects"))
    }

    async fn send(&self, asking: &Asking) -> Result<Response, String> {
        let env = self.env.as_ref().ok_or("there is no environment")?;
        let Plain { client, is_local } = client::plain(&asking.url, env).map_err(shown)?;
        self.may_fetch(&asking.url, is_local)?;
        let request = client.request(asking.method.clone(), asking.url.clone());
        let request = request.headers(asking.headers.clone());
        let request = match &asking.body {
            Some(body) => request.body(body.clone()),
            None => request,
        };
        let shown_url = origin(&asking.url);
        request.send().await.map_err(|err| failed(&shown_url, &err))
    }

    fn may_fetch(&self, url: &Url, is_local: bool) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        let full = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
        let is_usual = url.port().is_none();
        let named = |it: &String| *it == full || (is_usual && it == host);
        if !self.allow.iter().any(named) {
            let wanted = if is_usual { host } else { &full };
            return Err(format!(
                "fetch: `{wanted}` is not allowed; `allow: [{wanted}]` in the config of the entry would allow it"
            ));
        }
        if url.scheme() != "https" && !is_local {
            return Err(format!("fetch: {} is not asked without TLS; use https", origin(url)));
        }
        Ok(())
    }
}

impl Asking {
    fn read(url: &Value, method: &Value, headers: &Value, body: &Value) -> Result<Self, String> {
        let url = Url::parse(text("an address", url)?)
            .map_err(|err| format!("fetch: no address: {err}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("fetch: an address of kind {} cannot be fetched", url.scheme()));
        }
        let method = text("a method", method)?.to_ascii_uppercase();
        let method =
            Method::from_bytes(method.as_bytes()).map_err(|err| format!("fetch: {err}"))?;
        let mut read = HeaderMap::new();
        for pair in headers.as_array().into_iter().flatten() {
            let name = HeaderName::from_bytes(text("the name of a header", &pair[0])?.as_bytes());
            let name = name.map_err(|_| format!("fetch: {} is no name of a header", pair[0]))?;
            let value = HeaderValue::from_str(text("a header", &pair[1])?);
            let value = value
                .map_err(|_| format!("fetch: the header `{name}` has a value that is none"))?;
            if !OURS.contains(&name.as_str()) {
                read.append(name, value);
            }
        }
        let body = body.as_str().map(str::to_owned);
        Ok(Self { url, method, headers: read, body })
    }

    /// As browsers do. What a script says to one server is not meant for another.
    fn follow(&mut self, target: Url, status: StatusCode) {
        if target.origin() != self.url.origin() {
            let kept = self.headers.remove(CONTENT_TYPE);
            self.headers.clear();
            self.headers.extend(kept.map(|it| (CONTENT_TYPE, it)));
        }
        let becomes_get = matches!(status.as_u16(), 301 | 302) && self.method == Method::POST;
        if becomes_get || status.as_u16() == 303 {
            self.method = Method::GET;
            self.body = None;
            self.headers.remove(CONTENT_TYPE);
        }
        self.url = target;
    }
}

fn redirect(response: &Response, base: &Url) -> Result<Option<Url>, String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(target) = response.headers().get(LOCATION).filter(|_| is_redirect) else {
        return Ok(None);
    };
    let target = target.to_str().map_err(|_| "fetch: a redirect to no address".to_owned())?;
    base.join(target).map(Some).map_err(|err| format!("fetch: a redirect to no address: {err}"))
}

async fn read(mut response: Response) -> Done {
    let (status, url) = (response.status(), response.url().to_string());
    let headers = response.headers().iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
        .collect();
    let (mut body, shown_url) = (Vec::new(), origin(response.url()));
    while let Some(chunk) = response.chunk().await.map_err(|err| failed(&shown_url, &err))? {
        body.extend_from_slice(&chunk);
        if body.len() > LARGEST {
            return Err(format!(
                "fetch: {shown_url} answered with more than {} MiB",
                LARGEST >> 20
            ));
        }
    }
    // As on the web: a byte order mark is no part of the text.
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&body);
    Ok(json!({
        "status": status.as_u16(),
        "statusText": status.canonical_reason().unwrap_or_default(),
        "url": url,
        "headers": headers,
        "body": String::from_utf8_lossy(text),
    }))
}

/// Whom an address speaks to; the rest of it may hold something secret.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn failed(whom: &str, err: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = err;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("fetch: {whom}: {cause}")
}
