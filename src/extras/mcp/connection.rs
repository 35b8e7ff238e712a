//! What is asked of a server: a greeting, its tools, a call. The SDK speaks; this says for how long and how much.
//!
//! Watch for: a request that nobody waits for any more, for whatever reason, is taken back with the notification that the
//! protocol has for that.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context as TaskContext, Waker},
    time::Duration,
};

use rmcp::{
    ClientHandler, RoleClient, ServiceError, ServiceExt,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
        ClientConfig, ClientRequest, Implementation, ListToolsRequest, PaginatedRequestParams,
        ProtocolVersion, RequestId,
    },
    service::{
        ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RunningService,
    },
};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::{
    process::{ChildStdin, ChildStdout},
    sync::Notify,
    time::timeout,
};

use super::{
    offer::Offers,
    pipe::{Flow, Pipe, Stdin},
    raw::{each, members, text},
    wire,
};

/// How long a new list may take.
const RELIST: Duration = Duration::from_secs(20);

/// A connection in which greetings were exchanged.
pub(super) struct Connection {
    service: RunningService<RoleClient, Client>,
    changed: Arc<Notify>,
    flow: Flow,
    _stdin: Stdin,
}

/// The same for whoever only asks.
#[derive(Clone)]
pub(super) struct Line {
    peer: Peer<RoleClient>,
    flow: Flow,
}

/// Why a request has no answer.
#[derive(Debug, Error)]
pub(super) enum Trouble {
    #[error("the server refused: {message} (code {code})")]
    Refused { message: String, code: i32 },
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
    #[error("the connection was lost")]
    Lost,
    #[error("{0}")]
    Greeting(String),
}

impl Connection {
    // Omitted: servers that know only the newest lifecycle of the protocol, which has no greeting. The SDK can probe for
    // it; a server of the old kind that ignores the probe would cost everybody ten seconds.
    /// Greets the server.
    pub(super) async fn open(
        stdin: ChildStdin,
        stdout: ChildStdout,
        flow: Flow,
    ) -> Result<Self, Trouble> {
        let changed = Arc::new(Notify::new());
        let client = Client { changed: Arc::clone(&changed) };
        let pipe = Pipe::new(stdin, stdout, flow.clone());
        let stdin = pipe.stdin();
        // Much larger than what goes on around it.
        let service = Box::pin(client.serve(pipe)).await.map_err(|err| match err {
            ClientInitializeError::JsonRpcError(err) => refused(&err),
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. } => Trouble::Lost,
            other => Trouble::Greeting(other.to_string()),
        })?;
        flow.answered();
        Ok(Self { service, changed, flow, _stdin: stdin })
    }

    pub(super) fn line(&self) -> Line {
        Line { peer: self.service.peer().clone(), flow: self.flow.clone() }
    }

    /// Resolves when the list of tools has changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Resolves when it is lost.
    pub(super) async fn over(&self) {
        self.flow.over.cancelled().await;
    }

    /// Why this side ended it, if it did.
    pub(super) fn broken(&self) -> Option<String> {
        self.flow.broken()
    }

    /// The list once more. A server that does not give it keeps the old one.
    pub(super) async fn relist(&self, server: &str) -> Result<Offers, Trouble> {
        timeout(RELIST, self.list(server)).await.unwrap_or(Err(Trouble::Late(RELIST)))
    }

    /// All tools, page by page. There may be more; then the next page is not asked for.
    pub(super) async fn list(&self, server: &str) -> Result<Offers, Trouble> {
        let is_able = self.service.peer_info().is_some_and(|it| it.capabilities.tools.is_some());
        let (mut offers, mut cursor) = (Offers::default(), None);
        while is_able && !offers.is_full() {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ListToolsRequest { params: Some(params), ..Default::default() };
            let page = self.line().ask(ClientRequest::ListToolsRequest(request)).await?;
            let [tools, next] = members(&page, ["tools", "nextCursor"]).unwrap_or_default();
            let before = offers.seen;
            let is_list = tools.is_some_and(|it| each(it, |tool| offers.add(server, tool)));
            cursor = next.and_then(text);
            if !is_list || cursor.is_none() || offers.seen == before {
                break;
            }
        }
        Ok(offers.complete())
    }

    /// Closes the input of the server, and hears no more of it.
    pub(super) async fn close(mut self) {
        self.flow.over.cancel();
        // An error means that the task of the SDK has ended by itself.
        self.service.close().await.ok();
    }
}

impl Line {
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<String, Trouble> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        timeout(limit, self.ask(request)).await.unwrap_or(Err(Trouble::Late(limit)))
    }

    /// The answer as the server wrote it.
    async fn ask(&self, request: ClientRequest) -> Result<String, Trouble> {
        let options = PeerRequestOptions::no_options();
        let sent = self.peer.send_cancellable_request(request, options).await;
        let handle = sent.map_err(trouble)?;
        let mut asked = Asked { peer: &self.peer, id: Some(handle.id.clone()) };
        let answer = handle.rx.await.unwrap_or(Err(ServiceError::TransportClosed));
        asked.id = None;
        self.flow.answered();
        answer.map(wire::result).map_err(trouble)
    }
}

/// A request on its way. Dropped before it is answered, it is taken back.
struct Asked<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let reason = Some("nobody waits for it any more".to_owned());
        let taken_back = CancelledNotificationParam::new(Some(id), reason);
        let sending = pin!(self.peer.notify_cancelled(taken_back));
        // The first poll puts it into the queue; that it has left nobody waits for.
        let _queued = sending.poll(&mut TaskContext::from_waker(Waker::noop()));
    }
}

fn trouble(err: ServiceError) -> Trouble {
    match err {
        ServiceError::McpError(err) => refused(&err),
        _ => Trouble::Lost,
    }
}

fn refused(err: &rmcp::ErrorData) -> Trouble {
    Trouble::Refused { message: err.message.to_string(), code: err.code.0 }
}

/// What this side is for the server. It offers nothing, so that the SDK refuses whatever a server asks of a client, but
/// for a ping.
struct Client {
    changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
