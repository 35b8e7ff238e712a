//! The table of tools, and the way of a call through the pipeline.

mod arguments;
mod listeners;
mod refusals;
mod table;
