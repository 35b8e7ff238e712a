// Effects: what a script registers with a cleanup of its own, its timers, and what waits for its start.

import { later, now, share } from 'nano-cordis/host'
import { NUMBER, READY, undoing } from 'nano-cordis/context'

/** Registers something that can be undone: `setup` does it and returns the cleanup. */
export function effect(context, setup) {
  let cleanup
  const state = {}
  // Noted before the setup runs: what that registers is undone before the effect itself.
  const effect = now('effect', context[NUMBER], share(() => attempt(state, cleanup)))
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

/** A timer that goes with the plugin. */
export function timeout(context, callback, ms, args) {
  let undo
  const fire = () => {
    undo()
    return callback(...args)
  }
  undo = context.effect(() => {
    const timer = setTimeout(fire, ms)
    return () => clearTimeout(timer)
  })
  return undo
}

/** The same, again and again. */
export function interval(context, callback, ms, args) {
  return context.effect(() => {
    const timer = setInterval(callback, ms, ...args)
    return () => clearInterval(timer)
  })
}

/** Runs once the plugin is running. */
export function whenReady(context, listener) {
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
