// Answers requests, one a line of JSON:
//
//   {sdl}                                       builds the schema
//   {document, operationName, variables}        -> {verdict, messages, plain, pieces}
//   {answer: {data, errors: [{message, path}]}} -> {data, errors, missing}: the document's
//                                                  answer, given the answer to its plain form
//   {coverage: true}                            -> {unasked, empty}: the fields of objects that
//                                                  no document asked for, or that were null
//
// variables and data are texts of JSON. The verdict is "invalid" for a document that may
// not be executed, "unknown" if graphql-js cannot tell, "refused" for variables that cannot
// be coerced, else "valid".
import { createInterface } from 'node:readline'
import { execute, getOperationAST, isObjectType, parse as parseDocument, validate } from 'graphql'
import { getVariableValues } from 'graphql/execution/values.js'
import { decode, format, parse } from './json.mjs'
import { asked, PlainAnswer, plainForm } from './plain.mjs'
import { schemaOf } from './schema.mjs'

let schema
let current

function examine({ document: text, operationName: name, variables: given }) {
  const operationName = name || undefined
  let document
  try {
    document = parseDocument(text)
  } catch (e) {
    return { verdict: 'invalid', messages: [e.message] }
  }
  let errors
  try {
    errors = validate(schema, document)
  } catch (e) {
    // A subscription with @skip and a variable (SingleFieldSubscriptionsRule of 16.15).
    return { verdict: 'unknown', messages: [e.message] }
  }
  if (errors.length > 0) return { verdict: 'invalid', messages: errors.map((e) => e.message) }
  const operation = getOperationAST(document, operationName)
  if (!operation) return { verdict: 'invalid', messages: ['no such operation'] }
  const variables = given ? decode(parse(given)) : {}
  const { coerced, errors: refused } = getVariableValues(schema, operation.variableDefinitions ?? [], variables, { maxErrors: 50 })
  if (refused) return { verdict: 'refused', messages: refused.map((e) => e.message) }
  const form = plainForm(schema, document, operation, coerced)
  current = { document, operationName, variables, form }
  return { verdict: 'valid', plain: form.text, pieces: form.pieces }
}

async function answer({ data, errors }) {
  const { document, operationName, variables: variableValues, form } = current
  const values = new PlainAnswer(form, data ? parse(data) : undefined, errors ?? [])
  const { fieldResolver, typeResolver } = values
  const result = await execute({ schema, document, operationName, variableValues, rootValue: values.root, fieldResolver, typeResolver })
  return { data: format(result.data), errors: (result.errors ?? []).map((e) => ({ message: e.message, path: [...(e.path ?? []), ...(e.extensions.below ?? [])] })), missing: values.missing }
}

function coverage() {
  const unasked = []
  const empty = []
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__')) continue
    for (const field of Object.values(type.getFields())) {
      const name = `${type.name}.${field.name}`
      if (!asked.has(name)) unasked.push(name)
      else if (!asked.get(name)) empty.push(name)
    }
  }
  return { unasked, empty }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line)
  let out
  try {
    if (request.sdl) {
      schema = schemaOf(request.sdl)
      out = {}
    } else if (request.coverage) {
      out = coverage()
    } else {
      out = request.answer ? await answer(request.answer) : examine(request)
    }
  } catch (e) {
    out = { failure: e.stack }
  }
  process.stdout.write(JSON.stringify(out) + '\n')
}
