//! (to be written)
pub mod arguments;
pub mod text;
