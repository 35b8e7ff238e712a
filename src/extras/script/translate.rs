//! Part of `script`: one source file becomes a module that the engine runs. Types are taken out, and each place of the
//! result knows where it stood.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Program as Tree, Statement};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::{Parser, ParserReturn};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};

use super::{
    failure::{Failure, Place},
    program::{Module, Position},
};

/// A file that was translated, and what it imports, in its own words.
pub(super) struct Translated {
    pub(super) module: Module,
    pub(super) imports: Vec<Import>,
}

/// One import of a file.
pub(super) struct Import {
    pub(super) specifier: String,
    pub(super) place: Place,
}

/// Translates one file; `shown` is what messages call it. The error is the first fault, with its place.
pub(super) fn translate(path: &Path, shown: &str, source: &str) -> Result<Translated, Failure> {
    let kind = kind_of(path, shown)?;
    let allocator = Allocator::default();
    let ParserReturn { mut program, diagnostics, module_record, .. } =
        Parser::new(&allocator, source, kind).parse();
    let spot = |offset: u32| place(shown, source, offset);
    let refused = |found: &OxcDiagnostic| Failure {
        problem: found.message.to_string(),
        place: found.labels.first().map(|it| spot(u32::try_from(it.offset()).unwrap_or(u32::MAX))),
        ..Failure::new("")
    };
    if let Some(found) = diagnostics.first() {
        return Err(refused(found));
    }
    let checked = SemanticBuilder::new().with_check_syntax_error(true).build(&program);
    if let Some(found) = checked.diagnostics.first() {
        return Err(refused(found));
    }
    let spans: Vec<_> = module_record.dynamic_imports.iter().map(|it| it.module_request).collect();
    let scoping = checked.semantic.into_scoping();
    let options = TransformOptions::default();
    let done = Transformer::new(&allocator, path, &options).build_with_scoping(scoping, &mut program);
    if let Some(found) = done.diagnostics.first() {
        return Err(refused(found));
    }
    let mut imports = imports(&program, &spot);
    imports.extend(spans.iter().filter_map(|span| {
        let text = span.source_text(source);
        let specifier = text.trim_matches(['"', '\'', '`']);
        let is_fixed = specifier.len() + 2 == text.len() && !specifier.contains("${");
        is_fixed.then(|| Import { specifier: specifier.to_owned(), place: spot(span.start) })
    }));
    Ok(Translated { module: generate(path, shown, source, &program, kind), imports })
}

fn kind_of(path: &Path, shown: &str) -> Result<SourceType, Failure> {
    match path.extension().and_then(|it| it.to_str()) {
        Some("ts" | "mts") => Ok(SourceType::ts()),
        Some("js" | "mjs") => Ok(SourceType::mjs()),
        _ => Err(Failure::new(format!("{shown} is no script: it must end in .ts, .mts, .js or .mjs"))),
    }
}

/// JavaScript runs as it was written; its positions are its own.
fn generate(path: &Path, shown: &str, source: &str, tree: &Tree<'_>, kind: SourceType) -> Module {
    let shown = shown.to_owned();
    if kind.is_javascript() {
        return Module { code: source.to_owned(), shown, positions: Vec::new() };
    }
    let options =
        CodegenOptions { source_map_path: Some(path.to_owned()), ..CodegenOptions::default() };
    let generated = Codegen::new().with_options(options).with_source_text(source).build(tree);
    let tokens = generated.map.iter().flat_map(oxc_sourcemap::SourceMap::get_tokens);
    let mut positions: Vec<_> = tokens
        .map(|it| Position {
            code: (it.get_dst_line(), it.get_dst_col()),
            source: (it.get_src_line(), it.get_src_col()),
        })
        .collect();
    positions.sort_unstable();
    Module { code: generated.code, shown, positions }
}

fn imports(tree: &Tree<'_>, spot: &impl Fn(u32) -> Place) -> Vec<Import> {
    let sources = tree.body.iter().filter_map(|statement| match statement {
        Statement::ImportDeclaration(it) => Some(&it.source),
        Statement::ExportAllDeclaration(it) => Some(&it.source),
        Statement::ExportFromDeclaration(it) => Some(&it.source),
        _ => None,
    });
    sources
        .map(|it| Import { specifier: it.value.to_string(), place: spot(it.span.start) })
        .collect()
}

fn place(shown: &str, source: &str, offset: u32) -> Place {
    let mut offset = (offset as usize).min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &source[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let small = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
    Place { file: shown.to_owned(), line: small(line), column: small(column) }
}
