// The echo tool of the tutorial "build an agent framework with Cordis", in its own words.
import { Context } from 'cordis'

export const inject = ['tools']

export function apply(ctx: Context) {
  ctx.on('ready', () => {
    ctx.tools.register(
      'echo',
      'Returns the text as it is. To see whether tools work.',
      {
        type: 'object',
        properties: {
          text: { type: 'string', description: 'The text to return' },
        },
        required: ['text'],
      },
      async (args) => `echo: ${args.text}`,
    )
  })

  ctx.on('dispose', () => {
    ctx.tools.unregister('echo')
  })
}
