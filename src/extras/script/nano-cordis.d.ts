// Written by `nano-cordis --types`: what a plugin in TypeScript may import and use. Do not change it here; a newer
// program replaces it. It imports nothing and is needed by no program, only by editors and by `tsc`.
//
// A `tsconfig.json` that fits, beside `cordis.yml`:
//
//   { "compilerOptions": { "strict": true, "noEmit": true, "target": "es2023", "lib": ["es2023"], "types": [],
//       "module": "esnext", "moduleResolution": "bundler", "allowImportingTsExtensions": true } }

declare module 'cordis' {
  import { Schema as Built } from 'schemastery'
  export { Schema, Schema as z } from 'schemastery'

  type Awaitable<T> = T | Promise<T>

  /** Undoes what the call did that gave it. The first call does it; unloading the plugin does it too. */
  export type Undo = () => Promise<void>

  /** All that crosses between scripts, and between a script and the agent. Functions do not. */
  export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

  /**
   * What a plugin holds of the world. Whatever it registers through it goes when it is unloaded. The services that it
   * names in `inject` are properties. For services of your own:
   *
   *     declare module 'cordis' { interface Context { weather: Weather } }
   */
  export interface Context {
    /** The table of tools. */
    tools: Tools
    /** The system prompt. */
    prompt: Prompt
    /** The conversations that are open. */
    session: Sessions
    /** The saved ones. */
    persistence: Persistence
    /** The model. */
    llm: Llm
    /** Runs commands, as the user, and without asking: approval guards what the model calls, not plugins. */
    shell: Shell
    /** Runs turns. */
    agentLoop: AgentLoop
    /** The list of plugins. */
    loader: Loader
  }

  export class Context {
    private constructor()
    /** Does something that can be undone, and gives its cleanup. */
    effect(setup: () => () => Awaitable<void>): Undo
    /** Listens. A lower order comes first; the default is 0. */
    on<K extends keyof Events>(event: K, listener: Events[K], options?: ListenerOptions): Undo
    /** Each listener in order; what fails is reported and stops nobody. */
    emit<K extends keyof Events>(event: K, ...args: Parameters<Events[K]>): void
    /** All listeners at the same time; waits for all of them. */
    parallel<K extends keyof Events>(event: K, ...args: Parameters<Events[K]>): Promise<void>
    /** One after the other; the first answer that is not `undefined`, `null` or `false` wins. */
    serial<K extends keyof Events>(event: K, ...args: Parameters<Events[K]>): Promise<Awaited<ReturnType<Events[K]>> | undefined>
    /** Each listener gets `next` as its last argument; the last one here is what stands at the end of the chain. */
    waterfall<K extends keyof Events>(event: K, ...args: Parameters<Events[K]>): Awaitable<Awaited<ReturnType<Events[K]>>>
    /** Offers a service. It counts while this plugin runs. As `llm` or `shell` it is the model or the shell of the agent. */
    provide(name: 'llm', value: LlmProvider): Undo
    provide(name: 'shell', value: ShellProvider): Undo
    provide<K extends Exclude<Service.Name, 'llm' | 'shell'>>(name: K, value: Context[K]): Undo
    /** A service that may be absent. All but `shell` need not stand in `inject` for it. */
    get<K extends Service.Name>(name: K): Context[K] | undefined
    /** Mounts a plugin as a child of this one. */
    plugin<C>(plugin: Plugin<C>, config: C): Mount
    plugin(plugin: Plugin<undefined>): Mount
    /** Timers as effects. */
    setTimeout<A extends unknown[]>(callback: (...args: A) => void, ms?: number, ...args: A): Undo
    setInterval<A extends unknown[]>(callback: (...args: A) => void, ms?: number, ...args: A): Undo
  }

  /** Places among the listeners of `tools/pre-execute`: who decides alone comes before who asks the user. */
  export const Order: { readonly DECIDING: -100; readonly ASKING: 100 }

