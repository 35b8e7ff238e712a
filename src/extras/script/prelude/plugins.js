// Plugins of a script: their three shapes, and their start.

import { part, share } from 'nano-cordis/host'
import { READY } from 'nano-cordis/context'

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
