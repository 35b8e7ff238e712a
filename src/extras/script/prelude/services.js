// The services of the agent as a script sees them.

import { later, now, share, shared } from 'nano-cordis/host'
import { NUMBER } from 'nano-cordis/context'

const natives = {
  tools: context => ({
    register(...args) {
      const tool = args.length === 1 ? args[0] : { name: args[0], description: args[1], parameters: args[2], execute: args[3] }
      const { name, description, parameters, execute } = tool
      const effect = now('tools.register', context[NUMBER], name, description, parameters, share(execute))
      return () => later('undo', effect)
    },
  }),
  prompt: context => ({
    section: (name, order, text) => {
      const effect = now('prompt.section', context[NUMBER], name, order, text)
      return () => later('undo', effect)
    },
    render: () => now('prompt.render', context[NUMBER]),
  }),
}

/** Reads a service for a context. A `needed` one is there, or this throws. */
export function service(context, name, needed) {
  const found = now('service', context[NUMBER], name, needed)
  if (!found) return undefined
  return natives[name]?.(context) ?? shared(found.function)
}
