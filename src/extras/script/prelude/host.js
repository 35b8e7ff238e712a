// The border as the script sees it: requests to the agent go out here, and its messages come in.
//
// Functions never cross; a number does that stands for one. Everything else crosses as JSON.

const host = globalThis.__host
delete globalThis.__host

/** A line for the diagnostics; a stack trace with the places of the source; a thrown value in words, with its place. */
export const { log, trace, explain } = host

// The engine misses what is written to its own ones, and cannot end then: it takes the program with it.
for (const [name, value] of [['stackTraceLimit', 10], ['prepareStackTrace', undefined]]) {
  Object.defineProperty(Error, name, { value, writable: true })
}

let numbers = 0
let started = false
const functions = new Map()
const promises = new Map()
const timers = new Map()
const signals = new Map()
/** So many requests may wait at a time. */
const MOST = 10000

const parts = new Map()

/** A number that stands for nothing yet. */
export function numbered() {
  return ++numbers
}

/** A part of the prelude that few scripts need, which is loaded once one does. */
export function part(name) {
  // What failed once, for want of room or time, the engine would not try again under the same name.
  if (!parts.has(name)) parts.set(name, host.part(`${name}?${++numbers}`))
  return parts.get(name)
}

/** Asks the agent for something and waits for the answer; throws what it has against it. */
export function now(operation, ...args) {
  mustRun()
  return host.now(operation, ...args)
}

/** Asks for something that takes time. */
export function later(operation, ...args) {
  mustRun()
  // Made here, because only here it is known who asked.
  const error = new Error()
  return new Promise((resolve, reject) => {
    if (promises.size >= MOST) throw new RangeError(`${MOST} requests are waiting already`)
    const promise = ++numbers
    host.later(promise, operation, ...args)
    promises.set(promise, { resolve, reject, error })
  })
}

/** Nobody answers while the script is loaded. */
function mustRun() {
  if (!started) throw new Error('this works only once the plugin is started: use it in `apply`')
}

/** As `later`, for something that an `AbortSignal` can end. */
export function abortable(...args) {
  return part('abort').abortable(...args)
}

const gone = new FinalizationRegistry(number => {
  try {
    later('release', number)
  } catch {
    // The plugin has ended, and everything with it.
  }
})

/** Tells the agent when nobody here can use a number of its own any more. */
export function release(holder, number) {
  gone.register(holder, number)
  return holder
}

/** The number of a function that the agent may call from now on, until it is told to forget it. */
export function share(callback) {
  functions.set(++numbers, callback)
  return numbers
}

/** The same for what calls a function of the script: what that returns may not cross, and then this place is told. */
export function shareAt(place, callback) {
  callback.place = place
  return share(callback)
}

/** The number 0 stands for the start of the plugin. */
export function onStart(callback) {
  functions.set(0, callback)
}

/** The agent need not be told: it is about to hear of it, or never knew. */
export function forget(number) {
  functions.delete(number)
}

/** The function that a number stands for. */
export function shared(number) {
  return functions.get(number)
}

/** A signal that the agent can pull, in the shape that people know from `fetch`: a function that gives it to whoever asks. */
export function signal(number) {
  if (!number) return () => undefined
  const it = { controller: undefined, reason: undefined }
  signals.set(number, it)
  return () => {
    it.controller ??= new (part('abort').AbortController)()
    if (it.reason) it.controller.abort(it.reason)
    return it.controller.signal
  }
}

/** A signal that is for this call alone ends with it. */
function answer(call, signal, works, value, place) {
  if (signal) signals.delete(signal)
  host.answer(call, works, value, place)
}

const topics = {
  call(call, [number, args, signal]) {
    if (number === 0) started = true
    const callback = functions.get(number)
    if (!callback) return host.answer(call, false, new Error('this function is gone'))
    let result
    try {
      result = callback(...args)
    } catch (error) {
      return answer(call, signal, false, error, callback.place)
    }
    if (typeof result?.then !== 'function') return answer(call, signal, true, result, callback.place)
    result.then(it => answer(call, signal, true, it, callback.place), error => answer(call, signal, false, error, callback.place))
  },
  settle(promise, [works, value]) {
    const waiting = promises.get(promise)
    promises.delete(promise)
    if (works) return waiting?.resolve(value)
    if (waiting) {
      waiting.error.message = value
      waiting.reject(waiting.error)
    }
  },
  forget,
  over(number) {
    signals.delete(number)
  },
  abort(number, reason) {
    const it = signals.get(number)
    if (!it) return
    it.reason = Object.assign(new Error(reason), { name: 'AbortError' })
    it.controller?.abort(it.reason)
  },
  timer(timer) {
    const { callback, args, every } = timers.get(timer) ?? {}
    if (!callback) return
    if (every === undefined) timers.delete(timer)
    else host.timer(timer, every)
    callback(...args)
  },
}

Object.defineProperty(globalThis, '__receive', {
  value: (topic, number, value) => topics[topic](number, value),
})

function start(callback, ms, args, every) {
  if (typeof callback !== 'function') throw new TypeError('a timer needs a function')
  const timer = ++numbers
  host.timer(timer, Number(ms) || 0)
  timers.set(timer, { callback, args, every })
  return timer
}

globalThis.setTimeout = (callback, ms, ...args) => start(callback, ms, args)
globalThis.setInterval = (callback, ms, ...args) => start(callback, ms, args, Math.max(1, Number(ms) || 0))
globalThis.clearTimeout = globalThis.clearInterval = globalThis.clearImmediate = timer => {
  if (timers.delete(timer)) host.clear(timer)
}
globalThis.setImmediate = (callback, ...args) => start(callback, 0, args)

for (const [from, names] of Object.entries({
  abort: ['AbortController', 'AbortSignal'],
  console: ['console'],
  web: ['Headers', 'TextDecoder', 'TextEncoder', 'crypto', 'fetch', 'structuredClone'],
})) {
  for (const name of names) {
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get: () => part(from)[name],
      set: value => Object.defineProperty(globalThis, name, { configurable: true, enumerable: true, writable: true, value }),
    })
  }
}
