// What a script holds of the world: the context, in the words of the original.

import { later, now, onStart, share } from 'nano-cordis/host'
import { schemaOf } from 'nano-cordis/schema'
import { service } from 'nano-cordis/services'

/** What has to wait until the plugin is running. */
const READY = Symbol('ready')

/** The number of a context, for the agent. */
export const NUMBER = Symbol('number')

/** A context. Each belongs to one plugin, and what is registered through it goes with that plugin. */
export class Context {
  constructor() {
    throw new TypeError('a script gets its context as the first argument of `apply`')
  }

  /** Registers something that can be undone: `setup` does it and returns the cleanup. */
  effect(setup) {
    now('check', this[NUMBER])
    const cleanup = setup()
    if (typeof cleanup !== 'function') throw new TypeError('an effect must return its cleanup, a function')
    return undoing(now('effect', this[NUMBER], share(cleanup)))
  }

  /** Listens to an event. */
  on(event, listener, options) {
    if (typeof listener !== 'function') throw new TypeError(`the listener of \`${event}\` is no function`)
    if (event === 'ready') return this[READY] ? void this[READY].push(listener) : void Promise.resolve().then(listener)
    if (event === 'dispose') return this.effect(() => listener)
    const order = typeof options === 'number' ? options : (options?.order ?? (options?.prepend || options === true ? -1 : 0))
    return undoing(now('on', this[NUMBER], event, share(listener), order))
  }

  /** Offers a service under a name. */
  provide(name, value) {
    return undoing(now('provide', this[NUMBER], name, share(value)))
  }

  /** A service if it is there, whatever was declared. */
  get(name) {
    return service(this, name, false)
  }
}

function undoing(effect) {
  let undone
  return () => (undone ??= later('undo', effect))
}

/** A context whose further properties are the services that its plugin may read. */
export function contextOf(number) {
  const context = Object.create(Context.prototype, {
    [NUMBER]: { value: number },
    [READY]: { value: [], writable: true },
  })
  return new Proxy(context, {
    get(target, key) {
      if (typeof key === 'symbol' || key in target) return target[key]
      // What the engine asks of anything that is awaited or written as JSON.
      if (key === 'then' || key === 'toJSON') return undefined
      return service(target, key, true)
    },
  })
}

/** What of a value makes it a plugin. */
function shapeOf(value) {
  const isObject = typeof value === 'object' && value !== null
  const body = typeof value === 'function' ? value : isObject ? value.apply : undefined
  if (typeof body !== 'function') {
    throw new TypeError('it exports no plugin: `export function apply(ctx, config)`, or a default export that is a function, a class or an object with `apply`')
  }
  const isClass = /^class\b/.test(Function.prototype.toString.call(body))
  const name = typeof value.name === 'string' && value.name !== 'apply' && value.name !== 'default' ? value.name : null
  return { value, body, isClass, name, inject: value.inject ?? [], schema: schemaOf(value.Config) }
}

async function run({ value, body, isClass }, context, config) {
  const result = isClass ? new body(context, config) : await body.call(value, context, config)
  for (const listener of context[READY]) await listener()
  context[READY] = null
  return !isClass && typeof result === 'function' ? share(result) : null
}

globalThis.__loaded = namespace => {
  const plugin = shapeOf('default' in namespace ? namespace.default : namespace)
  onStart((number, config) => run(plugin, contextOf(number), config))
  globalThis.__exports = { name: plugin.name, inject: plugin.inject, schema: plugin.schema }
}
