// The schema as graphql-js builds it, with scalars that pass on what they are given:
// whether a text is a date is koine's to say, in the plain form of the document too.
import {
  buildSchema, GraphQLBoolean, GraphQLFloat, GraphQLID, GraphQLInt, GraphQLString, isEnumType, isInputObjectType,
  isListType, isNonNullType, isScalarType, isSpecifiedScalarType,
} from 'graphql'
import { Leaf, Num } from './json.mjs'

export function schemaOf(sdl) {
  const schema = buildSchema(sdl)
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith('__')) continue
    if (isEnumType(type)) passEnum(type)
    if (isScalarType(type) && !isSpecifiedScalarType(type)) passScalar(type)
  }
  return schema
}

const passesAs = (type, fits) => {
  type.serialize = (v) => {
    if (!(v instanceof Leaf)) return v // of introspection
    if (!fits(v.text)) throw new Error(`${v.text} is no ${type.name}`)
    return v
  }
  const { parseValue } = type
  type.parseValue = (v) => parseValue(v instanceof Num ? Number(v.text) : v)
}
const quoted = (text) => text[0] === '"'
passesAs(GraphQLString, quoted)
passesAs(GraphQLID, quoted)
passesAs(GraphQLBoolean, (text) => text === 'true' || text === 'false')
passesAs(GraphQLFloat, (text) => Number.isFinite(Number(text)))
passesAs(GraphQLInt, (text) => /^-?\d+$/.test(text) && Math.abs(Number(text)) < 2 ** 31)

function passEnum(type) {
  const { serialize, parseValue } = type
  type.name_of = serialize.bind(type)
  type.serialize = (v) => {
    if (!(v instanceof Leaf)) return serialize.call(type, v)
    serialize.call(type, JSON.parse(v.text))
    return v
  }
  type.parseValue = (v) => parseValue.call(type, v instanceof Num ? Number(v.text) : v)
}

function passScalar(type) {
  type.serialize = (v) => v
  type.parseValue = (v) => v
  type.parseLiteral = untyped
}

function untyped(node, variables) {
  switch (node.kind) {
    case 'NullValue': return null
    case 'IntValue':
    case 'FloatValue': return new Num(node.value)
    case 'ListValue': return node.values.map((v) => untyped(v, variables))
    case 'ObjectValue': return Object.fromEntries(node.fields.map((f) => [f.name.value, untyped(f.value, variables)]))
    case 'Variable': return variables?.[node.name.value]
  }
  return node.value
}

// literal writes a coerced value of an input type.
export function literal(v, type) {
  if (isNonNullType(type)) type = type.ofType
  if (v === null || v === undefined) return 'null'
  if (isListType(type)) return `[${v.map((e) => literal(e, type.ofType)).join(', ')}]`
  if (isInputObjectType(type)) {
    return `{${Object.values(type.getFields()).filter((f) => v[f.name] !== undefined).map((f) => `${f.name}: ${literal(v[f.name], f.type)}`).join(', ')}}`
  }
  return isEnumType(type) ? type.name_of(v) : anyLiteral(v)
}

function anyLiteral(v) {
  if (v instanceof Num) return v.text
  if (Array.isArray(v)) return `[${v.map(anyLiteral).join(', ')}]`
  if (v !== null && typeof v === 'object') return `{${Object.entries(v).map(([k, e]) => `${k}: ${anyLiteral(e)}`).join(', ')}}`
  return JSON.stringify(v ?? null)
}
