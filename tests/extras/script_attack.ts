// Random operations of a plugin. Nothing of it may throw into the loop: what fails is what it was to fail with.
type Step = (ctx: any) => unknown

export const inject = ['tools']

let state = 1
function roll(sides: number): number {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0
  return (state >>> 8) % sides
}
const pick = <T,>(list: T[]): T => list[roll(list.length)]
const later = (ms: number) => new Promise<void>(done => setTimeout(done, ms))
const never = () => new Promise<never>(() => {})

const undos: (() => unknown)[] = []
const children: any[] = []
let contexts: any[] = []

const events = ['x/one', 'x/two', 'x/three']
const native = ['tools/changed', 'cordis/notice', 'loader/applied', 'tools/pre-execute', 'tools/post-execute', 'nobody/knows']
const services = ['lamp', 'book', 'shell', 'tools', 'nothing']

/** What a body, a listener or a cleanup may be like. */
function behave(): unknown {
  switch (roll(12)) {
    case 0: throw new Error('thrown')
    case 1: return Promise.reject(new Error('rejected'))
    case 2: return later(roll(5))
    case 3: return later(1).then(() => { throw new Error('late') })
    case 4: return { deep: [1, { a: null }] }
    case 5: return roll(8) === 0 ? never() : 'soon'
    case 6: return () => 1
    case 7: return 1n
    default: return undefined
  }
}

const steps: Step[] = [
  ctx => undos.push(ctx.tools.register(`${me}_${roll(4)}`, 'Random.', { type: 'object' }, () => behave())),
  ctx => ctx.tools.unregister(`${me}_${roll(4)}`),
  ctx => ctx.tools.register('broken', 'x', { type: roll(2) ? 'no such type' : 5 }, () => 1),
  ctx => ctx.tools.execute(pick([`a_${roll(4)}`, `b_${roll(4)}`, 'nobody']), { n: roll(9) }),
  ctx => undos.push(ctx.effect(() => () => behave())),
  ctx => ctx.effect(() => { undos.push(ctx.effect(() => () => {})); return behave() }),
  () => undos.splice(roll(undos.length + 1), 1)[0]?.(),
  () => undos.at(roll(9))?.(),
  ctx => undos.push(ctx.on(pick([...events, ...native]), (...args: any[]) => {
    const next = args.at(-1)
    return roll(2) && typeof next === 'function' ? next() : behave()
  }, roll(3) - 1)),
  ctx => ctx.emit(pick(events), roll(5), { a: [1] }),
  ctx => { for (let it = 0; it < 200; it++) ctx.emit(pick(events), it) },
  ctx => ctx.emit(pick(native), 'text'),
  ctx => ctx.serial(pick(events), 1),
  ctx => ctx.parallel(pick(events), 1),
  ctx => ctx.waterfall(pick(events), 1, () => behave()),
  ctx => undos.push(ctx.provide(pick(['lamp', 'book', `own${roll(3)}`]), { shows: () => behave(), loops: (n: number) => n })),
  ctx => ctx.get(pick(services)),
  async ctx => { await ctx.get(pick(['lamp', 'book']))?.shows?.() },
  ctx => ctx[pick(services)],
  ctx => children.push(ctx.plugin(child())),
  ctx => children.push(ctx.plugin(child())),
  () => children.splice(roll(children.length + 1), 1)[0]?.dispose(),
  async () => { await children.at(roll(5)) },
  async () => { const it = children.at(roll(5)); it && (await it.dispose(), await it.dispose(), it.state) },
  ctx => { ctx.setTimeout(() => behave(), roll(4)) },
  ctx => undos.push(ctx.setInterval(() => behave(), 1 + roll(3))),
  () => { setTimeout(() => { throw new Error('tick') }, roll(3)) },
  () => { const every = setInterval(() => { if (roll(3) === 0) clearInterval(every) }, 1) },
  () => { Promise.reject(new Error('lost')) },
  () => never(),
  () => behave(),
  ctx => ctx.plugin(pick([5, null, {}, { apply: 1 }, class { constructor(c: any) { c.effect(() => () => {}) } }] as any[])),
  ctx => undos.push(ctx.on('dispose', () => behave())),
  ctx => ctx.get('prompt') && ctx.plugin({ inject: ['prompt'], apply: (c: any) => void c.prompt.section(`s${roll(3)}`, roll(5), 'text') }),
  () => console.log('at work', roll(5)),
  () => { const from = Date.now(); while (Date.now() - from < roll(3)); },
  () => { const it: any[] = []; for (let n = 0; n < roll(2000); n++) it.push({ n }) },
  async () => { for (let n = 0; n < roll(50); n++) await null },
  () => structuredClone?.({ a: 1 }),
]

function child(): any {
  return {
    name: `child${roll(5)}`,
    inject: roll(3) ? [] : [pick(services)],
    apply(ctx: any) {
      contexts.push(ctx)
      for (let n = roll(4); n > 0; n--) some(ctx)
      return behave()
    },
  }
}

/** One step, in the name of any plugin of this script that there ever was. */
function some(ctx: any): void {
  const at = roll(6) === 0 && contexts.length ? pick(contexts) : ctx
  try {
    const going: any = pick(steps)(at)
    going?.then?.(null, () => {})
  } catch {}
}

export async function apply(ctx: any, config: any): Promise<unknown> {
  state = config?.seed ?? 1
  contexts = [ctx]
  ctx.tools.register(`act_${me}`, 'Acts.', { type: 'object' }, async (args: any) => {
    state = args.seed
    for (let n = 0; n < args.steps; n++) {
      some(ctx)
      if (roll(4) === 0) await null
    }
    return behave()
  })
  for (let n = roll(4); n > 0; n--) some(ctx)
  return roll(3) ? undefined : () => behave()
}
