//! TypeScript as people write it.

use crate::script::{App, run, tool};

/// What the tool says of a script with these lines before it.
async fn said(app: &App, before: &str, body: &str) -> String {
    app.mount(&format!("{before}\n{}", tool(body))).await;
    app.call("probe").await
}

#[test]
fn what_typescript_adds_works_or_goes() {
    run(async |app| {
        app.tools().await;
        let before = "
import type { Context } from 'cordis'
import type {} from './tools.ts'
declare module 'cordis' { interface Events { 'x/y'(a: string): void } interface Context { more: number } }
declare global { var anything: string }
declare const nowhere: unique symbol
enum Kind { A, B = 5, C }
enum Word { Up = 'up', Down = 'down' }
const enum Fast { One = 1 }
namespace Space { export const inner = 'inner'; export namespace Deep { export const deep = 'deep' } }
abstract class Base<T extends object = {}> {
  declare phantom: T
  static count = 0
  #hidden = 'hidden'
  constructor(public readonly name: string, protected age?: number, private other: T = {} as T) { Base.count++ }
  abstract speak(loud: boolean): string
  get hidden() { return this.#hidden }
}
class Dog extends Base<{ a: 1 }> {
  override speak(this: Dog, loud = false) { return loud ? this.name.toUpperCase() : this.name }
  accessor = 1 as const
}
function over(a: string): string
function over(a: number): number
function over(a: any) { return a }
type Pick2<T, K extends keyof T> = { [P in K]?: T[P] extends infer U ? U : never }
interface Shape { readonly kind: 'a' | `b${string}`; [key: string]: unknown; (): void; new (): Shape }
const config = { port: 80, host: 'x' } satisfies Record<string, unknown>
const asserted = <number>(config.port as unknown)!
function isText(it: unknown): it is string { return typeof it === 'string' }
function assert(it: unknown): asserts it { if (!it) throw new Error('no') }
let definite!: string
const generic = <T,>(it: T): T => it
export type { Shape }
using: for (const x of [1]) { continue using }
";
        let body = "
assert(isText('x')); definite = 'd'
const dog = new Dog('rex', 3)
return [Kind.B, Kind[6], Word.Up, Fast.One, Space.inner, Space.Deep.deep, dog.name, (dog as any).age, dog.hidden,
  dog.speak(true), Base.count, over(1), config.host, asserted, generic<string>('g'), definite, 2 ** 3, 1_000, null ?? 'n',
  dog?.name?.length].join()";

        let said = said(app, before, body).await;

        assert_eq!(said, "5,C,up,1,inner,deep,rex,3,hidden,REX,1,1,x,80,g,d,8,1000,n,3");
    });
}

#[test]
fn what_is_no_program_is_an_error_and_never_a_panic_or_a_full_stack() {
    run(async |app| {
        let deep = 20_000;
        for source in [
            "(".repeat(deep),
            format!("export const a = {}1{}", "[".repeat(deep), "]".repeat(deep)),
            format!("export const a = {}1", "1+".repeat(deep)),
            format!("export const a = {}1", "!".repeat(deep)),
            format!("export const a = {}1", "a=>".repeat(deep)),
            format!("{};", "if(a)".repeat(deep)),
            format!("let a{}", ".b".repeat(deep)),
            format!("type A = {}1{}", "A<".repeat(2000), ">".repeat(2000)),
            "{".repeat(deep),
            "`${".repeat(deep),
            "class A extends ".repeat(2000),
            "\u{0}\u{feff}\u{2028}\\u{110000}".into(),
        ] {
            let outcome = app.def(&source).err();

            assert!(outcome.is_some_and(|it| it.len() < 6000), "{source:.30}");
        }
    });
}
