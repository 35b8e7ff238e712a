//! The way to the server: a request goes out, an answer comes in, each wait has its limit.
//!
//! Watch for: the client is built at the first request, so that starting costs nothing; no limit holds for the whole,
//! so that a long answer is never cut while bytes come.

use std::{cell::OnceCell, error::Error, future::Future, io, iter, rc::Rc, time::Duration};

use reqwest::{
    Request, Response,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION},
};
use tokio::time::{Instant, timeout};

use super::{
    Config,
    answer::{Answer, quote},
    body::Body,
    client::{self, Built},
    endpoint::shown,
    key::Key,
    limit::{Alarm, Limit},
    retry::{self, Failed},
    upload::{Feed, Upload},
};
use crate::harness::{
    env::{Env, mask::Mask},
    llm::{Delta, LlmError, Reply},
};

const LARGEST_REFUSAL: usize = 64 << 10;
/// What does not matter any more is waited for so long: the body of a refusal, the cost of a reply that is there.
const LAST_WORDS: Duration = Duration::from_secs(10);
const AFTERTHOUGHT: Duration = Duration::from_millis(20);

/// The way to one server.
pub(super) struct Http {
    config: Rc<Config>,
    env: Rc<Env>,
    client: OnceCell<Built>,
}

impl Http {
    pub(super) fn new(config: Rc<Config>, env: Rc<Env>) -> Self {
        Self { config, env, client: OnceCell::new() }
    }

