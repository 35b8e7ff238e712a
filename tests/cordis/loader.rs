//! The tree follows the file.
