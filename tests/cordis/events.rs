//! The bus: emit, parallel, serial, waterfall.
