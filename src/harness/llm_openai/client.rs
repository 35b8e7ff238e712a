//! The HTTP client: which proxy, which certificates, and what it must not do on its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::{Client, Proxy, Url, redirect::Policy};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tower::util::MapRequestLayer;

use super::{Config, endpoint::Endpoint, proxy};
use crate::harness::{env::Env, llm::LlmError};

/// Servers that close what is idle wait five seconds at least.
const IDLE: Duration = Duration::from_secs(4);
/// A plugin that asks somebody waits so long for a connection.
const CONNECTING: Duration = Duration::from_secs(10);

/// The client for one endpoint.
pub(super) struct Built {
    pub client: Client,
    /// What it goes through.
    pub proxy: Option<Url>,
    made: Arc<AtomicUsize>,
}

impl Built {
    /// How many connections were begun so far.
    pub(super) fn connections(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }
}

/// Makes the client.
///
/// It follows no redirect: a key and a conversation went along. It asks once: who asks again is decided elsewhere.
/// A connection is kept from one step of a turn to the next, and not while the user is thinking.
pub(super) fn build(config: &Config, env: &Env) -> Result<Built, LlmError> {
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let mut builder = Client::builder()
        .connector_layer(MapRequestLayer::new(move |target| {
            count.fetch_add(1, Ordering::Relaxed);
            target
        }))
        .user_agent(concat!("nano-cordis/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls(&config.base_url, env)?)
        .connect_timeout(Duration::from_millis(config.connect_timeout_ms))
        .pool_max_idle_per_host(1)
        .pool_idle_timeout(IDLE)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy();
    let proxy = proxy::choose(&config.base_url, env)?;
    if let Some(url) = &proxy {
        builder = builder.proxy(Proxy::all(url.clone()).map_err(unusable)?);
    }
    let client = builder.build().map_err(unusable)?;
    Ok(Built { client, proxy, made })
}

/// A client for an address that a plugin asks.
pub(crate) struct Plain {
    pub(crate) client: Client,
    /// The address is on this machine.
    pub(crate) is_local: bool,
}

/// Makes one: the same proxies and authorities, and no redirect either. It is used once, so no connection is kept.
pub(crate) fn plain(address: &Url, env: &Env) -> Result<Plain, LlmError> {
    let endpoint =
        Endpoint::try_from(address.origin().ascii_serialization()).map_err(LlmError::Setup)?;
    let builder = Client::builder()
        .user_agent(concat!("nano-cordis/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls(&endpoint, env)?)
        .connect_timeout(CONNECTING)
        .pool_max_idle_per_host(0)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy();
    let builder = match proxy::choose(&endpoint, env)? {
        Some(url) => builder.proxy(Proxy::all(url).map_err(unusable)?),
        None => builder,
    };
    let client = builder.build().map_err(unusable)?;
    Ok(Plain { client, is_local: endpoint.is_local() })
}

fn unusable(err: reqwest::Error) -> LlmError {
    LlmError::Setup(format!("cannot make an HTTP client: {}", err.without_url()))
}

/// The well-known authorities, and those in the file that `SSL_CERT_FILE` names: a company's own, for instance.
fn tls(endpoint: &Endpoint, env: &Env) -> Result<ClientConfig, LlmError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let file = env.get("SSL_CERT_FILE").filter(|it| !it.is_empty());
    if let Some(file) = file.filter(|_| endpoint.url().scheme() == "https") {
        let found: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(&file).and_then(Iterator::collect);
        let problem = match found.map(|it| roots.add_parsable_certificates(it).0) {
            Ok(0) => Some("no certificate is in it".to_owned()),
            Ok(_) => None,
            Err(err) => Some(err.to_string()),
        };
        if let Some(problem) = problem {
            let message = format!("cannot use {file}, which SSL_CERT_FILE names: {problem}");
            return Err(LlmError::Setup(message));
        }
    }
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring knows TLS 1.2 and 1.3");
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
