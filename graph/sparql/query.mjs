// Answers queries with oxigraph: reads [{graph, queries}] as JSON from standard input,
// graph as N-Triples, and writes for each query a line of JSON: its solutions, each
// an object of terms as N-Triples writes them, or {error}.
import { readFileSync } from 'node:fs'
import { Store } from 'oxigraph'

for (const { graph, queries } of JSON.parse(readFileSync(0, 'utf8'))) {
  const store = new Store()
  store.load(graph, { format: 'application/n-triples' })
  for (const query of queries) {
    try {
      const rows = store.query(query).map((row) => Object.fromEntries([...row].map(([name, term]) => [name, term.toString()])))
      console.log(JSON.stringify(rows))
    } catch (e) {
      console.log(JSON.stringify({ error: String(e.message ?? e) }))
    }
  }
}
