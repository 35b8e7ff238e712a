// Services: how scripts find them, and how they offer some.

import { later, now, share, shareAt, shared, signal } from 'nano-cordis/host'
import { NUMBER, contextOf, undoing } from 'nano-cordis/context'
import { natives } from 'nano-cordis/natives'
import { LOCAL, RUN } from 'nano-cordis/service'

/** Reads a service for a context. A `needed` one is there, or this throws. */
export function service(context, name, needed) {
  const found = now('service', context[NUMBER], name, needed)
  if (!found) return undefined
  if (found.own) return bound(shared(found.own), contextOf(found.context))
  if (found.methods) return foreign(context, name, needed, found.methods)
  return natives[name](context)
}

/** The same object for one caller: `this.ctx` is the caller's. What is written goes to the object. */
function bound(object, context) {
  if ((typeof object !== 'object' && typeof object !== 'function') || object === null) return object
  return new Proxy(object, {
    get: (target, key, view) => (key === 'ctx' ? context : Reflect.get(target, key, view)),
    set: (target, key, value) => Reflect.set(target, key, value),
  })
}

/** A service of another script. Everything that it does takes time. */
function foreign(context, name, needed, methods) {
  const call = method => async (...args) => (await later('foreign', context[NUMBER], name, needed, method, args)) ?? undefined
  return Object.freeze(Object.fromEntries(methods.map(method => [method, call(method)])))
}

/** Offers an object as a service. */
export function offer(context, name, object) {
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
    const reply = await object.chat(request, delta => void (told = later('delta', number, delta)), signal(number))
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
    return object.run(own ? { ...marked, ...(await object.resolve(spec)) } : marked, signal(number))
  }
  return { local: object[LOCAL] ?? null, run: shareAt(new Error(), run) }
}
