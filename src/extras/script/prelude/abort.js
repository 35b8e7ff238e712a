// What people know from the web of giving up.

import { later, numbered } from 'nano-cordis/host'

let pull

/** Pulled once; whoever listens hears of it. */
export class AbortSignal {
  aborted = false
  reason = undefined
  onabort = null
  #listeners = []

  static {
    // Who has a signal only listens.
    pull = (signal, reason) => signal.#abort(reason)
  }

  addEventListener(type, listener) {
    if (type === 'abort') this.#listeners.push(listener)
  }

  removeEventListener(type, listener) {
    this.#listeners = this.#listeners.filter(it => it !== listener)
  }

  throwIfAborted() {
    if (this.aborted) throw this.reason
  }

  #abort(reason) {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    for (const listener of [this.onabort, ...this.#listeners]) listener?.call(this, { type: 'abort' })
  }
}

/** Whoever has it can pull its signal. */
export class AbortController {
  signal = new AbortSignal()

  abort(reason = Object.assign(new Error('aborted'), { name: 'AbortError' })) {
    pull(this.signal, reason)
  }
}

/** As `later`, for something that an `AbortSignal` can end. */
export async function abortable(signal, operation, ...args) {
  signal?.throwIfAborted()
  const number = numbered()
  const stop = () => later('cancel', number)
  signal?.addEventListener('abort', stop)
  try {
    return await later(operation, number, ...args)
  } catch (error) {
    throw signal?.aborted ? signal.reason : error
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}
