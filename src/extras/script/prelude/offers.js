// Services between scripts: how they offer some, and how the others see them.

import { later, now, share, shareAt, signal } from 'nano-cordis/host'
import { Context, NUMBER, contextOf, undoing } from 'nano-cordis/context'
import { LOCAL, RUN } from 'nano-cordis/services'

const RESERVED = ['then', 'toJSON', 'answer', 'intercept', 'path', 'service', 'spawn', 'stopping']

/** A service of another script. Everything that it does takes time. */
export function foreign(context, name, needed, methods) {
  const call = method => async (...args) => (await later('foreign', context[NUMBER], name, needed, method, args)) ?? undefined
  return Object.freeze(Object.fromEntries(methods.map(method => [method, call(method)])))
}

/** Offers an object as a service. */
export function offer(context, name, object) {
  if (typeof name === 'string' && (name in Context.prototype || RESERVED.includes(name))) {
    throw new TypeError(`a service cannot be called \`${name}\`, because a context has a part of that name`)
  }
  const special = { llm: offerModel, shell: offerShell }[name] ?? offerObject
  const effect = now('provide', context[NUMBER], name, share(object), special(object))
  return undoing(effect)
}

function offerObject(object) {
  const invoke = (method, args, caller) => bound(object, contextOf(caller))[method](...args)
  return { methods: methodsOf(object), invoke: shareAt(new Error(), invoke) }
}

function methodsOf(object) {
  const names = new Set()
  for (let at = Object(object); at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      const { value } = Object.getOwnPropertyDescriptor(at, name)
      if (typeof value === 'function' && name !== 'constructor') names.add(name)
    }
  }
  return [...names]
}

function offerModel(object) {
  if (typeof object?.chat !== 'function') return {}
  const chat = async (request, number) => {
    let told
    const reply = await object.chat(request, delta => void (told = later('delta', number, delta)), signal(number)())
    // The agent takes no piece of a reply that it has.
    await told
    return reply
  }
  return { model: typeof object.model === 'string' ? object.model : null, chat: shareAt(new Error(), chat) }
}

function offerShell(object) {
  if (typeof object?.run !== 'function') return {}
  const run = async (spec, number) => {
    const marked = { ...spec, [RUN]: number }
    const own = typeof object.resolve === 'function' && !object[LOCAL]
    return object.run(own ? { ...marked, ...(await object.resolve(spec)) } : marked, signal(number)())
  }
  return { local: object[LOCAL] ?? null, run: shareAt(new Error(), run) }
}

/** The same object for one caller: `this.ctx` is the caller's. What is written goes to the object. */
export function bound(object, context) {
  if ((typeof object !== 'object' && typeof object !== 'function') || object === null) return object
  return new Proxy(object, {
    get: (target, key, view) => (key === 'ctx' ? context : Reflect.get(target, key, view)),
    set: (target, key, value) => Reflect.set(target, key, value),
  })
}
