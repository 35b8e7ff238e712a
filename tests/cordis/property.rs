//! Random sequences, compared with simple models.
