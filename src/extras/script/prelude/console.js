// Prints values as their author would write them.

import { log, trace } from 'nano-cordis/host'

const DEEPEST = 4
const LONGEST = 100

function print(level) {
  return (...line) => log(level, line.map(it => (typeof it === 'string' ? it : shown(it))).join(' '))
}

/** What it says goes to the diagnostics. */
export const console = {
  log: print('info'),
  info: print('info'),
  debug: print('debug'),
  warn: print('warn'),
  error: print('error'),
}

/** A value in a line. */
function shown(part) {
  try {
    if (part instanceof Error) return [String(part), trace(String(part.stack))].filter(Boolean).join('\n')
    return written(part, [])
  } catch {
    return Object.prototype.toString.call(part)
  }
}

function written(value, above) {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'symbol') return value.toString()
  if (typeof value === 'function') return `[function ${value.name || 'anonymous'}]`
  if (typeof value !== 'object' || value === null) return String(value)
  if (above.includes(value)) return '[circular]'
  try {
    return object(value, [...above, value])
  } catch {
    return '[object]'
  }
}

function object(value, above) {
  if (value instanceof Error) return `[${value}]`
  if (value instanceof Date || value instanceof RegExp) return String(value instanceof Date ? value.toISOString() : value)
  if (value instanceof Promise) return 'Promise {}'
  const name = value.constructor?.name
  if (above.length > DEEPEST) return Array.isArray(value) ? '[…]' : `{…}`
  const list = items => items.slice(0, LONGEST).map(it => written(it, above)).concat(items.length > LONGEST ? [`… ${items.length - LONGEST} more`] : [])
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return `[${list([...value]).join(', ')}]`
  if (value instanceof Set) return `Set {${list([...value]).join(', ')}}`
  if (value instanceof Map) return `Map {${[...value].map(([key, it]) => `${written(key, above)} => ${written(it, above)}`).join(', ')}}`
  const fields = Object.entries(value).map(([key, it]) => `${key}: ${written(it, above)}`)
  const shown = fields.length ? `{ ${fields.join(', ')} }` : '{}'
  return name && name !== 'Object' ? `${name} ${shown}` : shown
}