  export type ListenerOptions = number | boolean | { order?: number; prepend?: boolean }

  /** A plugin in one of its three shapes. A module is the third one, or what it exports as default. */
  export type Plugin<C = any> =
    | ((ctx: Context, config: C) => Awaitable<Cleanup>)
    | (new (ctx: Context, config: C) => object)
    | { name?: string; inject?: Inject; Config?: object; apply(ctx: Context, config: C): Awaitable<Cleanup> }

  /** What a body may return: nothing, or a function that cleans up. */
  export type Cleanup = void | (() => Awaitable<void>)

  /** Names of services that a plugin needs. It runs while all of them are there. */
  export type Inject = readonly string[] | Readonly<Record<string, unknown>>

  /** A plugin that was mounted. Awaiting it waits until it runs, and throws what it failed with. */
  export interface Mount extends PromiseLike<void> {
    readonly state: string
    dispose(): Promise<void>
  }

  /** The base of a class that provides itself under a name. `this.ctx` in a method belongs to whoever calls it. */
  export abstract class Service {
    constructor(ctx: Context, name: string)
    ctx: Context
    static inject?: Inject
  }

  export namespace Service {
    /** Names of services. */
    type Name = Exclude<keyof Context, 'effect' | 'on' | 'emit' | 'parallel' | 'serial' | 'waterfall' | 'provide' | 'get' | 'plugin' | 'setTimeout' | 'setInterval'>
  }

  /** Events and what their listeners look like. For events of your own: `interface Events { 'my/event'(x: number): void }`. */
  export interface Events {
    /** This plugin is running. */
    ready(): Awaitable<void>
    /** This plugin is being unloaded. */
    dispose(): Awaitable<void>
    /** May this call run? Deny it, or ask the others with `next()` and return what they say. */
    'tools/pre-execute'(call: Call, next: () => Promise<Verdict>): Awaitable<Verdict>
    /** What the model will read. Return what `next()` gives, or something else. */
    'tools/post-execute'(call: Call, result: ToolResult, next: () => Promise<ToolResult>): Awaitable<ToolResult>
    /** A tool came or went. */
    'tools/changed'(): void
    /** Only `true` lets the call run; `undefined` or `null` leaves the question to others; anything else refuses. */
    'approval/request'(call: Call): Awaitable<boolean | null | undefined | void>
    /** The part of a request that may be changed. What comes out is logged before it is sent. */
    'agent/request'(request: RequestDraft, next: () => Promise<RequestConfig>): Awaitable<RequestConfig>
    /** The turn is about to end. A text goes to the model, which then goes on. */
    'agent/turn-stopping'(stopping: TurnStopping): Awaitable<string | false | null | undefined | void>
    /** An event is in the log. */
    'session/event'(session: Session, event: SessionEvent): void
    /** A piece of a reply while it comes in. It is not in the log; the whole message will be. */
    'assistant/delta'(session: Session, delta: Delta): void
    /** The names of the variables that a command gets. Return those that it may have. */
    'shell/env'(names: string[], next: () => Promise<string[]>): Awaitable<string[]>
    /** A line for the user. May be raised with `emit`. */
    'cordis/notice'(text: string): void
    /** The same, for what may do harm. */
    'cordis/warning'(text: string): void
    /** A change of `cordis.yml` or of a script has been applied. */
    'loader/applied'(change: { file: string; changed: string[]; failed: { id: string; reason: string }[] }): void
  }

  // Conversations.

  export interface Sessions {
    open(): Session[]
    get(id: string): Session | undefined
    /** A new one. It is closed when this plugin is unloaded. */
    create(): Session
  }

