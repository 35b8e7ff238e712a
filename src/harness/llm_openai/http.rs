//! The way to the server: client, proxy, certificates, limits.
//!
//! Watch for: the client is built at the first request, so starting costs nothing; no redirect is followed, because a
//! key and a conversation went along; no limit holds for the whole, so a long answer is never cut while bytes come.

use std::{cell::OnceCell, error::Error, future::Future, rc::Rc, sync::Arc, time::Duration};

use reqwest::{
    Client, Proxy, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION},
    redirect::Policy,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::{Config, answer::Answer, endpoint::shown, key::Key, proxy};
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
    pub(super) async fn send(&self, body: Vec<u8>, key: Option<&Key>) -> Result<Response, LlmError> {
        let mut request = self.client()?.post(self.config.base_url.url().clone()).body(body);
        request = request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "application/json");
        if let Some(key) = key {
            request = request.header(AUTHORIZATION, key.header());
        }
        match self.within(self.config.first_byte_timeout_ms, "firstByteTimeoutMs", request.send()).await? {
            Ok(response) => Ok(response),
            Err(err) if err.is_connect() && err.is_timeout() => Err(self.late(self.config.connect_timeout_ms, "connectTimeoutMs")),
            Err(err) if err.is_connect() => Err(self.lost("cannot connect", &err)),
            Err(err) => Err(self.lost("the connection broke before the answer", &err)),
        }
    }

    /// Reads the answer to its end. Of a refusal, what came before the connection broke is enough.
    pub(super) async fn read(&self, mut response: Response, key: Option<Key>) -> Result<Answer, LlmError> {
        let status = response.status();
        let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok()).and_then(|it| response.url().join(it).ok());
        let mut body = Vec::new();
        let largest = if status.is_success() { LARGEST_REPLY } else { LARGEST_REFUSAL };
        let whole = self.collect(&mut response, &mut body, largest).await;
        if status.is_success() {
            whole?;
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        Ok(Answer { address: self.config.base_url.shown(), status, location, text, key })
    }

    async fn collect(&self, response: &mut Response, body: &mut Vec<u8>, largest: usize) -> Result<(), LlmError> {
        while let Some(piece) = self.piece(response).await? {
            body.extend_from_slice(piece.as_ref());
            if body.len() > largest {
                return Err(LlmError::BadReply(format!("POST {}: the answer is longer than {largest} bytes", self.config.base_url.shown())));
            }
        }
        Ok(())
    }

    /// The next bytes of an answer, as they come; none at its end.
    async fn piece(&self, response: &mut Response) -> Result<Option<impl AsRef<[u8]> + use<>>, LlmError> {
        let piece = self.within(self.config.silence_timeout_ms, "silenceTimeoutMs", response.chunk()).await?;
        piece.map_err(|err| self.lost("the connection broke within the answer", &err))
    }

    async fn within<T>(&self, millis: u64, setting: &'static str, event: impl Future<Output = T>) -> Result<T, LlmError> {
        tokio::time::timeout(Duration::from_millis(millis), event).await.map_err(|_| self.late(millis, setting))
    }

    fn late(&self, millis: u64, setting: &'static str) -> LlmError {
        LlmError::Timeout(format!("POST {}: nothing came for {millis} ms{} (`{setting}`)", self.config.base_url.shown(), self.via()))
    }

    fn lost(&self, what: &str, err: &reqwest::Error) -> LlmError {
        let mut cause: &dyn Error = err;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        LlmError::Transport(format!("POST {}: {what}{}: {cause}", self.config.base_url.shown(), self.via()))
    }

    fn via(&self) -> String {
        let proxy = self.client.get().and_then(|(_, proxy)| proxy.as_ref());
        proxy.map(|it| format!(", through the proxy {}", shown(it))).unwrap_or_default()
    }

    fn client(&self) -> Result<&Client, LlmError> {
        if self.client.get().is_none() {
            let proxy = proxy::choose(&self.config.base_url, &self.env)?;
            let client = build(&self.config, &self.env, proxy.clone())?;
            return Ok(&self.client.get_or_init(|| (client, proxy)).0);
        }
        Ok(&self.client.get().expect("it is there").0)
    }
}

fn build(config: &Config, env: &Env, proxy: Option<Url>) -> Result<Client, LlmError> {
    let mut builder = Client::builder()
        .user_agent(concat!("nano-cordis/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls(env)?)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(Duration::from_millis(config.connect_timeout_ms))
        .no_proxy();
    // Differs: a full client keeps connections. One that the server closed while the user was thinking fails the next
    // request, so each request has its own.
    builder = builder.pool_max_idle_per_host(0);
    if let Some(proxy) = proxy {
        builder = builder.proxy(Proxy::all(proxy).map_err(|err| LlmError::Setup(format!("the proxy cannot be used: {err}")))?);
    }
    builder.build().map_err(|err| LlmError::Setup(format!("no HTTP client: {err}")))
}

/// The well-known roots, and those in the file that `SSL_CERT_FILE` names: a company's own, for instance.
fn tls(env: &Env) -> Result<ClientConfig, LlmError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(file) = env.get("SSL_CERT_FILE").filter(|it| !it.is_empty()) {
        let unusable = |err: &dyn Error| LlmError::Setup(format!("cannot use the certificates in {file} (SSL_CERT_FILE names it): {err}"));
        for certificate in CertificateDer::pem_file_iter(&file).map_err(|err| unusable(&err))? {
            roots.add(certificate.map_err(|err| unusable(&err))?).map_err(|err| unusable(&err))?;
        }
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("ring knows TLS 1.2 and 1.3");
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
