// What scripts import from `cordis` and `nano-cordis`.

export { Context } from 'nano-cordis/context'
export { Schema, Schema as z } from 'nano-cordis/schema'
