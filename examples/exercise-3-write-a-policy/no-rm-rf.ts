// A policy: no command that holds `rm -rf`.
//
// A guard-rail and no boundary: `rm -r -f` is another text with the same meaning.
import { Context, Order } from 'cordis'

export const name = 'no-rm-rf'
export const inject = ['tools']

export function apply(ctx: Context) {
  ctx.on('tools/pre-execute', (call, next) => {
    if (call.name === 'bash' && String(call.arguments.command).includes('rm -rf')) {
      return { kind: 'deny', reason: '`rm -rf` is not allowed here; name the files to remove' }
    }
    return next()
  }, Order.DECIDING)
}
