//! What a plugin may return where a cleanup is wanted: nothing, a closure, an async closure, or a `Result` of one.

use std::future::Future;

use crate::cordis::error::BoxError;
use crate::cordis::guard::Foreign;

/// How one effect is undone.
pub struct Cleanup(pub(super) Work);

pub(super) enum Work {
    Call(Box<dyn FnOnce() -> Result<(), BoxError>>),
    Future(Box<dyn FnOnce() -> Foreign<()>>),
}

impl Cleanup {
    /// A cleanup that is done when `f` returns.
    pub fn sync(f: impl FnOnce() -> Result<(), BoxError> + 'static) -> Self {
        Self(Work::Call(Box::new(f)))
    }

    /// A cleanup that is done when the future of `f` is.
    pub fn future<F: Future<Output = Result<(), BoxError>> + 'static>(
        f: impl FnOnce() -> F + 'static,
    ) -> Self {
        Self(Work::Future(Box::new(|| Box::pin(f()))))
    }
}

/// What code of a plugin may return where it has nothing to give but success: `()` or a `Result`.
pub trait Outcome {
    /// The same as a `Result`.
    fn outcome(self) -> Result<(), BoxError>;
}

impl Outcome for () {
    fn outcome(self) -> Result<(), BoxError> {
        Ok(())
    }
}

impl<E: Into<BoxError>> Outcome for Result<(), E> {
    fn outcome(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}

/// What a body or the setup of an effect may return as its cleanup: nothing, a closure, an async closure, or a `Result`
/// of one of these. `M` only tells the compiler which of these it is.
pub trait IntoCleanup<M> {
    /// The cleanup, if there is one.
    fn into_cleanup(self) -> Result<Option<Cleanup>, BoxError>;
}

/// Marks for [`IntoCleanup`].
pub mod mark {
    #![expect(missing_debug_implementations, reason = "never built")]
    /// Nothing to undo.
    pub enum Nothing {}
    /// A closure.
    pub enum Closure {}
    /// An async closure.
    pub enum AsyncClosure {}
    /// A cleanup, made already.
    pub enum Made {}
    /// A `Result` of one of the others.
    pub struct Fallible<M>(M);
}

impl IntoCleanup<mark::Nothing> for () {
    fn into_cleanup(self) -> Result<Option<Cleanup>, BoxError> {
        Ok(None)
    }
}

impl<F: FnOnce() -> O + 'static, O: Outcome> IntoCleanup<mark::Closure> for F {
    fn into_cleanup(self) -> Result<Option<Cleanup>, BoxError> {
        Ok(Some(Cleanup::sync(|| self().outcome())))
    }
}

impl<F: AsyncFnOnce() -> O + 'static, O: Outcome> IntoCleanup<mark::AsyncClosure> for F {
    fn into_cleanup(self) -> Result<Option<Cleanup>, BoxError> {
        Ok(Some(Cleanup::future(|| async { self().await.outcome() })))
    }
}

impl IntoCleanup<mark::Made> for Cleanup {
    fn into_cleanup(self) -> Result<Option<Cleanup>, BoxError> {
        Ok(Some(self))
    }
}

impl IntoCleanup<mark::Made> for Option<Cleanup> {
    fn into_cleanup(self) -> Result<Option<Cleanup>, BoxError> {
        Ok(self)
    }
}

impl<M, C: IntoCleanup<M>, E: Into<BoxError>> IntoCleanup<mark::Fallible<M>> for Result<C, E> {
    fn into_cleanup(self) -> Result<Option<Cleanup>, BoxError> {
        self.map_err(Into::into)?.into_cleanup()
    }
}
