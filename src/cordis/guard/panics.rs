//! How a panic of foreign code becomes an error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::cordis::error::Panic;

thread_local! {
    /// How many calls of foreign code are going on, one inside the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// What the hook has seen of the last panic.
    static SEEN: RefCell<Option<Panic>> = const { RefCell::new(None) };
}

/// Calls foreign code; a panic comes back as an error.
pub(crate) fn call<T>(f: impl FnOnce() -> T) -> Result<T, Panic> {
    DEPTH.set(DEPTH.get() + 1);
    let outcome = panic::catch_unwind(AssertUnwindSafe(f)).map_err(caught);
    DEPTH.set(DEPTH.get() - 1);
    outcome
}

/// The hook knows the place of a panic; but it does not see one that plugin code has caught and resumed.
fn caught(payload: Box<dyn Any + Send>) -> Panic {
    let seen = SEEN.take();
    let said = describe(&*payload, String::new());
    if let Err(bomb) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // What panics when it is dropped might do so again.
        std::mem::forget(bomb);
    }
    seen.filter(|seen| seen.message == said.message).unwrap_or(said)
}

/// Inside a call a panic is recorded and prints nothing; outside, everything is as it was. Idempotent.
pub(in crate::cordis) fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if DEPTH.get() == 0 {
                return previous(panic);
            }
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            SEEN.replace(Some(describe(panic.payload(), place)));
        }));
    });
}

fn describe(payload: &(dyn Any + Send), place: String) -> Panic {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    Panic { message: text.unwrap_or_else(|| "a panic without a message".into()), place }
}
