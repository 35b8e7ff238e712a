//! The hash of a request, taken while its JSON is written: a long conversation is not copied for it.

use std::io::{self, BufWriter, Write};

use ring::digest::{Context, SHA256};
use serde::Serialize;

/// SHA-256, in hexadecimal, of a value as compact JSON.
pub(super) fn of_json(value: &impl Serialize) -> String {
    let mut writer = BufWriter::new(Hashing(Context::new(&SHA256)));
    serde_json::to_writer(&mut writer, value).expect("it is plain JSON");
    let Hashing(context) = writer.into_inner().map_err(drop).expect("hashing does not fail");
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

struct Hashing(Context);

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
