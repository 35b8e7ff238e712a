//! What a script prints, as the program shows it.

use crate::support::{Folder, list};

const PRINTS: &str = "import { Schema } from 'cordis'
console.log('loads')
export const Config = Schema.object({ key: Schema.string().role('secret') })
export function apply(ctx, config) {
  console.warn('key', config.key, { deep: [config.key] })
  setTimeout(() => console.log('later'), 1)
  return () => console.log('ends')
}";

#[test]
fn what_a_script_prints_is_shown_without_secrets_from_its_first_line_to_its_last() {
    let entry = "- {id: s, name: ./s.ts, config: {key: sk-0123456789}}\n";
    let folder = Folder::with(&(list(&[]) + entry));
    folder.write("s.ts", PRINTS);

    let ended = folder.run(&["-v", "hi"], "y\n");

    let is_line = |it: &&str| it.contains("nano_cordis::script");
    let words = |it: &str| it.rsplit_once("script: ").unwrap().1.to_owned();
    let mut lines: Vec<_> = ended.err.lines().filter(is_line).map(words).collect();
    lines.retain(|it| it != "later");
    assert_eq!(lines, ["loads", "key *** { deep: [\"***\"] }", "ends"], "{}", ended.err);
    assert!(!ended.err.contains("sk-0123456789"), "{}", ended.err);
}

#[test]
fn what_it_prints_before_it_fails_to_load_is_shown_too() {
    let folder = Folder::with(&(list(&[]) + "- {id: s, name: ./s.ts}\n"));
    folder.write(
        "s.ts",
        "for (let it = 0; it < 100; it++) console.log('line', it)\nthrow new Error('no')",
    );

    let ended = folder.run(&["-v", "hi"], "");

    assert_eq!(ended.code(), 2);
    assert_eq!(ended.err.matches("script: line ").count(), 100, "{}", ended.err);
    assert!(ended.err.contains("entry `s`: s.ts:2:16: no"), "{}", ended.err);
}
