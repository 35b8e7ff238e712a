// What a script holds of the world: the context, in the words of the original.

import { later, onStart, part, release } from 'nano-cordis/host'
import { run, shapeOf } from 'nano-cordis/plugins'
import { service } from 'nano-cordis/services'

/** What has to wait until the plugin is running. */
export const READY = Symbol('ready')

/** The number of a context, for the agent. */
export const NUMBER = Symbol('number')

/** A context. Each belongs to one plugin, and what is registered through it goes with that plugin. */
export class Context {
  constructor() {
    throw new TypeError('a script gets its context as the first argument of `apply`; it cannot make one')
  }

  /** Registers something that can be undone: `setup` does it and returns the cleanup. */
  effect(setup) {
    return part('effects').effect(this, setup)
  }

  /** Listens to an event: of the agent, or one that only scripts know. */
  on(event, listener, options) {
    if (typeof listener !== 'function') throw new TypeError(`the listener of \`${String(event)}\` is no function`)
    if (event === 'ready') return part('effects').whenReady(this, listener)
    if (event === 'dispose') return this.effect(() => () => listener())
    return part('events').listen(this, event, listener, options)
  }

  /** Tells all listeners; what fails is reported. */
  emit(event, ...args) {
    part('events').dispatch.emit(this, event, args)
  }

  /** All listeners at the same time. */
  parallel(event, ...args) {
    return part('events').dispatch.parallel(this, event, args)
  }

  /** One listener after the other, until one has something to say. */
  serial(event, ...args) {
    return part('events').dispatch.serial(this, event, args)
  }

  /** Each listener wraps the rest; the last argument is the innermost. */
  waterfall(event, ...args) {
    return part('events').dispatch.waterfall(this, event, args)
  }

  /** Offers a service under a name. */
  provide(name, value) {
    return part('offers').offer(this, name, value)
  }

  /** A service if it is there, whatever was declared. */
  get(name) {
    return service(this, name, false)
  }

  /** Mounts a child: a function, a class, or an object with `apply`. */
  plugin(plugin, config) {
    return part('children').mount(this, plugin, config)
  }

  /** A timer that goes with the plugin; returns its undo. */
  setTimeout(callback, ms, ...args) {
    return part('effects').timeout(this, callback, ms, args)
  }

  /** The same, again and again. */
  setInterval(callback, ms, ...args) {
    return part('effects').interval(this, callback, ms, args)
  }
}

/** An undo: the first call runs the cleanup and ends with it, later ones return at once. */
export function undoing(effect, state = {}) {
  let called = false
  const undo = () => {
    if (called) return Promise.resolve()
    called = true
    state.undone?.()
    return later('undo', effect).then(() => {}, error => {
      throw state.failed ? state.error : error
    })
  }
  return release(undo, effect)
}

/** A context whose further properties are the services that its plugin may read. */
export function contextOf(number) {
  const context = Object.create(Context.prototype, {
    [NUMBER]: { value: number },
    [READY]: { value: null, writable: true },
  })
  release(context, number)
  return new Proxy(context, {
    get(target, key) {
      if (typeof key === 'symbol' || key in target) return target[key]
      // What the engine asks of anything that is awaited or written as JSON.
      if (key === 'then' || key === 'toJSON') return undefined
      return service(target, key, true)
    },
    set(target, key, value) {
      if (typeof key !== 'symbol') throw new TypeError(`\`ctx.${key}\` cannot be set; a service is offered with \`ctx.provide\``)
      target[key] = value
      return true
    },
  })
}

globalThis.__loaded = namespace => {
  const plugin = shapeOf('default' in namespace ? namespace.default : namespace)
  onStart((number, config) => run(plugin, contextOf(number), config))
  globalThis.__exports = { name: plugin.name, inject: plugin.inject, schema: plugin.schema }
}