    /// Sends the request; returns when the head of the answer is there, with what feeds the rest of the body.
    pub(super) async fn send<'a>(
        &self,
        upload: &'a Upload<'_>,
        key: Option<&Key>,
    ) -> Result<(Response, Feed<'a>), Failed> {
        let built = self.client()?;
        let before = built.connections();
        let mut sent = self.try_send(built, upload, key).await?;
        // The server closed a connection that was kept, as it may: it never saw the request.
        let was_kept = || built.connections() == before;
        if matches!(&sent, Err(err) if !err.is_connect() && was_kept()) {
            sent = self.try_send(built, upload, key).await?;
        }
        sent.map_err(|err| self.unanswered(&err))
    }

    async fn try_send<'a>(
        &self,
        built: &Built,
        upload: &'a Upload<'_>,
        key: Option<&Key>,
    ) -> Result<Result<(Response, Feed<'a>), reqwest::Error>, LlmError> {
        let (body, mut feed) = upload.begin();
        let answer = built.client.execute(self.request(built, body, key)?);
        let answer = feed.beside(self.within(self.first_byte(), answer)).await?;
        Ok(answer.map(|it| (it, feed)))
    }

    fn request(
        &self,
        built: &Built,
        body: reqwest::Body,
        key: Option<&Key>,
    ) -> Result<Request, LlmError> {
        let request = built.client.post(self.config.base_url.url().clone()).body(body);
        let json = "application/json";
        let wanted = if self.config.stream { "text/event-stream" } else { json };
        let mut request = request.header(CONTENT_TYPE, json).header(ACCEPT, wanted);
        if let Some(key) = key {
            request = request.header(AUTHORIZATION, key.header());
        }
        let words = |err: reqwest::Error| format!("cannot make a request: {}", err.without_url());
        request.build().map_err(|err| LlmError::Setup(words(err)))
    }

    fn unanswered(&self, err: &reqwest::Error) -> Failed {
        if !err.is_connect() {
            return self.lost("the connection broke before the answer", err).into();
        }
        let lost = self.lost("cannot connect", err);
        match err {
            _ if err.is_timeout() => {
                let setting = "connectTimeoutMs";
                self.late(&Limit::of(self.config.connect_timeout_ms, setting)).into()
            }
            _ if is_refused_by_tls(err) => Failed::for_good(lost),
            _ => lost.into(),
        }
    }

    /// Reads the answer to its end; its text goes to `on_delta` as it comes, the key masked.
    pub(super) async fn read(
        &self,
        mut response: Response,
        mask: Mask,
        on_delta: &dyn Fn(Delta),
    ) -> Result<Reply, Failed> {
        let mut answer = self.head(&response, mask);
        let asked = answer.retry_after;
        let result = if answer.status.is_success() {
            self.reply(&mut response, &mut answer, on_delta).await
        } else {
            let text = self.refusal(&mut response).await;
            answer.text = answer.mask.text(&text).into_owned();
            Err(answer.refusal())
        };
        result.map_err(|why| Failed::from(why).not_before(asked))
    }

    fn head(&self, response: &Response, mask: Mask) -> Answer {
        let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let location = location.and_then(|it| response.url().join(&mask.text(it)).ok());
        Answer {
            address: self.config.base_url.shown(),
            status: response.status(),
            location,
            retry_after: retry::asked(response.headers()),
            text: String::new(),
            mask,
        }
    }

    async fn reply(
        &self,
        response: &mut Response,
        answer: &mut Answer,
        on_delta: &dyn Fn(Delta),
    ) -> Result<Reply, LlmError> {
        let (mut body, mut has_begun, mut now) = (Body::default(), false, Instant::now());
        let (mut progress, mut alarm) = (now, Alarm::new(now));
        while !body.is_done() {
            let limit = self.limit(&body, has_begun, now - progress);
            let piece = match self.piece(response, limit, now, &mut alarm).await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(_) if body.is_whole() => break,
                Err(err) => return Err(err),
            };
            (has_begun, now) = (true, Instant::now());
            let taken = body.take(piece.as_ref());
            body.show(&answer.mask, on_delta);
            if taken.map_err(|fault| body.error(fault, answer))? {
                progress = now;
            }
        }
        // Only a connection whose answer was read to its end can be used again.
        drop(timeout(AFTERTHOUGHT, response.chunk()).await);
        body.end(answer, on_delta)
    }

    /// What came of a refusal before it broke off, grew too long or took too long.
    async fn refusal(&self, response: &mut Response) -> String {
        let mut body = Vec::new();
        let all = async {
            while body.len() < LARGEST_REFUSAL
                && let Ok(Some(piece)) = response.chunk().await
            {
                body.extend_from_slice(&piece);
            }
        };
        drop(timeout(LAST_WORDS, all).await);
        String::from_utf8_lossy(&body).into_owned()
    }

    fn first_byte(&self) -> Limit {
        Limit::of(self.config.first_byte_timeout_ms, "firstByteTimeoutMs")
    }

    /// How long to wait for the next bytes. Any byte ends the wait, but bytes alone are no progress for ever.
    fn limit(&self, body: &Body, has_begun: bool, idle: Duration) -> Limit {
        let silence = match has_begun {
            _ if body.is_whole() => {
                let left = LAST_WORDS.saturating_sub(idle);
                Limit { left, ..self.first_byte() }
            }
            true => Limit::of(self.config.silence_timeout_ms, "silenceTimeoutMs"),
            false => self.first_byte(),
        };
        let life = Limit::of(self.config.keep_alive_limit_ms, "keepAliveLimitMs");
        let left = life.left.saturating_sub(idle);
        if has_begun && left < silence.left { Limit { left, ..life } } else { silence }
    }

    /// The next bytes of an answer, as they come; none at its end. The last came `then`.
    async fn piece(
        &self,
        response: &mut Response,
        limit: Limit,
        then: Instant,
        alarm: &mut Alarm,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, LlmError> {
        if limit.left.is_zero() {
            return Err(self.late(&limit));
        }
        let piece = alarm.before(limit.end(then), response.chunk()).await;
        let piece = piece.ok_or_else(|| self.late(&limit))?;
        piece.map_err(|err| self.lost("the connection broke within the answer", &err))
    }

    async fn within<T>(&self, limit: Limit, event: impl Future<Output = T>) -> Result<T, LlmError> {
        timeout(limit.left, event).await.map_err(|_| self.late(&limit))
    }

    fn late(&self, limit: &Limit) -> LlmError {
        let what = if limit.setting == "keepAliveLimitMs" {
            "nothing but signs of life"
        } else {
            "nothing"
        };
        LlmError::Timeout(format!(
            "POST {}: {what} came for {} ms{} (`{}`)",
            self.config.base_url.shown(),
            limit.millis,
            self.via(),
            limit.setting
        ))
    }

    fn lost(&self, what: &str, err: &reqwest::Error) -> LlmError {
        let mut cause: &dyn Error = err;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        LlmError::Transport(format!(
            "POST {}: {what}{}: {}",
            self.config.base_url.shown(),
            self.via(),
            quote(&cause.to_string())
        ))
    }

    fn via(&self) -> String {
        let proxy = self.client.get().and_then(|it| it.proxy.as_ref());
        proxy.map(|it| format!(", through the proxy {}", shown(it))).unwrap_or_default()
    }

    fn client(&self) -> Result<&Built, LlmError> {
        if let Some(built) = self.client.get() {
            return Ok(built);
        }
        let built = client::build(&self.config, &self.env)?;
        Ok(self.client.get_or_init(|| built))
    }
}

/// A certificate that is not trusted now is not trusted a second later either.
fn is_refused_by_tls(err: &reqwest::Error) -> bool {
    iter::successors(Some(err as &(dyn Error + 'static)), |it| (*it).source()).any(is_of_tls)
}

/// Errors of the system carry others inside of them that are not their sources.
fn is_of_tls(err: &(dyn Error + 'static)) -> bool {
    let inner = err.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    err.is::<rustls::Error>() || inner.is_some_and(|it| is_of_tls(it))
}
