//! Tests.
#![expect(missing_docs, reason = "a test is described by its name")]
