//! The hash of a value's JSON, made while the JSON is written: a long conversation is not held once more as text.

use std::io::{self, BufWriter, Write};

use ring::digest::{Context, SHA256};
use serde::Serialize;

/// SHA-256 of the compact JSON, in hexadecimal.
pub(super) fn sha256(value: &impl Serialize) -> String {
    let mut writer = BufWriter::new(Hash(Context::new(&SHA256)));
    serde_json::to_writer(&mut writer, value).expect("a request is plain JSON");
    let Ok(Hash(hash)) = writer.into_inner() else { unreachable!("a hash takes all") };
    hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

struct Hash(Context);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
