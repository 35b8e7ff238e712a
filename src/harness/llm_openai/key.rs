//! The key: its variable is named in the file, its value is read for each request and shown nowhere.

use std::{borrow::Cow, ffi::OsStr, rc::Rc};

use reqwest::header::HeaderValue;
use serde::Deserialize;

use crate::{
    cordis::{BoxError, Context, Svc, Warning},
    harness::{
        env::{
            Checking, Env,
            mask::{Mask, can_be_secret},
        },
        llm::LlmError,
        shell::ShellEnv,
        tools::{PostExecute, ToolResult},
    },
};

/// Name of an environment variable. Whoever writes the key itself here learns it without seeing it repeated.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct VariableName(String);

impl TryFrom<String> for VariableName {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let is_name = !text.is_empty()
            && text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
            && !text.starts_with(|it: char| it.is_ascii_digit());
        if is_name {
            Ok(Self(text))
        } else {
            Err(
                "`apiKeyEnv` is the name of an environment variable (letters, digits, _), not the key",
            )
        }
    }
}

impl AsRef<OsStr> for VariableName {
    fn as_ref(&self) -> &OsStr {
        self.0.as_ref()
    }
}

/// A key fit to be sent.
pub(super) struct Key(String);

impl Key {
    /// Reads the variable now.
    pub(super) fn read(variable: &VariableName, env: &Env) -> Result<Self, LlmError> {
        let VariableName(variable) = variable;
        let value = env.get(variable).unwrap_or_default();
        match value.trim() {
            "" => Err(LlmError::MissingKey(variable.clone())),
            key if key.chars().all(|it| it.is_ascii() && !it.is_ascii_control()) => {
                Ok(Self(key.to_owned()))
            }
            _ => Err(LlmError::Setup(format!(
                "the key in {variable} has characters that no key has; was it copied whole?"
            ))),
        }
    }

    /// The header, marked so that no log of the client prints it.
    pub(super) fn header(&self) -> HeaderValue {
        let mut header =
            HeaderValue::from_str(&format!("Bearer {}", self.0)).expect("a key is printable ASCII");
        header.set_sensitive(true);
        header
    }

    /// What hides this key.
    pub(super) fn mask(&self) -> Mask {
        Mask::new(self.forms())
    }

    /// How it may be written: JSON may have it with its slashes escaped.
    fn forms(&self) -> Vec<Rc<str>> {
        if !can_be_secret(&self.0) {
            return Vec::new();
        }
        let mut forms = vec![self.0.as_str().into(), self.0.replace('/', "\\/").into()];
        forms.dedup();
        forms
    }
}

/// A command could print the key, whatever its variable is called, and what it printed is logged and sent.
pub(super) fn keep_secret(
    ctx: &Context,
    variable: VariableName,
    env: &Svc<Env>,
) -> Result<(), BoxError> {
    let key = Key::read(&variable, env);
    if let Err(problem) = &key {
        let problem = problem.to_string();
        ctx.on(move |ctx, _: &Checking| ctx.emit(&Warning(problem.clone())))?;
    }
    let forms = key.map(|it| it.forms()).unwrap_or_default();
    for form in &forms {
        env.hide(form)?;
    }
    let mask = Mask::new(forms);
    let copies = mask.clone();
    ctx.intercept::<ShellEnv>(async move |_, _, next| {
        let mut vars = next.run().await?;
        vars.remove(variable.as_ref());
        // The key may be there a second time, under a name that says nothing.
        vars.retain(|_, value| matches!(copies.text(&value.to_string_lossy()), Cow::Borrowed(_)));
        Ok(vars)
    })?;
    // The outermost listener has the last word on a result.
    ctx.intercept_at::<PostExecute>(i32::MIN, async move |_, _, next| {
        let result = next.run().await?;
        Ok(ToolResult { content: mask.text(&result.content).into_owned(), ..result })
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h_102_the_header_of_a_key_is_marked_so_that_nothing_prints_it() {
        let header = Key("sk-12345".into()).header();

        assert!(header.is_sensitive());
        assert!(!format!("{header:?}").contains("12345"));
    }

    #[test]
    fn a_key_in_place_of_a_name_is_refused_and_not_repeated() {
        for text in ["sk-12345", "", "1ST", "KEY=1", "$KEY"] {
            assert!(!VariableName::try_from(text.to_owned()).expect_err(text).contains("12345"));
        }
        assert!(VariableName::try_from("DEEPSEEK_API_KEY".to_owned()).is_ok());
    }
}
