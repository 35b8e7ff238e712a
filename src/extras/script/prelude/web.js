// What people know from the web, as far as a plugin needs it.

import { abortable, now } from 'nano-cordis/host'

class Headers {
  #values = new Map()

  constructor(init = []) {
    const pairs = init?.[Symbol.iterator] ? init : Object.entries(init ?? {})
    for (const [name, value] of pairs) this.append(name, value)
  }

  append(name, value) {
    const key = String(name).toLowerCase()
    this.#values.set(key, this.#values.has(key) ? `${this.#values.get(key)}, ${value}` : String(value))
  }

  set(name, value) {
    this.#values.set(String(name).toLowerCase(), String(value))
  }

  get(name) {
    return this.#values.get(String(name).toLowerCase()) ?? null
  }

  has(name) {
    return this.#values.has(String(name).toLowerCase())
  }

  [Symbol.iterator]() {
    return this.#values[Symbol.iterator]()
  }
}

// Differs: the whole answer is there when the promise comes back, so it can be read more than once.
class Response {
  #body

  constructor({ status, statusText, url, headers, body }) {
    Object.assign(this, { status, statusText, url, ok: status >= 200 && status < 300, headers: new Headers(headers) })
    this.#body = body
  }

  async text() {
    return this.#body
  }

  async json() {
    return JSON.parse(this.#body)
  }
}

globalThis.Headers = Headers

/** Asks one of the hosts that the entry allows. */
globalThis.fetch = async (url, { method = 'GET', headers, body, signal } = {}) => {
  if (body !== undefined && body !== null && typeof body !== 'string') throw new TypeError('fetch: the body must be a text')
  return new Response(await abortable(signal, 'fetch', String(url), method, [...new Headers(headers)], body ?? null))
}

globalThis.queueMicrotask ??= callback => void Promise.resolve().then(callback)

globalThis.crypto = { randomUUID: () => now('uuid') }

/** A copy that shares nothing. */
globalThis.structuredClone = value => copy(value, new Map())

function copy(value, made) {
  if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`a ${typeof value} cannot be cloned`)
  if (typeof value !== 'object' || value === null) return value
  if (made.has(value)) return made.get(value)
  const keep = it => (made.set(value, it), it)
  if (value instanceof Date) return keep(new Date(value))
  if (value instanceof RegExp) return keep(new RegExp(value))
  if (value instanceof Map) return [...value].reduce((map, [key, it]) => map.set(copy(key, made), copy(it, made)), keep(new Map()))
  if (value instanceof Set) return [...value].reduce((set, it) => set.add(copy(it, made)), keep(new Set()))
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return keep(value.slice())
  if (value instanceof Error) return keep(Object.assign(new value.constructor(value.message), { stack: value.stack }))
  const result = keep(Array.isArray(value) ? [] : {})
  for (const [key, it] of Object.entries(value)) result[key] = copy(it, made)
  return result
}

globalThis.TextEncoder = class TextEncoder {
  encoding = 'utf-8'

  encode(text = '') {
    const whole = unescape(encodeURIComponent(String(text).toWellFormed()))
    return Uint8Array.from(whole, it => it.charCodeAt(0))
  }
}

globalThis.TextDecoder = class TextDecoder {
  encoding = 'utf-8'

  constructor(label = 'utf-8') {
    if (!/^utf-?8$/i.test(label)) throw new RangeError(`\`${label}\` is not known here; bytes are read as UTF-8`)
  }

  decode(bytes = []) {
    const list = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset, bytes.byteLength)
    let text = ''
    for (let at = 0; at < list.length; ) {
      const [point, length] = character(list, at)
      text += String.fromCodePoint(point)
      at += length
    }
    return text.replace(/^\ufeff/, '')
  }
}

/** The character at a place, and its length in bytes; what is none is U+FFFD. */
function character(list, at) {
  const first = list[at]
  if (first < 0x80) return [first, 1]
  const more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 && first < 0xf0 ? 2 : first >= 0xc2 && first < 0xe0 ? 1 : 0
  let point = first & (0x3f >> more)
  for (let next = 1; next <= more; next++) {
    if ((list[at + next] & 0xc0) !== 0x80) return [0xfffd, next]
    point = (point << 6) | (list[at + next] & 0x3f)
  }
  const least = [0, 0x80, 0x800, 0x10000][more]
  const works = more > 0 && point >= least && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)
  return works ? [point, more + 1] : [0xfffd, 1]
}
