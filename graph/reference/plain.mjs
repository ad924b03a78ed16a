// The plain form of an operation: the same fields without fragments, directives, variables
// and defaults, none of them twice and each under an alias of its own. It is what an
// executor is asked for that has none of the execution rules, and its answer is where the
// resolvers of graphql-js take their values and errors from.
import { collectFields, collectSubfields } from 'graphql/execution/collectFields.js'
import { getArgumentValues } from 'graphql/execution/values.js'
import { getNamedType, getNullableType, isAbstractType, isEnumType, isLeafType, isListType, isNonNullType, Kind } from 'graphql'
import { Leaf } from './json.mjs'
import { literal } from './schema.mjs'

// A level describes the selections of an object in the plain form:
// types[TYPE].get(KEY) = {alias, key, type, level} for each response key of a type.
export function plainForm(schema, document, operation, variables) {
  const fragments = Object.create(null)
  for (const d of document.definitions) {
    if (d.kind === Kind.FRAGMENT_DEFINITION) fragments[d.name.value] = d
  }
  let aliases = 0
  const levelOf = (type, collect) => {
    const level = { types: Object.create(null), text: '', pieces: [] }
    for (const possible of isAbstractType(type) ? schema.getPossibleTypes(type) : [type]) {
      const fields = new Map()
      let text = ''
      for (const [key, nodes] of collected(() => collect(possible))) {
        const name = nodes[0].name.value
        const def = possible.getFields()[name]
        if (!def) continue // __typename and introspection, which graphql-js answers
        let args
        try {
          args = getArgumentValues(def, nodes[0], variables)
        } catch {
          continue // refused before a resolver is asked
        }
        const field = { alias: `f${++aliases}`, key, type: def.type }
        const given = def.args.filter((a) => args[a.name] !== undefined)
        let piece = ` ${field.alias}: ${name}`
        if (given.length > 0) piece += `(${given.map((a) => `${a.name}: ${literal(args[a.name], a.type)}`).join(', ')})`
        const named = getNamedType(def.type)
        if (!isLeafType(named)) {
          field.level = levelOf(named, (t) => collectSubfields(schema, fragments, variables, t, nodes))
          piece += ` {${field.level.text} }`
        }
        text += piece
        level.pieces.push(piece)
        fields.set(key, field)
      }
      level.types[possible.name] = fields
      if (isAbstractType(type) && text) text = ` ... on ${possible.name} {${text} }`
      level.text += text
    }
    if (isAbstractType(type)) level.text = ' __typename' + level.text
    level.text ||= ' __typename'
    return level
  }
  const root = { query: schema.getQueryType(), mutation: schema.getMutationType(), subscription: schema.getSubscriptionType() }[operation.operation]
  const level = levelOf(root, (t) => collectFields(schema, fragments, variables, t, operation.selectionSet))
  const pieces = level.pieces.map((piece) => `${operation.operation} {${piece} }`)
  return { text: `${operation.operation} {${level.text} }`, pieces, level }
}

// collected is what a selection set collects: nothing if a directive cannot be evaluated.
function collected(collect) {
  try {
    return collect()
  } catch {
    return []
  }
}

// Source is an object of the plain answer, for the resolvers.
class Source {
  constructor(node, level, path) {
    Object.assign(this, { node, level, path })
  }
}

// asked has the fields that had a value, as TYPE.FIELD, and those that were null alone.
export const asked = new Map()

// PlainAnswer gives graphql-js the values and errors of the answer to a plain form.
export class PlainAnswer {
  constructor(form, data, errors) {
    this.errors = new Map(errors.filter((e) => e.path).map((e) => [e.path.join('/'), e]))
    this.missing = []
    this.root = new Source(data, form.level, [])
    this.fieldResolver = this.fieldResolver.bind(this)
    this.typeResolver = this.typeResolver.bind(this)
  }

