// Classes to extend: a service, and the shell of this machine.

import { abortable, later, now, release } from 'nano-cordis/host'
import { NUMBER } from 'nano-cordis/context'
import config from 'nano-cordis/shell-config'

/** The shell of this machine that an object adds something to. */
export const LOCAL = Symbol('local')

/** Which run of the agent a spec belongs to. */
export const RUN = Symbol('run')

/** A plugin that provides itself under a name. */
export class Service {
  constructor(ctx, name) {
    if (typeof name !== 'string') throw new TypeError('a service needs a name: `super(ctx, name)`')
    this.ctx = ctx
    ctx.provide(name, this)
  }
}

/** Provides `shell`: runs commands with the bash of this machine. A subclass may look at them first. */
export class LocalShell {
  static Config = config

  constructor(ctx, config) {
    this.ctx = ctx
    this[LOCAL] = now('local.start', ctx[NUMBER], settings(config))
    release(this, this[LOCAL])
    ctx.provide('shell', this)
  }

  /** Fills in what a request leaves open. */
  resolve(request) {
    return now('local.resolve', this[LOCAL], request)
  }

  /** Runs a command. It ends with the turn, whatever signal is given. */
  run(spec, signal) {
    if (spec?.[RUN]) return later('local.run', spec[RUN], this[LOCAL], spec)
    return abortable(signal, 'local.own', this[LOCAL], spec)
  }
}

function settings(config) {
  const { allow, ...rest } = config ?? {}
  return rest
}

/** As in the tutorial: a property that can be written, but is not listed. */
export function defineProperty(object, key, value) {
  Object.defineProperty(object, key, { writable: true, value })
}