  /** One conversation. What is read of it is a copy; the log has one writer. */
  export interface Session {
    readonly id: string
    /** The log as it is now. */
    readonly events: SessionEvent[]
    /** The newest header. */
    readonly header: Header | undefined
    /** The number of the last turn; 0 before the first. */
    readonly turns: number
    readonly isMidTurn: boolean
    /** The messages so far, as the model is to read them. */
    deriveMessages(): Message[]
    /** Notes a fact of this plugin's own in the log, which other programs may overlook. Gives its number. */
    append(type: string, data?: Json): number
  }

  export interface Persistence {
    list(): { id: string; changed: number; turns: number; state: string; words: string }[]
  }

  export interface AgentLoop {
    /** Runs one turn. */
    run(session: Session | string, text: string, signal?: AbortSignal): Promise<TurnOutcome>
    isBusy(session: Session | string): boolean
  }

  export interface TurnOutcome {
    reason: SessionEvents['turn/end']['reason']
    text: string
    error: SessionEvents['turn/end']['error'] | null
    steps: number
    toolCalls: number
    denied: number
  }

  export interface Loader {
    /** Reads `cordis.yml` again, soon. */
    reload(): void
    entries(): { id: string; name: string; state: string; missing: string[]; error: string | null; optional: boolean; guard: boolean; stale: boolean }[]
    /** Why no turn may begin, if so. */
    problem(): string | undefined
  }

  // Tools.

  export interface Tools {
    /** Adds a tool that lives as long as this plugin. A second one of the same name is refused. */
    register(tool: Tool): Undo
    register(name: string, description: string, parameters: JsonSchema | Built, execute: Tool['execute']): Undo
    /** Takes away a tool that this plugin has registered. */
    unregister(name: string): Promise<void>
    /** What the model is shown, by name. */
    schemas(): ToolSchema[]
    /** The names of all tools. */
    names(): string[]
    /** Runs one call through all policies. Never throws. */
    execute(name: string, args: Json, options?: { id?: string; signal?: AbortSignal }): Promise<ToolResult & { denied: boolean }>
  }

  /** A JSON Schema. */
  export type JsonSchema = { readonly [key: string]: any }

  export interface Tool {
    /** Letters, digits, `_` and `-`, at most 64. */
    name: string
    /** Tells the model what it is good for. */
    description: string
    /**
     * Schema of the arguments: `Schema.object({ … })`, or a JSON Schema. A call that does not fit never reaches `execute`.
     * Defaults are told to the model, and not filled in.
     */
    parameters?: JsonSchema | Built
    /** The body. What it throws the model reads as an error. */
    execute(args: any, call: Call): Awaitable<string | { content: string; isError?: boolean } | Json | void>
  }

  /** What the model reads. */
  export interface ToolResult {
    content: string
    isError: boolean
  }

  /** A call that the model wants to have made. */
  export interface Call {
    readonly id: string
    readonly name: string
    /** Parsed; empty if they could not be. */
    readonly arguments: Readonly<Record<string, any>>
    /** The text that the model wrote. */
    readonly raw: string
    /** Why it will not run, whatever a listener says. */
    readonly problem: string | null
    /** What it would change, as lines of text, if the tool says so. */
    readonly preview: string | null
    readonly session: Session | null
    readonly turn: number
    readonly step: number
    /** Pulled when the turn is to end. */
    readonly signal: AbortSignal
  }

  /** The answer to `tools/pre-execute`. Allowing without having called `next()` refuses; a refusal stays one. */
  export type Verdict = { kind: 'allow' } | { kind: 'deny'; reason: string }

  // Prompt, model, loop.

  export interface Prompt {
    /** Adds a section of the system prompt. The persona has the order 0, advice about tools 100 to 199. */
    section(name: string, order: number, text: string): Undo
    /** The whole system prompt. */
    render(): string
  }

  export interface RequestDraft {
    readonly session: Session
    readonly turn: number
    readonly step: number
    readonly config: RequestConfig
  }

  export interface RequestConfig {
    model: string
    /** The system prompt; empty for none. */
    system: string
  }

