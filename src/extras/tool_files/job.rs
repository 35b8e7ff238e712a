//! Part of `tool-files`: work that may take long, on a thread of its own.

use std::thread;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::error::FileError;
use crate::cordis::BoxError;

/// Does it there. When the token is pulled, or the future is dropped, the work is told to stop.
pub(super) async fn on_thread<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Result<T, BoxError> {
    let stop = cancel.child_token();
    let _told = stop.clone().drop_guard();
    let (tx, rx) = oneshot::channel();
    thread::Builder::new().name("files".into()).spawn(move || {
        // Nobody there any more is nobody to tell.
        tx.send(work(&stop)).ok();
    })?;
    Ok(rx.await.map_err(|_| FileError::Broken)?)
}
