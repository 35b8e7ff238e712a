//! Plugin code may wait for anything: what could never end is not waited for.