  export interface TurnStopping {
    readonly session: Session
    readonly turn: number
    readonly step: number
    /** The last text of the model. */
    readonly text: string
    /** Whether this turn was made to go on before. */
    readonly wasContinued: boolean
    readonly signal: AbortSignal
  }

  /** The model, for plugins that ask it. */
  export interface Llm {
    /** What a request names unless a plugin changes it. */
    readonly model: string
    /** Asks. `onDelta` gets pieces of the answer as they come; the reply is the whole. */
    chat(request: Request, onDelta?: (delta: Delta) => void, signal?: AbortSignal): Promise<Reply>
  }

  /** A model of your own: `ctx.provide('llm', { model, chat })`. What `chat` throws may have a `status` and a `code`. */
  export interface LlmProvider {
    /** Read once, when it is provided. */
    readonly model?: string
    chat(request: Asked, onDelta: (delta: Delta | string) => void, signal: AbortSignal): Awaitable<Reply | AssistantMessage | string>
  }

  /** A request of the agent: nothing is left open but what there is none of. */
  export interface Asked extends Request {
    model: string
    system: string | null
    tools: ToolSchema[]
  }

  /** What is asked. The system prompt is not among the messages. */
  export interface Request {
    model?: string
    system?: string | null
    tools?: ToolSchema[]
    messages: Message[]
  }

  export interface Header {
    model: string
    system?: string
    tools?: ToolSchema[]
  }

  export interface ToolSchema {
    type: 'function'
    function: { name: string; description: string; parameters: JsonSchema }
  }

  export interface Reply {
    message: AssistantMessage
    /** Why the model stopped, in the word of its server. */
    finishReason?: string | null
    /** What it cost in tokens, as its server says it. */
    usage?: { [key: string]: any } | null
  }

  export type Delta =
    | { type: 'text'; text: string }
    | { type: 'reasoning'; text: string }
    | { type: 'retry'; why: string; afterMs: number; attempt: number; of: number }

  /** Messages in the shape of chat completions, as they are logged and sent. */
  export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

  export interface SystemMessage {
    role: 'system'
    content: string
  }

  export interface UserMessage {
    role: 'user'
    content: string
  }

  export interface AssistantMessage {
    role: 'assistant'
    content: string | null
    tool_calls?: ToolCall[]
    reasoning_content?: string
    [more: string]: any
  }

  export interface ToolMessage {
    role: 'tool'
    tool_call_id: string
    content: string
  }

  export interface ToolCall {
    id: string
    type: 'function'
    /** `arguments` is the text that the model wrote. */
    function: { name: string; arguments: string }
  }

  // The log.

  /** An event as the log has it. */
  export type SessionEvent = {
    [T in keyof SessionEvents]: { readonly seq: number; readonly time: number; readonly type: T; readonly data: SessionEvents[T] }
  }[keyof SessionEvents]

  /**
   * The nine types of events, and what each holds. Turns count from 1, and so do the steps in each. Facts of your own:
   * `interface SessionEvents { 'my/fact': { … } }`.
   */
  export interface SessionEvents {
    'turn/start': { turn: number; format: number; cwd: string }
    'step/start': { turn: number; step: number }
    'user/message': { turn: number; step: number; message: UserMessage }
    'request/header': { turn: number; step: number; header: Header }
    'assistant/message': {
      turn: number
      step: number
      message: AssistantMessage
      usage?: { [key: string]: any }
      finishReason?: string
      requestHash?: string
      interrupted?: boolean
    }
    'tool/call': { turn: number; step: number; callId: string; name: string; arguments: string }
    'tool/result': { turn: number; step: number; callId: string; name: string; isError: boolean; message: ToolMessage }
    'step/end': { turn: number; step: number }
    'turn/end': {
      turn: number
      reason: 'completed' | 'max-steps' | 'max-tokens' | 'error' | 'aborted' | 'interrupted'
      error?: { message: string; code?: string; status?: number; requestHash?: string }
    }
    'compaction/summary': {
      from: number
      to: number
      keep: number[]
      message: UserMessage | AssistantMessage
      usage?: { [key: string]: any }
      requestHash?: string
    }
  }

