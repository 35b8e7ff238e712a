// Plugins of a script: their three shapes, their start, and the handle of a child.

import { forget, later, now, part, release, share } from 'nano-cordis/host'
import { NUMBER, READY, contextOf } from 'nano-cordis/context'

/** What of a value makes it a plugin. */
export function shapeOf(value) {
  const isObject = typeof value === 'object' && value !== null
  const body = typeof value === 'function' ? value : isObject ? value.apply : undefined
  if (typeof body !== 'function') {
    throw new TypeError('it exports no plugin: `export function apply(ctx, config)`, or a default export that is a function, a class or an object with `apply`')
  }
  // Of all functions only a class has a prototype that cannot be exchanged.
  const isClass = Object.getOwnPropertyDescriptor(body, 'prototype')?.writable === false
  const name = typeof value.name === 'string' && value.name !== 'apply' && value.name !== 'default' ? value.name : null
  const schema = value.Config === undefined ? null : part('config').schemaOf(value.Config)
  return { value, body, isClass, name: name || null, inject: value.inject ?? [], schema }
}

/** Runs the body. What it returns is the number of its cleanup. */
export async function run({ value, body, isClass }, context, config) {
  context[READY] = []
  const result = isClass ? new body(context, config) : await body.call(value, context, config)
  for (const listener of context[READY]) await listener()
  context[READY] = null
  return !isClass && typeof result === 'function' ? share(() => result()) : null
}

/** Mounts a child, which starts after the block that mounts it. */
export function mount(context, value, config) {
  const plugin = shapeOf(value)
  const state = { fresh: true, disposed: false }
  const start = share(async (number, config) => {
    if (state.disposed) return null
    try {
      return await run(plugin, contextOf(number), config)
    } catch (error) {
      state.error = error
      state.failed = true
      throw error
    }
  })
  let number
  try {
    number = now('plugin', context[NUMBER], plugin.name ?? 'anonymous', plugin.inject, plugin.schema, start, config ?? null)
  } catch (error) {
    forget(start)
    throw error
  }
  Promise.resolve().then(() => (state.fresh = false))
  return handle(number, state)
}

/** A handle can be awaited: then the child rests, or its error is thrown. */
function handle(number, state) {
  const plain = release({
    /** Where the child stands. */
    get state() {
      return state.fresh && !state.disposed ? 'PENDING' : now('mount.state', number)
    },
    /** Unmounts the child for good, and waits for the end of its cleanups. */
    async dispose() {
      if (state.disposed) return
      state.disposed = true
      await later('mount.dispose', number)
    },
  }, number)
  const ready = () => later('mount.ready', number).then(() => plain, error => {
    throw state.failed ? state.error : error
  })
  return Object.defineProperties({ then: (works, fails) => ready().then(works, fails) }, Object.getOwnPropertyDescriptors(plain))
}
