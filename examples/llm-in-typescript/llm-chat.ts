// A model adapter: asks a server that speaks the OpenAI chat protocol, and waits for the whole reply.
import { Context, Schema, type LlmProvider } from 'cordis'

export const name = 'llm-chat'

export const Config = Schema.object({
  baseUrl: Schema.string().required(),
  model: Schema.string().required(),
  apiKey: Schema.string().default('').role('secret'),
})

export function apply(ctx: Context, config: Schema.Infer<typeof Config>) {
  const llm: LlmProvider = {
    model: config.model,
    async chat({ model, system, messages, tools }, _onDelta, signal) {
      const response = await fetch(`${config.baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...(config.apiKey && { Authorization: `Bearer ${config.apiKey}` }) },
        body: JSON.stringify({
          model,
          messages: system ? [{ role: 'system', content: system }, ...messages] : messages,
          ...(tools?.length && { tools }),
        }),
        signal,
      })
      if (!response.ok) {
        throw Object.assign(new Error(`the model server said ${response.status}: ${await response.text()}`), { status: response.status })
      }
      const { choices, usage } = await response.json()
      return { message: choices[0].message, finishReason: choices[0].finish_reason, usage }
    },
  }
  ctx.provide('llm', llm)
}