  fieldResolver(source, _args, _context, info) {
    const field = source.level.types[info.parentType.name]?.get(info.path.key)
    if (!field) {
      this.missing.push(`${info.parentType.name}.${info.fieldName}`)
      return null
    }
    const name = `${info.parentType.name}.${info.fieldName}`
    const text = source.node?.fields?.get(field.alias)?.text ?? 'null'
    asked.set(name, asked.get(name) || text !== 'null')
    const path = [...source.path, field.alias]
    if (!source.node?.fields && !this.errors.has(path.join('/')) && this.below(path).length === 0) return filler(info.returnType, field.level, path)
    return this.valueOf(source.node?.fields?.get(field.alias), info.returnType, field.level, path)
  }

  typeResolver(source) {
    return source.type ?? JSON.parse(source.node.fields.get('__typename').text)
  }

  valueOf(node, type, level, path) {
    const error = this.errors.get(path.join('/'))
    if (error) return new Error(error.message)
    type = getNullableType(type)
    const absent = !node || node.text === 'null'
    if (absent) {
      const below = this.below(path)
      const early = below.find((p) => !reaches(p, type, level))
      if (early) return Object.assign(new Error('below'), { extensions: { below: keysOf(early, level) } })
      if (below.length === 0) return null
    }
    if (isListType(type)) {
      const items = absent ? this.ghostItems(path) : node.items
      return items.map((n, i) => {
        const at = [...path, i]
        if (absent && !this.errors.has(at.join('/')) && this.below(at).length === 0) return filler(type.ofType, level, at)
        return this.valueOf(n, type.ofType, level, at)
      })
    }
    if (level) return absent ? this.ghost(level, path) : new Source(node, level, path)
    return new Leaf(node.text)
  }

  // below lists the errors that lie below a place.
  below(path) {
    const prefix = path.join('/') + '/'
    return [...this.errors.keys()].filter((k) => k.startsWith(prefix)).map((k) => k.slice(prefix.length).split('/'))
  }

  // ghost stands for an object of which the answer has only the errors below it, one of which
  // made it null.
  ghost(level, path) {
    const source = new Source(undefined, level, path)
    source.type = fieldsOf(level).find(({ field }) => this.below(path).some((p) => p[0] === field.alias)).type
    return source
  }

  ghostItems(path) {
    return Array.from({ length: Math.max(...this.below(path).map((p) => Number(p[0]))) + 1 })
  }
}

// filler is a value of which nothing will be left.
function filler(type, level, path) {
  if (!isNonNullType(type)) return null
  type = getNullableType(type)
  if (isListType(type)) return []
  if (!level) return new Leaf(type.name === 'Boolean' ? 'true' : isEnumType(type) ? JSON.stringify(type.getValues()[0].name) : ['String', 'ID'].includes(type.name) ? '""' : '0')
  const source = new Source(undefined, level, path)
  source.type = Object.keys(level.types)[0]
  return source
}

const fieldsOf = (level) => Object.entries(level.types).flatMap(([type, fields]) => [...fields.values()].map((field) => ({ type, field })))
const fieldAt = (level, alias) => fieldsOf(level ?? { types: {} }).find(({ field }) => field.alias === alias)?.field

// reaches reports whether an error on a path below a place makes the place null by the rules
// of GraphQL: there is nothing in between that may be null. Where it does not, the engine let
// a field fail for a part that it had not come to.
function reaches(path, type, level) {
  if (path.length === 0) return true
  if (isListType(type)) {
    return /^\d+$/.test(path[0]) && isNonNullType(type.ofType) && reaches(path.slice(1), getNullableType(type.ofType), level)
  }
  const field = fieldAt(level, path[0])
  return field !== undefined && isNonNullType(field.type) && reaches(path.slice(1), getNullableType(field.type), field.level)
}

// keysOf is a path of the plain form as the document has it.
function keysOf(path, level) {
  return path.map((step) => {
    const field = fieldAt(level, step)
    if (!field) return Number(step)
    level = field.level
    return field.key
  })
}
