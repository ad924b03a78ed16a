// JSON that keeps the text of every value: numbers of 64 bits, and the escapes of strings.

// Leaf is a value of an answer as it was written.
export class Leaf {
  constructor(text) {
    this.text = text
  }
}

// Num is a number in a request that JavaScript would write otherwise, with all its digits. It is
// a function: graphql-js would take an object for an input object.
export class Num {
  constructor(text) {
    return Object.setPrototypeOf(Object.assign(() => {}, { text }), Num.prototype)
  }
  toString() {
    return this.text
  }
}

// parse returns the value of a text as {text, fields: Map}, {text, items: []} or {text}.
export function parse(text) {
  let at = 0
  const space = () => {
    while (at < text.length && ' \n\r\t'.includes(text[at])) at++
  }
  const expect = (c) => {
    if (text[at] !== c) throw new Error(`JSON: ${c} expected at ${at}, got ${text.slice(at, at + 20)}`)
    at++
  }
  const string = () => {
    const start = at
    expect('"')
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
    at++
    return text.slice(start, at)
  }
  const value = () => {
    space()
    const start = at
    const node = {}
    if (text[at] === '{') {
      node.fields = new Map()
      at++
      for (space(); text[at] !== '}'; space()) {
        if (node.fields.size > 0) expect(',')
        space()
        const name = JSON.parse(string())
        space()
        expect(':')
        if (node.fields.has(name)) throw new Error(`JSON: ${name} twice`)
        node.fields.set(name, value())
      }
      at++
    } else if (text[at] === '[') {
      node.items = []
      at++
      for (space(); text[at] !== ']'; space()) {
        if (node.items.length > 0) expect(',')
        node.items.push(value())
      }
      at++
    } else if (text[at] === '"') {
      string()
    } else {
      while (at < text.length && !',]} \n\r\t'.includes(text[at])) at++
    }
    node.text = text.slice(start, at)
    return node
  }
  const node = value()
  space()
  if (at !== text.length) throw new Error(`JSON: text after the value: ${text.slice(at, at + 20)}`)
  return node
}

// decode returns a parsed value as JavaScript has it, or with Num.
export function decode(node) {
  if (node.fields) return Object.fromEntries([...node.fields].map(([k, v]) => [k, decode(v)]))
  if (node.items) return node.items.map(decode)
  const value = JSON.parse(node.text)
  return typeof value === 'number' && String(value) !== node.text ? new Num(node.text) : value
}

// format writes a result of graphql-js.
export function format(v) {
  if (v === null || v === undefined) return 'null'
  if (v instanceof Leaf) return v.text
  if (Array.isArray(v)) return `[${v.map(format).join(',')}]`
  if (typeof v === 'object') return `{${Object.entries(v).map(([k, e]) => `${JSON.stringify(k)}:${format(e)}`).join(',')}}`
  return JSON.stringify(v)
}
