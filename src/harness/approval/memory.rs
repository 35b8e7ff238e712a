//! Part of `approval`: the door for a plugin that remembers answers. This is the definition, not a plugin.
//!
//! Watch for: what is remembered is bound when the question is asked, not when it is answered: a tool may change meanwhile.

use crate::{cordis::Service, harness::tools::Call};

/// The service `approvalMemory`. Without it a yes counts once.
pub trait Memory: 'static {
    /// Whether "always" is an answer to the question about this call, and what to do if it comes; the answer is a yes then.
    fn offer(&self, call: &Call) -> Option<Remember>;
}

/// From now on exactly this call is approved.
pub type Remember = Box<dyn FnOnce()>;

impl Service for dyn Memory {
    const NAME: &str = "approvalMemory";
}
