// What scripts import from `cordis` and `nano-cordis`.

export { Context } from 'nano-cordis/context'
export { LocalShell, Service, defineProperty } from 'nano-cordis/service'
export { Schema, Schema as z } from 'nano-cordis/schema'

/** Places among the listeners of `tools/pre-execute`: who decides alone comes before who asks the user. */
export const Order = Object.freeze({ DECIDING: -100, ASKING: 100 })
