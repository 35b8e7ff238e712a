// A tool that tells the date.
import { Context, Schema } from 'cordis'

export const name = 'tool-date'
export const inject = ['tools']

export interface Config {
  description: string
}

export const Config: Schema<Config> = Schema.object({
  description: Schema.string().default('Tells the date and the time in UTC.'),
})

export function apply(ctx: Context, config: Config) {
  ctx.tools.register({
    name: 'date',
    description: config.description,
    parameters: { type: 'object', properties: { days: { type: 'integer', description: 'Days from now; negative for the past.' } } },
    execute: ({ days = 0 }) => new Date(Date.now() + days * 86_400_000).toISOString(),
  })
}
