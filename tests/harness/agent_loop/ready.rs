//! Turns and changes of the configuration keep out of each other's way.
