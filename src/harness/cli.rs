//! (to be written)
pub mod text;
