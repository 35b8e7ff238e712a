// Services: how scripts find them.

import { now, part, shared } from 'nano-cordis/host'
import { NUMBER, contextOf } from 'nano-cordis/context'
import { tools } from 'nano-cordis/tools'

/** The shell of this machine that an object adds something to. */
export const LOCAL = Symbol('local')

/** Which run of the agent a spec belongs to. */
export const RUN = Symbol('run')

/** Reads a service for a context. A `needed` one is there, or this throws. */
export function service(context, name, needed) {
  const found = now('service', context[NUMBER], name, needed)
  if (!found) return undefined
  if (found.own) return part('offers').bound(shared(found.own), contextOf(found.context))
  if (found.methods) return part('offers').foreign(context, name, needed, found.methods)
  return name === 'tools' ? tools(context) : part('natives').natives[name](context)
}
