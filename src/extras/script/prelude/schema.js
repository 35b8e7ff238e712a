// Builds the schema of a config in the words of the original, schemastery. What comes out is JSON Schema, and the host
// checks configs against it as it does for every plugin.
//
// Omitted: schemastery's schemas are functions that check a value, and know tuples, transformations, bit sets and hints
// for a web console. A config is checked here before the script hears of it.

import { part } from 'nano-cordis/host'

const { isMap, named } = part('config')

/** What one kind of schema calls its least and its most. */
const LIMITS = {
  string: ['minLength', 'maxLength'],
  number: ['minimum', 'maximum'],
  integer: ['minimum', 'maximum'],
  array: ['minItems', 'maxItems'],
  object: ['minProperties', 'maxProperties'],
}

/** One schema. Each method gives a new one. */
export class Schema {
  #json
  #required

  constructor(json, required = false) {
    this.#json = json
    this.#required = required
  }

  /** What a config gets that says nothing of it. */
  default(value) {
    if (value === null || value === undefined) {
      const { default: _, ...rest } = this.#json
      return new Schema(rest, this.#required)
    }
    return this.#with({ default: plain(value, 'a default') })
  }

  required(required = true) {
    return new Schema(this.#json, Boolean(required))
  }

  description(text) {
    return this.#with({ description: String(text) })
  }

  min(least) {
    return this.#limit(0, least)
  }

  max(most) {
    return this.#limit(1, most)
  }

  /** Only multiples of it; `step(1)` means whole numbers. */
  step(size) {
    if (this.#json.type !== 'number' && this.#json.type !== 'integer') throw new TypeError('`step` is for numbers')
    return this.#with(size === 1 ? { type: 'integer' } : { multipleOf: number(size, 'step') })
  }

  /** `secret`: no message, log or schema shows the value. Other roles are hints for a web console, and mean nothing here. */
  role(role) {
    return role === 'secret' ? this.#with({ writeOnly: true }) : this
  }

  /** It as JSON Schema. */
  toJSONSchema() {
    return this.#json
  }

  toJSON() {
    return this.#json
  }

  static any() {
    return new Schema({})
  }

  static string() {
    return new Schema({ type: 'string' })
  }

  static number() {
    return new Schema({ type: 'number' })
  }

  /** A whole number that is not negative. */
  static natural() {
    return new Schema({ type: 'integer', minimum: 0 })
  }

  static boolean() {
    return new Schema({ type: 'boolean' })
  }

  static const(value) {
    return new Schema({ const: plain(value, 'a constant') })
  }

  static array(inner) {
    return new Schema({ type: 'array', items: jsonOf(inner), default: [] })
  }

  /** A map whose keys are free. */
  static dict(inner, key) {
    const keys = key === undefined ? {} : { propertyNames: jsonOf(key) }
    return new Schema({ type: 'object', additionalProperties: jsonOf(inner), ...keys, default: {} })
  }

  /** A map with these keys. */
  static object(fields) {
    if (!isMap(fields)) throw new TypeError('`Schema.object` takes a map of schemas')
    const schemas = Object.entries(fields).map(([key, field]) => [key, schemaFrom(field)])
    // What is required has to be written, whatever it would be otherwise.
    const json = schema => (schema.#required ? withoutDefault(schema.#json) : schema.#json)
    const properties = Object.fromEntries(schemas.map(([key, schema]) => [key, json(schema)]))
    const required = schemas.filter(([, schema]) => schema.#required).map(([key]) => key)
    const needs = required.length > 0 ? { required } : {}
    return new Schema({ type: 'object', properties, ...needs, default: {} })
  }

  /** One of several. */
  static union(choices) {
    const shapes = list(choices, 'union').map(jsonOf)
    const constants = shapes.filter(it => 'const' in it)
    const isBare = constants.length === shapes.length && constants.every(it => Object.keys(it).length === 1)
    return new Schema(isBare ? { enum: constants.map(it => it.const) } : { anyOf: shapes.map(withoutDefault) })
  }

  /** All at once: the fields of several maps as those of one. */
  static intersect(parts) {
    const shapes = list(parts, 'intersect').map(jsonOf)
    const maps = shapes.filter(isFixedMap)
    const others = shapes.filter(it => !isFixedMap(it)).map(withoutDefault)
    const whole = { type: 'object', properties: Object.assign({}, ...maps.map(it => it.properties)) }
    const required = [...new Set(maps.flatMap(it => it.required ?? []))]
    if (required.length > 0) whole.required = required
    if (others.length > 0) whole.allOf = others
    return new Schema(maps.length > 0 ? { ...whole, default: {} } : { allOf: others })
  }

  #with(keys) {
    return new Schema({ ...this.#json, ...keys }, this.#required)
  }

  #limit(which, limit) {
    const names = LIMITS[this.#json.type]
    if (!names) throw new TypeError(`\`${which ? 'max' : 'min'}\` is for numbers, and for the length of texts, lists and maps`)
    return this.#with({ [names[which]]: number(limit, which ? 'max' : 'min') })
  }
}

/** What people write for a schema: one, a type such as `String`, or a value that stands for itself. */
function schemaFrom(source) {
  if (source instanceof Schema) return source
  if (source === undefined || source === null) return Schema.any()
  if (source === String) return Schema.string().required()
  if (source === Number) return Schema.number().required()
  if (source === Boolean) return Schema.boolean().required()
  if (['string', 'number', 'boolean'].includes(typeof source)) return Schema.const(source).required()
  throw new TypeError(`${named(source)} is no schema; \`Schema.string()\` is one`)
}

function jsonOf(source) {
  return schemaFrom(source).toJSONSchema()
}

function withoutDefault({ default: _, ...json }) {
  return json
}

function isFixedMap(json) {
  return json.properties !== undefined && json.anyOf === undefined && json.additionalProperties === undefined
}

function list(value, method) {
  if (!Array.isArray(value) || value.length === 0) throw new TypeError(`\`Schema.${method}\` takes a list of schemas`)
  return value
}

function number(value, method) {
  if (typeof value !== 'number' || Number.isNaN(value)) throw new TypeError(`\`${method}\` takes a number, not ${named(value)}`)
  return value
}

/** A copy that JSON can say. */
function plain(value, what) {
  const text = JSON.stringify(value)
  if (text === undefined) throw new TypeError(`${what} cannot be ${named(value)}`)
  return JSON.parse(text)
}
