//! Where plugins come from.
