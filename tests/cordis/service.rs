//! Caller-bound views: who owns what is registered through a service, and whose declarations count.
