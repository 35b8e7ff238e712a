// What scripts import from `cordis` and `nano-cordis`.

export { Context } from 'nano-cordis/context'
