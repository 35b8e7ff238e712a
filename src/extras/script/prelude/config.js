// What a plugin exports as its `Config`, as JSON Schema.

/** Words that a JSON Schema has at its top. A map without any of them was meant as something else. */
const KEYWORDS = ['type', 'properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames', 'items',
  'prefixItems', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', 'not', 'if', '$ref', '$schema', '$defs', 'default', 'title',
  'description', 'minProperties', 'maxProperties', 'unevaluatedProperties', 'dependentRequired', 'dependentSchemas']

/** The JSON Schema of what a plugin exports as `Config`; null if it exports none. */
export function schemaOf(config) {
  if (config === undefined || config === null) return null
  if (config['~standard']) return standard(config['~standard'])
  if (isSchema(config)) return config.toJSONSchema()
  if (typeof config === 'boolean') return config
  if (!isMap(config)) throw new TypeError(`\`Config\` is ${what(config)}; ${ADVICE}`)
  const keys = Object.keys(config)
  if (keys.some(key => isSchema(config[key]))) {
    throw new TypeError('`Config` is a map of schemas; write `Schema.object({ … })` around them')
  }
  if (keys.length > 0 && !keys.some(key => KEYWORDS.includes(key))) {
    throw new TypeError(`\`Config\` is no JSON Schema: \`${keys[0]}\` is none of its words; ${ADVICE}`)
  }
  return config
}

const ADVICE = 'it must be a schema, such as `Schema.object({ … })` of `schemastery`, or a JSON Schema'

function standard({ vendor, jsonSchema }) {
  const json = jsonSchema?.input?.({ target: 'draft-2020-12' })
  if (json) return json
  throw new TypeError(`\`Config\` is a schema of \`${vendor ?? 'somebody else'}\` that has no JSON Schema to show; ${ADVICE}`)
}

function what(config) {
  if (Array.isArray(config)) return 'a list'
  return typeof config === 'function' ? named(config) : `the ${typeof config} ${named(config)}`
}

/** Those of `schema.js`, which is there only where a script uses it. */
function isSchema(value) {
  return typeof value?.toJSONSchema === 'function'
}

/** Whether it is a plain map of values. */
export function isMap(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isSchema(value)
}

/** A value as messages call it. */
export function named(value) {
  if (typeof value === 'function') return value.name ? `the function \`${value.name}\`` : 'a function'
  return typeof value === 'object' ? (JSON.stringify(value) ?? 'an object') : `\`${String(value)}\``
}
