//! The way to the server: a request goes out, an answer comes in, each wait has its limit.
//!
//! Watch for: the client is built at the first request, so that starting costs nothing; no limit holds for the whole,
//! so that a long answer is never cut while bytes come.

use std::{cell::OnceCell, error::Error, future::Future, rc::Rc, time::Duration};

use reqwest::{
    Client, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION},
};

use super::{Config, answer::Answer, client, endpoint::shown, key::Key};
use crate::harness::{env::Env, llm::LlmError};

const LARGEST_REPLY: usize = 64 << 20;
const LARGEST_REFUSAL: usize = 64 << 10;

/// The way to one server.
pub(super) struct Http {
    config: Rc<Config>,
    env: Rc<Env>,
    client: OnceCell<(Client, Option<Url>)>,
}

impl Http {
    pub(super) fn new(config: Rc<Config>, env: Rc<Env>) -> Self {
        Self { config, env, client: OnceCell::new() }
    }

    /// Sends the request; returns when the head of the answer is there.
    pub(super) async fn send(
        &self,
        body: Vec<u8>,
        key: Option<&Key>,
    ) -> Result<Response, LlmError> {
        let request = self.client()?.post(self.config.base_url.url().clone()).body(body);
        let json = "application/json";
        let mut request = request.header(CONTENT_TYPE, json).header(ACCEPT, json);
        if let Some(key) = key {
            request = request.header(AUTHORIZATION, key.header());
        }
        let limit = self.config.first_byte_timeout_ms;
        match self.within(limit, "firstByteTimeoutMs", request.send()).await? {
            Ok(response) => Ok(response),
            Err(err) if err.is_connect() && err.is_timeout() => {
                Err(self.late(self.config.connect_timeout_ms, "connectTimeoutMs"))
            }
            Err(err) if err.is_connect() => Err(self.lost("cannot connect", &err)),
            Err(err) => Err(self.lost("the connection broke before the answer", &err)),
        }
    }

    /// Reads the answer to its end, the key masked. Of a refusal, what came before the connection broke is enough.
    pub(super) async fn read(
        &self,
        mut response: Response,
        key: Option<&Key>,
    ) -> Result<Answer, LlmError> {
        let without_key = |text: &str| key.map_or_else(|| text.to_owned(), |key| key.mask(text));
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let location = location.and_then(|it| response.url().join(&without_key(it)).ok());
        let mut body = Vec::new();
        let most = if status.is_success() { LARGEST_REPLY } else { LARGEST_REFUSAL };
        let whole = self.collect(&mut response, &mut body, most).await;
        if status.is_success() {
            whole?;
        }
        let text = without_key(&String::from_utf8_lossy(&body));
        Ok(Answer { address: self.config.base_url.shown(), status, location, text })
    }

    async fn collect(
        &self,
        response: &mut Response,
        body: &mut Vec<u8>,
        most: usize,
    ) -> Result<(), LlmError> {
        while let Some(piece) = self.piece(response).await? {
            body.extend_from_slice(piece.as_ref());
            if body.len() > most {
                return Err(LlmError::BadReply(format!(
                    "POST {}: the answer is longer than {most} bytes",
                    self.config.base_url.shown()
                )));
            }
        }
        Ok(())
    }

    /// The next bytes of an answer, as they come; none at its end.
    async fn piece(
        &self,
        response: &mut Response,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, LlmError> {
        let limit = self.config.silence_timeout_ms;
        let piece = self.within(limit, "silenceTimeoutMs", response.chunk()).await?;
        piece.map_err(|err| self.lost("the connection broke within the answer", &err))
    }

    async fn within<T>(
        &self,
        millis: u64,
        setting: &'static str,
        event: impl Future<Output = T>,
    ) -> Result<T, LlmError> {
        tokio::time::timeout(Duration::from_millis(millis), event)
            .await
            .map_err(|_| self.late(millis, setting))
    }

    fn late(&self, millis: u64, setting: &'static str) -> LlmError {
        LlmError::Timeout(format!(
            "POST {}: nothing came for {millis} ms{} (`{setting}`)",
            self.config.base_url.shown(),
            self.via()
        ))
    }

    fn lost(&self, what: &str, err: &reqwest::Error) -> LlmError {
        let mut cause: &dyn Error = err;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        LlmError::Transport(format!(
            "POST {}: {what}{}: {cause}",
            self.config.base_url.shown(),
            self.via()
        ))
    }

    fn via(&self) -> String {
        let proxy = self.client.get().and_then(|(_, proxy)| proxy.as_ref());
        proxy.map(|it| format!(", through the proxy {}", shown(it))).unwrap_or_default()
    }

    fn client(&self) -> Result<&Client, LlmError> {
        if let Some((client, _)) = self.client.get() {
            return Ok(client);
        }
        let built = client::build(&self.config, &self.env)?;
        Ok(&self.client.get_or_init(|| built).0)
    }
}
