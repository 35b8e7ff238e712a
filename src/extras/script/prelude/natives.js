// The services of the agent as a script sees them, one view for each context that reads one.

import { abortable, forget, later, now, share, shareAt } from 'nano-cordis/host'
import { NUMBER, undoing } from 'nano-cordis/context'
import { callOf } from 'nano-cordis/events'
import { sessionOf } from 'nano-cordis/session'

/** Undos of the tools of this script, by name. */
const registered = new Map()

function register(context, tool) {
  const { name, description, parameters, execute } = tool
  if (typeof execute !== 'function') throw new TypeError(`tool \`${name}\`: \`execute\` is no function`)
  const number = shareAt(new Error(), (args, call) => execute.call(tool, args, callOf(call)))
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

export const natives = {
  /** What the model may call. */
  tools: context => ({
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
  }),

  /** The system prompt. */
  prompt: context => ({
    /** Adds a named text; the persona has order 0. */
    section: (name, order, text) => undoing(now('prompt.section', context[NUMBER], name, order, text)),
    /** The whole of it. */
    render: () => now('prompt.render', context[NUMBER]),
  }),

  /** The model. */
  llm: context => ({
    get model() {
      return now('llm.model', context[NUMBER])
    },
    /** Asks: `{ model?, system?, tools?, messages }` gives `{ message, finishReason, usage }`. */
    async chat(request, onDelta, signal) {
      const number = typeof onDelta === 'function' ? share(delta => void onDelta(delta)) : null
      return abortable(signal, 'llm.chat', context[NUMBER], request, number)
    },
  }),

  /** Commands of the user's machine. */
  shell: context => ({
    /** A text or `{ command, cwd?, timeoutMs? }` with every default filled in. */
    resolve: request => now('shell.resolve', context[NUMBER], request),
    /** Runs it: `{ exitCode, stdout, stderr, timedOut, cancelled, … }`. */
    run: (request, signal) => abortable(signal, 'shell.run', context[NUMBER], request),
  }),

  /** Conversations. */
  session: context => ({
    open: () => now('session.open', context[NUMBER]).map(sessionOf),
    get: id => now('session.open', context[NUMBER]).map(sessionOf).find(it => it.id === id),
    /** A new one, which is closed when the caller unloads. */
    create: () => sessionOf(now('session.create', context[NUMBER])),
  }),

  /** The loop. */
  agentLoop: context => ({
    /** One turn: `{ reason, text, error, steps, toolCalls, denied }`. */
    run: (session, text, signal) => abortable(signal, 'agentLoop.run', context[NUMBER], session?.id ?? session, text),
    isBusy: session => now('agentLoop.isBusy', context[NUMBER], session?.id ?? session),
  }),

  /** The list of plugins. */
  loader: context => ({
    /** Reads the list again, soon. */
    reload: () => void now('loader.reload', context[NUMBER]),
    entries: () => now('loader.entries', context[NUMBER]),
    /** Why no turn may start, if so. */
    problem: () => now('loader.problem', context[NUMBER]) ?? undefined,
  }),

  /** Saved conversations. */
  persistence: context => ({
    list: () => now('persistence.list', context[NUMBER]),
  }),
}