  // Commands.

  export interface Shell {
    /** Fills in what a request leaves open. */
    resolve(request: string | ShellRequest): ShellSpec
    run(request: string | ShellRequest, signal?: AbortSignal): Promise<ShellResult>
  }

  /** A shell of your own. Without `resolve` a request is filled in as usual; a text is what a command printed that ended well. */
  export interface ShellProvider {
    resolve?(request: ShellSpec): Awaitable<Partial<ShellSpec>>
    run(spec: ShellSpec, signal: AbortSignal): Awaitable<Partial<ShellResult> | string>
  }

  /** The shell of this machine, to be extended: `export default class extends LocalShell { … super.run(spec, signal) … }`. */
  export class LocalShell implements Shell {
    constructor(ctx: Context, config?: any)
    ctx: Context
    static Config: object
    resolve(request: string | ShellRequest): ShellSpec
    run(spec: ShellSpec, signal?: AbortSignal): Promise<ShellResult>
  }

  export interface ShellRequest {
    command: string
    cwd?: string
    timeoutMs?: number
  }

  /** What is to be run, nothing left open. */
  export interface ShellSpec {
    command: string
    cwd: string
    timeoutMs: number
    spillDir?: string
  }

  /** How a command ended, whether well or not. */
  export interface ShellResult {
    /** 128 + N after a signal; `null` if it had not ended when it was cancelled. */
    exitCode: number | null
    signal?: string | null
    timedOut?: boolean
    cancelled?: boolean
    timeoutMs?: number
    stdout: string
    stderr: string
    /** Whether it left something behind that still runs. */
    leftChildren?: boolean
  }

  /** Writes a property that is not listed. */
  export function defineProperty(object: object, key: PropertyKey, value: unknown): void
}

declare module 'nano-cordis' {
  export * from 'cordis'
}

/** The original's own path, if no file is there. */
declare module '*/cordis/index.ts' {
  export * from 'cordis'
}

declare module 'schemastery' {
  /** What a config looks like, and what a plugin gets. A field that is neither required nor has a default may be absent. */
  export interface Schema<T = any, Given extends boolean = boolean> {
    /** What a config gets that says nothing of it. */
    default(value: T): Schema<T, true>
    /** It must be written. */
    required(required?: true): Schema<T, true>
    description(text: string): Schema<T, Given>
    /** The least: of a number, or of the length of a text, list or map. */
    min(least: number): Schema<T, Given>
    max(most: number): Schema<T, Given>
    /** Only multiples of it. */
    step(size: number): Schema<T, Given>
    /** With `secret` no message shows the value. */
    role(role: string): Schema<T, Given>
    toJSONSchema(): object
    /** Only for the compiler. */
    readonly '~type'?: { value: T; given: Given }
  }

  export namespace Schema {
    /** What may stand for a schema. */
    type Source = Schema | string | number | boolean | StringConstructor | NumberConstructor | BooleanConstructor

    /** The type of what a plugin gets. */
    type Infer<S> =
      S extends Schema<infer T> ? T
      : S extends StringConstructor ? string
      : S extends NumberConstructor ? number
      : S extends BooleanConstructor ? boolean
      : S

    type Optional<D> = { [K in keyof D]: D[K] extends Schema<any, infer Given> ? (Given extends true ? never : K) : never }[keyof D]

    type Fields<D> = Plain<{ [K in Exclude<keyof D, Optional<D>>]: Infer<D[K]> } & { [K in Optional<D>]?: Infer<D[K]> }>

    type Plain<T> = { [K in keyof T]: T[K] }

