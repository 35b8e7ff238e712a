// Children: plugins that a script mounts, and their handles.

import { forget, later, now, release, share } from 'nano-cordis/host'
import { NUMBER, contextOf } from 'nano-cordis/context'
import { run, shapeOf } from 'nano-cordis/plugins'

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
