//! One answer of the server, and what an error may say of it: one line, cut.
//!
//! Watch for: every word of a server that gets into an error passes through [`quote`], and is masked before.

use std::time::Duration;

use reqwest::{StatusCode, Url};
use serde_json::Value;

use super::{
    endpoint::{base_of, shown},
    mend,
};
use crate::harness::{env::mask::Mask, llm::LlmError};

const LONGEST_QUOTE: usize = 500;

/// What services call it when there is no money left.
const NO_QUOTA: [&str; 3] =
    ["insufficient_quota", "exceeded_current_quota_error", "billing_hard_limit_reached"];

/// What a refusal that names one of these fields can be helped with.
const REMEDIES: [(&str, &str); 3] = [
    ("stream_options", " (`body: { stream_options: null }` leaves it out)"),
    ("reasoning_content", " (`reasoning` says whether it is sent: auto, send or drop)"),
    ("max_completion_tokens", " (`maxTokensField` names the field of `maxTokens`)"),
];

/// Head of an answer, and what errors may quote of its body.
pub(super) struct Answer {
    /// Who answered, as errors show it.
    pub address: String,
    pub status: StatusCode,
    /// Where it sends us instead.
    pub location: Option<Url>,
    /// How long the service asks to be left alone.
    pub retry_after: Option<Duration>,
    pub text: String,
    pub mask: Mask,
}

impl Answer {
    /// The error that an answer without success is.
    pub(super) fn refusal(&self) -> LlmError {
        match &self.location {
            Some(target) if self.status.is_redirection() => {
                let advice = format!(
                    "it redirects to {}, which is not followed; write {} as `baseUrl`",
                    shown(target),
                    base_of(target)
                );
                self.status_error(self.status, &advice)
            }
            _ => match mend::parse(self.text.strip_prefix("data:").unwrap_or(&self.text)) {
                Ok(body) => self.error_in(&body),
                Err(_) => self.status_error(self.status, &in_words(&self.text)),
            },
        }
    }

    /// The error that a JSON body states. Behind a status of success it may state the true status as its code.
    pub(super) fn error_in(&self, body: &Value) -> LlmError {
        let body = body.get(0).unwrap_or(body);
        let (error, said) = (&body["error"], self.mask.text(&said(body)).into_owned());
        let is = |kind: &&str| error["code"] == **kind || error["type"] == **kind;
        let codes = [&error["code"], &error["status"], &body["code"]];
        let stated = codes.into_iter().find_map(status_of).filter(|_| self.status.is_success());
        let status = stated.unwrap_or(self.status);
        let (status, message) = (status.as_u16(), self.line(status, &said));
        if status == 402 || NO_QUOTA.iter().any(is) {
            LlmError::Quota { status, message }
        } else if is(&"context_length_exceeded")
            || (matches!(status, 200 | 400 | 413 | 422) && is_about_length(&said))
        {
            LlmError::ContextLength { status, message }
        } else {
            LlmError::Status { status, message }
        }
    }

    /// The error that an answer with success and without a reply is.
    pub(super) fn bad(&self, problem: &str) -> LlmError {
        let (problem, text) = (quote(problem), quote(&in_words(&self.text)));
        LlmError::BadReply(format!("POST {}: {problem}: {text}", self.address))
    }

    /// The error that an answer is which began as a reply and did not stay one.
    pub(super) fn broken(&self, problem: &str) -> LlmError {
        let problem = quote(&self.mask.text(problem));
        LlmError::Broken(format!("POST {}: {problem}", self.address))
    }

    /// The error that an answer without end is. The same request would bring the same flood.
    pub(super) fn flood(&self, most: usize) -> LlmError {
        let most = most >> 20;
        let problem = format!("the reply is longer than {most} MiB (`maxTokens` limits it)");
        LlmError::BadReply(format!("POST {}: {problem}", self.address))
    }

    /// The error for a status and some words about it.
    pub(super) fn status_error(&self, status: StatusCode, words: &str) -> LlmError {
        LlmError::Status { status: status.as_u16(), message: self.line(status, words) }
    }

    fn line(&self, status: StatusCode, words: &str) -> String {
        let reason = status.canonical_reason().map(|it| format!(" {it}")).unwrap_or_default();
        let colon = if words.is_empty() { "" } else { ": " };
        format!(
            "POST {}: {}{reason}{colon}{}{}",
            self.address,
            status.as_u16(),
            quote(words),
            self.hint(status, words)
        )
    }

    fn hint(&self, status: StatusCode, words: &str) -> &'static str {
        let remedy = || REMEDIES.iter().find(|(field, _)| words.contains(field));
        match status {
            _ if self.address.contains("/v1/v1/") => " (`baseUrl` has /v1 twice)",
            StatusCode::NOT_FOUND => {
                " (is `baseUrl` right? /chat/completions is appended to it, often after /v1)"
            }
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                remedy().map_or("", |(_, hint)| hint)
            }
            _ => "",
        }
    }
}

/// Whether a body, a chunk or a choice stands for a failure.
pub(super) fn states_error(body: &Value) -> bool {
    let error = body.get(0).unwrap_or(body).get("error").unwrap_or(&Value::Null);
    let is_none = error.is_null() || *error == false || *error == "";
    !is_none || body["object"] == "error"
}

/// What a reply, a chunk or a choice says about its cost. Empty, or all null, says nothing.
pub(super) fn usage_of(body: &Value) -> Option<Value> {
    let usage = body.get("usage")?.as_object()?;
    usage.values().any(|it| !it.is_null()).then(|| Value::Object(usage.clone()))
}

/// One line without control characters and without marks that turn the direction of writing.
pub(super) fn quote(text: &str) -> String {
    let line = text
        .split(|it: char| it.is_whitespace() || it.is_control() || is_invisible(it))
        .filter(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some(_) => line.chars().take(LONGEST_QUOTE - 1).chain(['…']).collect(),
        None => line,
    }
}

/// Marks that reorder or hide what a person reads.
fn is_invisible(it: char) -> bool {
    matches!(it, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
        || matches!(it, '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(it, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A code that is the status of a failure, as a number or its text.
fn status_of(code: &Value) -> Option<StatusCode> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    let status = StatusCode::from_u16(number.try_into().ok()?).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

/// What the error of a body says, whatever shape it has.
fn said(body: &Value) -> String {
    let error = &body["error"];
    let places =
        [&error["message"], error, &body["message"], &body["detail"], &body["detail"][0]["msg"]];
    let words = places.into_iter().find_map(|it| it.as_str().filter(|it| !it.is_empty()));
    words.map_or_else(|| body.to_string(), str::to_owned)
}

/// A page comes down to its title.
fn in_words(text: &str) -> String {
    let text = text.trim_start();
    if !text.starts_with('<') {
        return text.to_owned();
    }
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let from = at + lower[at..].find('>')? + 1;
        Some(&text[from..from + lower[from..].find("</title")?])
    });
    title.map_or_else(|| "a page of HTML".to_owned(), |it| format!("a page of HTML, titled {it}"))
}

fn is_about_length(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    let limits = ["context length", "context_length", "context window", "context size"];
    let excesses = ["prompt is too long", "too many tokens"];
    limits.iter().chain(&excesses).any(|it| said.contains(it))
}
