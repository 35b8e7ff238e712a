//! Part of `script`: one source file becomes a module that the engine runs. Types are taken out, and each place of the
//! result knows where it stood.
//!
//! Watch for: whoever reads a program calls itself for each level of it. So this runs on a thread whose stack is as large
//! as the text may need, and what is not used of that takes no memory.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use oxc_allocator::Allocator;
use oxc_ast::{
    AstKind,
    ast::{ImportDeclarationSpecifier, ModuleExportName, Program as Tree, Statement},
};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::{Parser, ParserReturn};
use oxc_semantic::{Semantic, SemanticBuilder};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_transformer::{TransformOptions, Transformer};

use super::{
    failure::{Failure, Place},
    program::{Import, Module, Position},
};
use crate::cordis::guarded;

/// What one piece of text, a word or a sign, can take of the stack.
const LEVEL: usize = if cfg!(debug_assertions) { 24 << 10 } else { 8 << 10 };
/// What is taken in any case, and what is too much.
const STACK: (usize, usize) = (1 << 20, 4 << 30);
/// Nobody waits longer. What is read in several ways, one within the other, takes far more time than its length says.
const PATIENCE: Duration = Duration::from_secs(10);

/// Translates one file; `shown` is what messages call it. The error is the first fault, with its place.
pub(super) fn translate(path: &Path, shown: &str, source: &str) -> Result<Module, Failure> {
    let kind = kind_of(path, shown)?;
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let stack = STACK.0 + pieces(source) * LEVEL;
    if stack > STACK.1 {
        return Err(Failure::new(format!("{shown} is too large to be translated")));
    }
    let (path, source) = (path.to_owned(), source.to_owned());
    let file = File { path, shown: shown.to_owned(), source, kind };
    let (outbox, outcome) = mpsc::channel();
    let work = move || drop(outbox.send(guarded(|| file.translate())));
    let thread = thread::Builder::new().name("translate".into()).stack_size(stack);
    let problem = match thread.spawn(work).map(|_| outcome.recv_timeout(PATIENCE)) {
        Ok(Ok(Ok(outcome))) => return outcome,
        Ok(Ok(Err(panic))) => panic.to_string(),
        // It goes on alone: nothing ends a thread from outside.
        Ok(Err(RecvTimeoutError::Timeout)) => {
            format!("it takes more than {} s, so much of it is nested", PATIENCE.as_secs())
        }
        Ok(Err(RecvTimeoutError::Disconnected)) => "its thread broke".to_owned(),
        Err(err) => format!("no thread: {err}"),
    };
    Err(Failure::new(format!("{shown} cannot be translated: {problem}")))
}

/// At most so many levels has a text: each needs a word or a sign.
fn pieces(source: &str) -> usize {
    let is_word = |it: char| it.is_alphanumeric() || it == '_' || it == '$';
    let (mut pieces, mut inside) = (0, false);
    for it in source.chars() {
        let is_word = is_word(it);
        pieces += usize::from(!(it.is_whitespace() || is_word && inside));
        inside = is_word;
    }
    pieces
}

fn kind_of(path: &Path, shown: &str) -> Result<SourceType, Failure> {
    let problem = match path.extension().and_then(|it| it.to_str()) {
        Some("ts" | "mts") => return Ok(SourceType::ts()),
        Some("js" | "mjs") => return Ok(SourceType::mjs()),
        Some("tsx" | "jsx") => "is JSX, which is not read; a script ends in .ts, .mts, .js or .mjs",
        Some("cts" | "cjs") => {
            "is a CommonJS module, which is not read; with `import` and `export` it can end in .ts or .js"
        }
        Some("json") => {
            "is no script; what it says can stand in the config of the entry, or in a .ts file"
        }
        _ => "is no script: it must end in .ts, .mts, .js or .mjs",
    };
    Err(Failure::new(format!("{shown} {problem}")))
}

/// A file on its way through.
struct File {
    path: PathBuf,
    shown: String,
    source: String,
    kind: SourceType,
}

