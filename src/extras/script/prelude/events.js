// Events. Those of the agent come from there; those that only scripts know are dispatched here, by whoever raises them.

import { explain, later, now, share, shareAt, shared, forget, signal } from 'nano-cordis/host'
import { NUMBER, undoing } from 'nano-cordis/context'
import { callOf, sessionOf } from 'nano-cordis/tools'

/** What the agent sends, as listeners get it. */
const arrive = {
  __proto__: null,
  'session/event': ([session, event]) => [sessionOf(session), event],
  'assistant/delta': ([session, delta]) => [sessionOf(session), delta],
  'tools/pre-execute': ([call]) => [callOf(call)],
  'tools/post-execute': ([call, result]) => [callOf(call), result],
  'approval/request': ([call]) => [callOf(call)],
  'agent/request': ([draft]) => [{ ...draft, session: sessionOf(draft.session) }],
  'agent/turn-stopping': ([it]) => [{ ...it, session: sessionOf(it.session), signal: signal(it.signal)() }],
}

/** The place of a listener among the others: the lowest comes first. */
function orderOf(options) {
  if (typeof options === 'number') return options
  return options?.order ?? (options?.prepend || options === true ? -1 : 0)
}

/** Registers a listener. */
export function listen(context, event, listener, options) {
  if (typeof event !== 'string') throw new TypeError('the name of an event is a text')
  let isOver = false
  const receive = (args, next) => {
    // The agent may have called it before it heard of the end.
    if (isOver) return next ? later('next', next) : undefined
    const values = arrive[event]?.(args) ?? args
    return next ? listener(...values, () => later('next', next)) : listener(...values)
  }
  receive.listener = listener
  receive.isHere = () => !isOver
  const number = shareAt(new Error(), receive)
  let effect
  try {
    effect = now('on', context[NUMBER], event, orderOf(options), number)
  } catch (error) {
    forget(number)
    throw error
  }
  return undoing(effect, { undone: () => (isOver = true) })
}

/** Who listens to an event, in order: each can be called, once more `isHere` is asked. */
function listeners(context, event, mode) {
  if (typeof event !== 'string') throw new TypeError('the name of an event is a text')
  const found = now('listeners', context[NUMBER], event, mode)
  return found === 'native' ? null : found.map(([own, id]) => (own ? ownListener(own, id) : foreign(context, event, id)))
}

function ownListener(number, id) {
  return {
    id,
    isHere: () => shared(number)?.isHere(),
    call: (args, next) => {
      const { listener } = shared(number)
      return next ? listener(...args, next) : listener(...args)
    },
  }
}

// Differs: a listener in another script is called a moment later, with what crosses as JSON.
function foreign(context, event, id) {
  return {
    id,
    isHere: () => true,
    call: async (args, next) => {
      const rest = next ? share(() => next()) : null
      try {
        const [wasHere, value] = await later('listener', context[NUMBER], event, id, args, rest)
        return wasHere || !next ? (value ?? undefined) : next()
      } finally {
        if (rest) forget(rest)
      }
    },
  }
}

const isMeaningful = value => value !== undefined && value !== null && value !== false

/** The four ways to raise an event. */
export const dispatch = {
  emit(context, event, args) {
    const found = listeners(context, event, 'emit')
    if (!found) return now('raise', context[NUMBER], event, args)
    const failed = id => error => later('failed', context[NUMBER], event, id, explain(error))
    for (const it of found) {
      if (!it.isHere()) continue
      try {
        const result = it.call(args)
        if (typeof result?.then === 'function') result.then(() => {}, failed(it.id))
      } catch (error) {
        failed(it.id)(error)
      }
    }
  },

  async parallel(context, event, args) {
    const going = (listeners(context, event, 'parallel') ?? []).filter(it => it.isHere()).map(async it => it.call(args))
    const ended = await Promise.allSettled(going)
    const errors = ended.filter(it => it.status === 'rejected').map(it => it.reason)
    if (errors.length) throw new AggregateError(errors, errors.map(it => it?.message ?? String(it)).join('; '))
  },

  async serial(context, event, args) {
    for (const it of listeners(context, event, 'serial') ?? []) {
      if (!it.isHere()) continue
      const answer = await it.call(args)
      if (isMeaningful(answer)) return answer
    }
  },

  waterfall(context, event, args) {
    const innermost = args.pop()
    if (typeof innermost !== 'function') throw new TypeError(`\`ctx.waterfall('${event}', …)\` wants a function last: what happens inside of all listeners`)
    const found = listeners(context, event, 'waterfall') ?? []
    const from = at => {
      while (at < found.length && !found[at].isHere()) at++
      return at < found.length ? found[at].call(args, () => from(at + 1)) : innermost(...args)
    }
    return from(0)
  },
}
