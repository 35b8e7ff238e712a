// The tools as a script sees them: what the model may call.

import { abortable, forget, now, part, shareAt, signal } from 'nano-cordis/host'
import { NUMBER, undoing } from 'nano-cordis/context'

/** Undos of the tools of this script, by name. */
const registered = new Map()

function register(context, tool) {
  const { name, description, parameters, execute } = tool
  if (typeof execute !== 'function') throw new TypeError(`tool \`${name}\`: \`execute\` is no function`)
  const number = shareAt(new Error(), (args, call) => execute.call(tool, args, callOf(call, args)))
  const schema = parameters?.toJSONSchema?.() ?? parameters ?? { type: 'object', properties: {} }
  let effect
  try {
    effect = now('tools.register', context[NUMBER], { name, description: description ?? '', parameters: schema }, number)
  } catch (error) {
    forget(number)
    throw error
  }
  const undo = undoing(effect)
  registered.set(name, undo)
  return undo
}

/** For each context that reads them. */
export const tools = context => ({
  /** One object, or name, description, parameters and what it does. */
  register: (...args) => register(context, typeof args[0] === 'object' ? args[0] : { name: args[0], description: args[1], parameters: args[2], execute: args[3] }),
  /** Takes away a tool of this script. */
  unregister: name => {
    const undo = registered.get(name)
    registered.delete(name)
    return undo?.() ?? Promise.resolve()
  },
  /** What the model is shown. */
  schemas: () => now('tools.schemas', context[NUMBER]),
  names: () => now('tools.names', context[NUMBER]),
  /** Runs one call through all policies: never throws, gives `{ content, isError, denied }`. */
  execute: (name, args, options) => abortable(options?.signal, 'tools.execute', context[NUMBER], { id: options?.id, name, arguments: args }),
})

/** A call of a tool as scripts see it: its session can be read, its signal says when nobody waits any more. */
export function callOf(call, args = call.arguments) {
  const { id, name, raw, problem, turn, step } = call
  const signalled = signal(call.signal)
  let session
  return {
    id,
    name,
    arguments: args,
    raw,
    problem,
    get session() {
      return (session ??= call.session && sessionOf(call.session))
    },
    turn,
    step,
    get signal() {
      return signalled()
    },
  }
}

/** The session that an id stands for. */
export function sessionOf(it) {
  return part('session').sessionOf(it)
}