    type All<L extends readonly unknown[]> = L extends readonly [infer First, ...infer Rest] ? Infer<First> & All<Rest> : unknown
  }

  export const Schema: {
    any(): Schema<any, false>
    string(): Schema<string, false>
    number(): Schema<number, false>
    /** A whole number that is not negative. */
    natural(): Schema<number, false>
    boolean(): Schema<boolean, false>
    const<const T extends string | number | boolean>(value: T): Schema<T, false>
    array<S extends Schema.Source>(inner: S): Schema<Schema.Infer<S>[], true>
    /** A map whose keys are free. */
    dict<S extends Schema.Source>(inner: S, key?: Schema.Source): Schema<Record<string, Schema.Infer<S>>, true>
    /** A map with these keys. */
    object<D extends Record<string, Schema.Source>>(fields: D): Schema<Schema.Fields<D>, true>
    union<const L extends readonly Schema.Source[]>(choices: L): Schema<Schema.Infer<L[number]>, false>
    /** The fields of several maps in one. */
    intersect<const L extends readonly Schema.Source[]>(parts: L): Schema<Schema.Plain<Schema.All<L>>, true>
  }

  export default Schema
}

// The globals. There is no file system, no process and no module of Node.

interface Console {
  /** Goes to the diagnostics: `nano-cordis -v` shows them. */
  log(...parts: unknown[]): void
  info(...parts: unknown[]): void
  debug(...parts: unknown[]): void
  warn(...parts: unknown[]): void
  error(...parts: unknown[]): void
}

declare const console: Console

/** Timers end with the plugin. */
declare function setTimeout<A extends unknown[]>(callback: (...args: A) => void, ms?: number, ...args: A): number
declare function setInterval<A extends unknown[]>(callback: (...args: A) => void, ms?: number, ...args: A): number
declare function setImmediate<A extends unknown[]>(callback: (...args: A) => void, ...args: A): number
declare function clearTimeout(timer: number | undefined): void
declare function clearInterval(timer: number | undefined): void
declare function clearImmediate(timer: number | undefined): void

declare class AbortSignal {
  private constructor()
  readonly aborted: boolean
  readonly reason: any
  onabort: ((event: { type: 'abort' }) => void) | null
  addEventListener(type: 'abort', listener: (event: { type: 'abort' }) => void): void
  removeEventListener(type: 'abort', listener: (event: { type: 'abort' }) => void): void
  throwIfAborted(): void
}

declare class AbortController {
  readonly signal: AbortSignal
  abort(reason?: unknown): void
}

/** As far as `allow` in the config of the entry goes: exact hosts, with their port unless it is the usual one. */
declare function fetch(url: string, init?: FetchInit): Promise<FetchResponse>

interface FetchInit {
  method?: string
  headers?: Record<string, string> | Iterable<[string, string]>
  body?: string | null
  signal?: AbortSignal
}

interface FetchResponse {
  readonly ok: boolean
  readonly status: number
  readonly statusText: string
  readonly url: string
  readonly headers: Headers
  text(): Promise<string>
  json(): Promise<any>
}

declare class Headers {
  constructor(init?: Record<string, string> | Iterable<[string, string]>)
  append(name: string, value: string): void
  set(name: string, value: string): void
  get(name: string): string | null
  has(name: string): boolean
  [Symbol.iterator](): Iterator<[string, string]>
}

declare const crypto: { randomUUID(): string }
declare function structuredClone<T>(value: T): T
declare const performance: { now(): number; readonly timeOrigin: number }
declare function atob(text: string): string
declare function btoa(text: string): string
declare function queueMicrotask(callback: () => void): void

declare class TextEncoder {
  encode(text?: string): Uint8Array
}

declare class TextDecoder {
  constructor(label?: 'utf-8')
  decode(bytes?: ArrayBuffer | ArrayBufferView): string
}

declare class DOMException extends Error {
  constructor(message?: string, name?: string)
  readonly code: number
}
