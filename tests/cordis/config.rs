//! Schemas, defaults, and errors with paths.
