//! Many of everything.
