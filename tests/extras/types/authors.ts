// What the types for authors promise: what is written here compiles, and what is marked does not. Only `tsc` reads this.
import Schema, { Schema as Named } from 'schemastery'
import { Context, LocalShell, Service, z, type Call, type SessionEvent, type ShellSpec } from 'cordis'
import { Context as Same } from 'nano-cordis'
import { Service as Original } from '../src/cordis/index.ts'

declare module 'cordis' {
  interface Events {
    'weather/changed'(degrees: number): void
    sum(start: number, next: () => number): number
    'weather/ask'(place: string): Promise<number | undefined>
    'weather/tell'(place: string, next: () => Promise<string>): Promise<string>
  }
  interface Context {
    weather: Weather
  }
}

declare module 'nano-cordis' {
  interface Events {
    'weather/other'(): void
  }
}

export class Weather extends Service {
  static inject = ['tools']

  constructor(ctx: Context) {
    super(ctx, 'weather')
  }

  of(place: string) {
    return this.ctx.tools.names().length + place.length
  }
}

export class Other extends Original {}

export class Careful extends LocalShell {
  override async run(spec: ShellSpec, signal?: AbortSignal) {
    const result = await super.run(spec, signal)
    return { ...result, exitCode: result.exitCode ?? 1 }
  }
}

// Configs.

export interface Config {
  host: string
  port?: number
  mode: 'quick' | 'slow'
  inner: { deep: string }
  list: string[]
  map: Record<string, number>
}

export const Config: Schema<Config> = Schema.object({
  host: Schema.string().required(),
  port: Schema.natural().max(65535),
  mode: Schema.union(['quick', 'slow']).default('quick'),
  inner: Schema.object({ deep: Schema.string().default('x') }),
  list: Schema.array(String),
  map: Schema.dict(Schema.number()),
})

const inferred = z.object({
  must: z.string().required(),
  may: z.string(),
  has: z.string().default('x'),
  kind: z.union([z.const('a').description('The first.'), z.const('b')]).default('a'),
  both: z.intersect([z.object({ one: z.number().required() }), z.object({ two: z.boolean().default(true) })]),
})

export function configured(config: Named.Infer<typeof inferred>) {
  const text: string = config.must + config.has + config.kind + config.both.one + config.both.two
  // @ts-expect-error It may be absent.
  const may: string = config.may
  // @ts-expect-error There is no such choice.
  const kind: 'c' = config.kind
  return [text, may, kind]
}

// @ts-expect-error A default is of the type.
Schema.number().default('x')
// @ts-expect-error There is no such method.
Schema.tuple([])
// @ts-expect-error A field of another type than the interface says.
export const Wrong: Schema<{ a: string }> = Schema.object({ a: Schema.number().required() })

// Contexts.

export async function apply(ctx: Context, config: Config) {
  const same: Same = ctx
  ctx.on('weather/changed', degrees => console.log(degrees.toFixed()))
  ctx.on('weather/other', () => {})
  ctx.emit('weather/changed', 5)
  const degrees: number | undefined = await same.serial('weather/ask', config.host)
  const told: string = await ctx.waterfall('weather/tell', 'here', async () => 'nothing')
  const weather: number = ctx.weather.of('here')
  ctx.provide('weather', new Weather(ctx))
  const maybe: number | undefined = ctx.get('weather')?.of('here')
  await ctx.plugin(Weather)
  await ctx.plugin({ apply: child => child.effect(() => () => {}) && undefined })
  const mount = ctx.plugin((child: Context, given: { a: number }) => child.weather.of(String(given.a)) && undefined, { a: 1 })
  await mount.dispose()
  console.log(degrees, told, weather, maybe)

  // @ts-expect-error No such event.
  ctx.on('weather/chnged', () => {})
  // @ts-expect-error Its argument is a number.
  ctx.emit('weather/changed', 'hot')
  // @ts-expect-error No such service.
  ctx.wether
  // @ts-expect-error No such service.
  ctx.get('on')
  // @ts-expect-error A context is given, never made.
  new Context()
}

export function agent(ctx: Context) {
  ctx.on('tools/pre-execute', (call, next) => (call.problem ? { kind: 'deny', reason: call.problem } : next()), -100)
  ctx.on('tools/post-execute', async (call: Call, result, next) => ({ ...(await next()), content: result.content + call.id }))
  ctx.on('agent/request', async (request, next) => ({ ...(await next()), system: request.config.system }), { order: 5 })
  ctx.on('approval/request', () => true)
  ctx.on('session/event', (session, event) => console.log(session.id, told(event)))
  ctx.tools.register('echo', 'Says it again.', { type: 'object' }, async args => `echo: ${args.text}`)
  ctx.tools.register({ name: 'e', description: '', parameters: {}, execute: (_, call) => ({ content: call.raw, isError: true }) })
  ctx.tools.register('f', '', Schema.object({ text: Schema.string().required() }), args => args.text)
  ctx.tools.register({ name: 'g', description: '', execute: () => ({ content: 'fine' }) })
  ctx.prompt.section('more', 150, 'More.')
  setTimeout((text: string) => console.log(text), 5, 'later')

  // @ts-expect-error A verdict has a kind.
  ctx.on('tools/pre-execute', () => ({ deny: 'no' }))
  // @ts-expect-error A verdict is needed.
  ctx.on('tools/pre-execute', () => {})
  // @ts-expect-error There is no such thing here.
  process.exit()
  // @ts-expect-error Nor this.
  document.title
}

export async function capabilities(ctx: Context) {
  const reply = await ctx.llm.chat({ messages: [{ role: 'user', content: 'hi' }] })
  const text: string | null = reply.message.content
  const ended = await ctx.shell.run('ls')
  const code: number | null = ended.exitCode
  ctx.provide('llm', { model: 'mine', chat: ({ messages, system }) => `${system}: ${messages.length}` })
  ctx.provide('llm', { chat: async (_, onDelta, signal) => (onDelta('a'), signal.throwIfAborted(), { role: 'assistant', content: 'a' }) })
  ctx.provide('shell', { run: ({ command, cwd }) => `${cwd}$ ${command}` })
  ctx.provide('shell', { resolve: ({ timeoutMs }) => ({ timeoutMs: timeoutMs / 2 }), run: async () => ({ exitCode: 1, stderr: 'no' }) })
  const sum: number | Promise<number> = ctx.waterfall('sum', 1, () => 2)
  await fetch('https://example.org', { headers: new Headers([['a', 'b']]), body: null })

  // @ts-expect-error It may be a promise, if a listener is somewhere else.
  const exact: number = ctx.waterfall('sum', 1, () => 2)
  // @ts-expect-error A model chats.
  ctx.provide('llm', { model: 'mine' })
  // @ts-expect-error A result has a content.
  ctx.tools.register({ name: 'h', description: '', execute: () => ({ isError: () => true }) })
  return [text, code, sum, exact]
}

function told(event: SessionEvent): string {
  switch (event.type) {
    case 'turn/start':
      return event.data.cwd
    case 'request/header':
      return event.data.header.model
    case 'assistant/message':
      return event.data.message.content ?? ''
    case 'tool/result':
      return event.data.message.tool_call_id
    case 'turn/end':
      return event.data.reason
    case 'compaction/summary':
      return event.data.message.content ?? ''
    case 'tool/call':
      return event.data.arguments
    case 'user/message':
      return event.data.message.content
    case 'step/start':
    case 'step/end':
      return String(event.data.step)
  }
}
