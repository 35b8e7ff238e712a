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
    assert!(failure.place.is_some(), "nowhere: {failure}");
    failure.place.iter().for_each(|it| text.must_have(it));
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

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index, sample::select};

    use super::source;

    /// Words and signs of TypeScript, and some that are none.
    const WORDS: &str = "( ) [ ] { } < > => = : ; , . ?. ?? ? ! ... ` ${ ' \" / // /* */ a b T 0 1n /a/g let const var \
        function class extends interface type enum namespace declare abstract async await yield import export default \
        from as satisfies keyof typeof infer is asserts readonly public private static get set new this super if else \
        for while do switch case try catch finally return throw break continue in of instanceof void delete null true \
        unique never any string object global module require accessor override out using @ #a # \\u0061 \\ && || &&= ** \
        ++ -- += >>>= import( import.meta new.target constructor( <T> <T,> <any> :number !: ?: ()=> =>{ -? +readonly \
        #! <!-- --> 'use\u{a0}strict' with(a) label: debugger \u{feff} \u{2028} \r \u{0} é 😀";

    const REAL: [&str; 8] = [
        include_str!("../../../examples/exercise-1-add-a-tool/tool-date.ts"),
        include_str!("../../../examples/exercise-3-write-a-policy/no-rm-rf.ts"),
        include_str!("../../../examples/exercise-5-read-only-shell/shell-readonly.ts"),
        include_str!("../../../examples/llm-in-typescript/llm-chat.ts"),
        include_str!("../../../examples/mini-harness/echo.ts"),
        include_str!("prelude/host.js"),
        include_str!("prelude/schema.js"),
        include_str!("prelude/console.js"),
    ];

    fn words() -> Vec<&'static str> {
        WORDS.split(' ').filter(|it| !it.is_empty()).collect()
    }

    /// What a file becomes when pieces of it go, come, or stand twice, and the rest is cut off.
    fn damaged(real: &str, damage: &[(Index, Index, &str)], end: Index) -> String {
        let mut text: Vec<char> = real.chars().collect();
        text.truncate(end.index(text.len()) + 1);
        for (at, length, with) in damage {
            let at = at.index(text.len() + 1);
            let length = length.index(13).min(text.len() - at);
            text.splice(at..at + length, with.chars());
        }
        text.into_iter().collect()
    }

    proptest! {
        #[test]
        fn any_words_are_a_program_or_refused_at_a_place(
            soup in vec((select(words()), select(vec!["", " ", "\n"])), 0..40),
        ) {
            let text: String = soup.iter().flat_map(|(word, gap)| [*word, *gap]).collect();
            source(text.as_bytes());
        }

        #[test]
        fn a_damaged_program_is_one_or_refused_at_a_place(
            real in select(REAL.to_vec()),
            damage in vec((any::<Index>(), any::<Index>(), select(words())), 0..5),
            end in any::<Index>(),
        ) {
            source(damaged(real, &damage, end).as_bytes());
        }
    }

    #[test]
    fn what_people_write_is_a_program() {
        for it in REAL {
            source(it.as_bytes());
        }
    }
}
