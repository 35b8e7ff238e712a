//! Tasks that belong to a plugin.
