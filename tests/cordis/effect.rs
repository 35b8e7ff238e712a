//! What a plugin registers is undone with it: in reverse, one at a time, exactly once.
