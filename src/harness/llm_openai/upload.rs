//! The body of a request while it goes out: made piece by piece, as fast as the connection takes it.
//!
//! Watch for: its length is counted first, because many servers refuse a body that does not state it; the messages
//! belong to this thread and the connection to the HTTP client, so the pieces pass through a channel.

use std::{
    convert::Infallible,
    future::{self, Future},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::{select, sync::mpsc, task};

use super::wire::Payload;
use crate::cordis::LocalBoxFuture;

/// What is sent, once or more often.
pub(super) struct Upload<'a> {
    payload: Payload<'a>,
    length: usize,
}

impl<'a> Upload<'a> {
    pub(super) fn new(payload: Payload<'a>) -> Self {
        let length = payload.pieces().map(|it| it.len()).sum();
        Self { payload, length }
    }

    /// A body from its first byte, and what feeds it. The body breaks off where the feed is dropped.
    pub(super) fn begin(&self) -> (reqwest::Body, Feed<'_>) {
        let (tx, pieces) = mpsc::channel(1);
        let feed = async move {
            for piece in self.payload.pieces() {
                let Ok(room) = tx.reserve().await else { break };
                // What came meanwhile is seen first: an early answer is lost if the next write finds the connection closed.
                task::yield_now().await;
                room.send(piece);
            }
            drop(tx);
            future::pending().await
        };
        (reqwest::Body::wrap(Pieces { pieces, left: self.length }), Feed(Box::pin(feed)))
    }
}

/// Feeds a body for as long as somebody waits [beside](Feed::beside) it.
pub(super) struct Feed<'a>(LocalBoxFuture<'a, Infallible>);

impl Feed<'_> {
    /// Goes on until the work is done, which may be before all is sent: a server may answer early.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        select! {
            biased;
            done = work => done,
            never = &mut self.0 => match never {},
        }
    }
}

struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    left: usize,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.poll_recv(cx);
        if let Poll::Ready(Some(piece)) = &piece {
            self.left -= piece.len();
        }
        piece.map(|it| it.map(|it| Ok(Frame::data(it))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
