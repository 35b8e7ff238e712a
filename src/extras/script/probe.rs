//! What holds of every text that is to be a script: said once, and tried by random tests here and by a fuzz target.

use std::path::Path;

use super::{
    failure::{Failure, Place},
    program::Module,
    translate::translate,
};

/// As TypeScript and as JavaScript: it becomes a module whose places are places of the text, or is refused in one line, at
/// a place of it.
pub(crate) fn source(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for name in ["a.ts", "a.js"] {
        let outcome = translate(Path::new(name), name, &text);
        let text = Text::of(text.strip_prefix('\u{feff}').unwrap_or(&text));
        match outcome {
            Ok(module) => accepted(&text, &module),
            Err(failure) => refused(&text, &failure),
        }
    }
}

fn accepted(text: &Text, module: &Module) {
    let code = Text::of(&module.code);
    assert!(module.positions.is_sorted());
    for it in &module.positions {
        assert!(text.has(it.source.0, it.source.1), "{it:?}");
        assert!(code.has(it.code.0, it.code.1), "{it:?}");
    }
    module.imports.iter().for_each(|it| text.must_have(&it.place));
}

fn refused(text: &Text, failure: &Failure) {
    text.must_have(failure.place.as_ref().unwrap_or_else(|| panic!("nowhere: {failure}")));
    assert!(!failure.problem.contains('\n') && failure.problem.len() < 6000, "{failure}");
}

/// How long each line is, as JavaScript counts.
struct Text(Vec<usize>);

impl Text {
    fn of(text: &str) -> Self {
        Self(text.split('\n').map(|it| it.encode_utf16().count()).collect())
    }

    /// Both from 0; behind the last character is a place, too.
    fn has(&self, line: u32, column: u32) -> bool {
        self.0.get(line as usize).is_some_and(|length| column as usize <= *length)
    }

    fn must_have(&self, place: &Place) {
        let (line, column) = (place.line.checked_sub(1), place.column.checked_sub(1));
        assert!(line.zip(column).is_some_and(|(line, column)| self.has(line, column)), "{place}");
    }
}
