//! Saves are noticed, once each.
