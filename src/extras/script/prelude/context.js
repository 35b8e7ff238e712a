// What a script holds of the world: the context, in the words of the original.

import { later, now, onStart, part, release, share } from 'nano-cordis/host'
import { mount, run, shapeOf } from 'nano-cordis/plugins'
import { offer, service } from 'nano-cordis/services'

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
    let cleanup
    const state = {}
    // Noted before the setup runs: what that registers is undone before the effect itself.
    const effect = now('effect', this[NUMBER], share(() => attempt(state, cleanup)))
    try {
      cleanup = setup()
    } catch (error) {
      later('undo', effect)
      throw error
    }
    if (typeof cleanup !== 'function') {
      cleanup = undefined
      later('undo', effect)
      throw new TypeError('an effect must return its cleanup, a function')
    }
    return undoing(effect, state)
  }

  /** Listens to an event: of the agent, or one that only scripts know. */
  on(event, listener, options) {
    if (typeof listener !== 'function') throw new TypeError(`the listener of \`${String(event)}\` is no function`)
    if (event === 'ready') return whenReady(this, listener)
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
    if (typeof name === 'string' && (name in Context.prototype || RESERVED.includes(name))) {
      throw new TypeError(`a service cannot be called \`${name}\`, because a context has a part of that name`)
    }
    return offer(this, name, value)
  }

  /** A service if it is there, whatever was declared. */
  get(name) {
    return service(this, name, false)
  }

  /** Mounts a child: a function, a class, or an object with `apply`. */
  plugin(plugin, config) {
    return mount(this, plugin, config)
  }

  /** A timer that goes with the plugin; returns its undo. */
  setTimeout(callback, ms, ...args) {
    let undo
    const fire = () => {
      undo()
      return callback(...args)
    }
    undo = this.effect(() => {
      const timer = setTimeout(fire, ms)
      return () => clearTimeout(timer)
    })
    return undo
  }

  /** The same, again and again. */
  setInterval(callback, ms, ...args) {
    return this.effect(() => {
      const timer = setInterval(callback, ms, ...args)
      return () => clearInterval(timer)
    })
  }
}

const RESERVED = ['then', 'toJSON', 'answer', 'intercept', 'path', 'service', 'spawn', 'stopping']

/** Runs a cleanup, and keeps what it threw for whoever undid it by hand. */
function attempt(state, cleanup) {
  const failed = error => {
    state.failed = true
    state.error = error
    throw error
  }
  try {
    const result = cleanup?.()
    return typeof result?.then === 'function' ? result.then(() => {}, failed) : undefined
  } catch (error) {
    return failed(error)
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

function whenReady(context, listener) {
  const waiting = context[READY]
  if (!waiting) {
    Promise.resolve().then(listener)
    return () => Promise.resolve()
  }
  waiting.push(listener)
  return async () => {
    const at = waiting.indexOf(listener)
    if (at >= 0) waiting.splice(at, 1)
  }
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
