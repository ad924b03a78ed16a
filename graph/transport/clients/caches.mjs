// Shows the past and the present side by side through a public client that keeps
// objects by id: node caches.mjs URL CLIENT IRI PREDICATE REVISION, where CLIENT is
// apollo3, apollo4 or graphcache. Prints a line for each query: what the client shows,
// read from its cache.
import { createRequire } from 'node:module';

const [url, kind, iri, predicate, revision] = process.argv.slice(2);
const require = createRequire(import.meta.url);

const queries = {
  entity: `query Entity($iri: IRI!, $predicate: IRI!, $at: Moment!) {
    now: entity(iri: $iri) { __typename id value(predicate: $predicate) }
    before: entity(iri: $iri, view: {at: $at}) { __typename id value(predicate: $predicate) }
  }`,
  statements: `query Statements($iri: IRI!, $predicate: IRI!, $at: Moment!) {
    now: entity(iri: $iri) { __typename id out(where: {predicate: {eq: $predicate}}) { nodes { __typename id certainty subject { __typename id } } } }
    before: entity(iri: $iri, view: {at: $at}) { __typename id out(where: {predicate: {eq: $predicate}}) { nodes { __typename id certainty subject { __typename id } } } }
  }`,
  history: `query History($iri: IRI!, $predicate: IRI!) {
    entity(iri: $iri) { __typename id history(where: {predicate: {eq: $predicate}}) { nodes { op statement { __typename id certainty } previous { __typename id certainty } } } }
  }`,
};
const variables = { iri, predicate, at: Number(revision) };

async function apollo({ ApolloClient, InMemoryCache, HttpLink, gql }) {
  const client = new ApolloClient({ link: new HttpLink({ uri: url, fetch }), cache: new InMemoryCache() });
  for (const text of Object.values(queries)) await client.query({ query: gql(text), variables });
  return (text) => client.readQuery({ query: gql(text), variables });
}

async function graphcache() {
  const { Client, fetchExchange, gql } = await import('@urql/core');
  const { cacheExchange } = await import('@urql/exchange-graphcache');
  const client = new Client({ url, preferGetMethod: false, exchanges: [cacheExchange({}), fetchExchange] });
  for (const text of Object.values(queries)) {
    const { error } = await client.query(gql(text), variables).toPromise();
    if (error) throw error;
  }
  return async (text) => (await client.query(gql(text), variables, { requestPolicy: 'cache-only' }).toPromise()).data;
}

const clients = {
  apollo3: () => apollo(require('apollo3/core')),
  apollo4: () => import('apollo4').then(apollo),
  graphcache,
};

const cached = await clients[kind]();
for (const text of Object.values(queries)) console.log(JSON.stringify(await cached(text)));
