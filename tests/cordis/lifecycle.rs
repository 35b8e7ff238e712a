//! From the mount of a plugin to its end: when things run, and which states are seen.
