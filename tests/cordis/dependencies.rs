//! Plugins start and stop as the services they need come and go, whatever the order they were mounted in.
