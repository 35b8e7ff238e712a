//! One answer of the server, and what an error may say of it: one line, cut.
//!
//! Watch for: every word of a server that gets into an error passes through [`quote`].

use reqwest::{StatusCode, Url};
use serde_json::Value;

use super::{
    endpoint::{base_of, shown},
    mend,
};
use crate::harness::llm::LlmError;

const LONGEST_QUOTE: usize = 500;

/// Head and body of an answer.
pub(super) struct Answer {
    /// Who answered, as errors show it.
    pub address: String,
    pub status: StatusCode,
    /// Where it sends us instead.
    pub location: Option<Url>,
    pub text: String,
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
            _ => match mend::parse(&self.text) {
                Ok(body) => self.error_in(&body),
                Err(_) => self.status_error(self.status, &in_words(&self.text)),
            },
        }
    }

    /// The error that a JSON body states. Behind a status of success it may state the true status as its code.
    pub(super) fn error_in(&self, body: &Value) -> LlmError {
        let body = body.get(0).unwrap_or(body);
        let (error, said) = (&body["error"], said(body));
        let is = |kind| error["code"] == kind || error["type"] == kind;
        let stated = status_of(&error["code"]).filter(|_| self.status.is_success());
        let status = stated.unwrap_or(self.status);
        let (status, message) = (status.as_u16(), self.line(status, &said));
        if status == 402 || is("insufficient_quota") {
            LlmError::Quota { status, message }
        } else if is("context_length_exceeded")
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
            self.hint(status)
        )
    }

    fn hint(&self, status: StatusCode) -> &'static str {
        match status {
            _ if self.address.contains("/v1/v1/") => " (`baseUrl` has /v1 twice)",
            StatusCode::NOT_FOUND => {
                " (is `baseUrl` right? /chat/completions is appended to it, often after /v1)"
            }
            _ => "",
        }
    }
}

fn quote(text: &str) -> String {
    let line = text
        .split(|it: char| it.is_whitespace() || it.is_control())
        .filter(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some(_) => line.chars().take(LONGEST_QUOTE - 1).chain(['…']).collect(),
        None => line,
    }
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