impl File {
    fn translate(&self) -> Result<Module, Failure> {
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, &self.source, self.kind).parse();
        let ParserReturn { mut program, diagnostics, module_record, .. } = parsed;
        self.refuse(&diagnostics)?;
        let checked = SemanticBuilder::new()
            .with_check_syntax_error(true)
            .with_build_nodes(true)
            .with_enum_eval(true)
            .build(&program);
        self.refuse(&checked.diagnostics)?;
        self.refuse_decorators(&checked.semantic)?;
        let dynamic: Vec<_> =
            module_record.dynamic_imports.iter().map(|it| it.module_request).collect();
        let scoping = checked.semantic.into_scoping();
        let options = TransformOptions::default();
        let transformer = Transformer::new(&allocator, &self.path, &options);
        let done = transformer.build_with_scoping(scoping, &mut program);
        self.refuse(&done.diagnostics)?;
        let fixed = dynamic.into_iter().filter_map(|it| self.dynamic_import(it));
        let imports = self.imports(&program).into_iter().chain(fixed).collect();
        Ok(Module { imports, ..self.generate(&program) })
    }

    fn refuse(&self, diagnostics: &[OxcDiagnostic]) -> Result<(), Failure> {
        let Some(found) = diagnostics.first() else { return Ok(()) };
        // Of the file as a whole it may be said that it is none.
        let place =
            self.place(found.labels.first().map_or(0, oxc_diagnostics::LabeledSpan::offset));
        let breaks = |it: char| it.is_control() || "\u{2028}\u{2029}".contains(it);
        let problem = found.message.replace(breaks, "\u{fffd}");
        Err(Failure { problem, place: Some(place), kind: None })
    }

    // Omitted: decorators. The full-size project compiles them away; its plugins do without.
    fn refuse_decorators(&self, semantic: &Semantic<'_>) -> Result<(), Failure> {
        let found = semantic.nodes().iter().find_map(|it| match it.kind() {
            AstKind::Decorator(it) => Some(it.span()),
            _ => None,
        });
        let Some(span) = found else { return Ok(()) };
        let problem = "decorators are not read; call the function instead".to_owned();
        Err(Failure { problem, place: Some(self.place(span.start)), kind: None })
    }

    /// JavaScript runs as it was written; its positions are its own.
    fn generate(&self, tree: &Tree<'_>) -> Module {
        let shown = self.shown.clone();
        if self.kind.is_javascript() {
            return Module { code: self.source.clone(), shown, ..Module::default() };
        }
        let path = Some(self.path.clone());
        let options = CodegenOptions { source_map_path: path, ..CodegenOptions::default() };
        let generator = Codegen::new().with_options(options).with_source_text(&self.source);
        let generated = generator.build(tree);
        let tokens = generated.map.iter().flat_map(oxc_sourcemap::SourceMap::get_tokens);
        let (code, source) = (Lines::of(&generated.code), Lines::of(&self.source));
        let mut positions: Vec<_> = tokens
            .map(|it| Position {
                code: code.place(it.get_dst_line(), it.get_dst_col()),
                source: source.place(it.get_src_line(), it.get_src_col()),
            })
            .collect();
        positions.sort_unstable();
        Module { code: generated.code, shown, positions, ..Module::default() }
    }

    fn imports(&self, tree: &Tree<'_>) -> Vec<Import> {
        let each = tree.body.iter().filter_map(|statement| {
            let (source, names) = match statement {
                Statement::ImportDeclaration(it) => {
                    (&it.source, it.specifiers.iter().flatten().filter_map(imported).collect())
                }
                Statement::ExportAllDeclaration(it) => (&it.source, Vec::new()),
                Statement::ExportFromDeclaration(it) => {
                    (&it.source, it.specifiers.iter().map(|it| name_of(&it.local)).collect())
                }
                _ => return None,
            };
            let place = self.place(source.span.start);
            Some(Import { specifier: source.value.to_string(), names, place })
        });
        each.collect()
    }

    /// An `import()` of a name that is written out.
    fn dynamic_import(&self, span: Span) -> Option<Import> {
        let text = span.source_text(&self.source);
        let specifier = text.trim_matches(['"', '\'', '`']).to_owned();
        let is_fixed =
            specifier.len() + 2 == text.len() && !specifier.contains(['"', '\'', '`', '$']);
        let place = self.place(span.start);
        is_fixed.then_some(Import { specifier, names: Vec::new(), place })
    }

    fn place(&self, offset: u32) -> Place {
        let mut offset = (offset as usize).min(self.source.len());
        while !self.source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.source[..offset];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count() + 1;
        let small = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        Place { file: self.shown.clone(), line: small(line), column: small(column) }
    }
}

/// Where the lines begin that end with any of the four ends that JavaScript knows, in lines that end with `\n`: so the
/// engine counts, and whoever reads the file.
struct Lines(Vec<(u32, u32)>);

impl Lines {
    fn of(text: &str) -> Self {
        let (mut begins, mut line, mut column) = (vec![(0, 0)], 0, 0);
        let mut chars = text.chars().peekable();
        while let Some(it) = chars.next() {
            column += if it.len_utf16() == 1 { 1 } else { 2 };
            if it == '\n' {
                (line, column) = (line + 1, 0);
            }
            let is_end = match it {
                '\r' => chars.peek() != Some(&'\n'),
                it => matches!(it, '\n' | '\u{2028}' | '\u{2029}'),
            };
            begins.extend(is_end.then_some((line, column)));
        }
        Self(begins)
    }

    fn place(&self, line: u32, column: u32) -> (u32, u32) {
        let begin = self.0.get(line as usize).or(self.0.last()).copied().unwrap_or_default();
        (begin.0, begin.1 + column)
    }
}

/// What of a module an import takes. The whole of it has no name.
fn imported(specifier: &ImportDeclarationSpecifier<'_>) -> Option<String> {
    match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(it) => Some(name_of(&it.imported)),
        ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => Some("default".to_owned()),
        ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => None,
    }
}

fn name_of(name: &ModuleExportName<'_>) -> String {
    name.name().to_string()
}
