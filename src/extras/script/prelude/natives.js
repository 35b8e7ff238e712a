// The services of the agent as a script sees them, one view for each context that reads one. The tools have
// a module of their own, because most scripts need them.

import { abortable, now, share } from 'nano-cordis/host'
import { NUMBER, undoing } from 'nano-cordis/context'
import { sessionOf } from 'nano-cordis/tools'

export const natives = {
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
