// Reads lists page by page through a public client that joins the pages of a connection
// in its cache: node pages.mjs URL CLIENT CHANNEL, where CLIENT is apollo3, apollo4 or
// graphcache. Prints the names of the channels and the texts of the messages as the
// cache has them at the end, forward and, of messages, backward.
import { createRequire } from 'node:module';

const [url, kind, channel] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const headers = { 'X-Agent-Id': 'ann' };

const channels = `query Channels($after: Cursor) {
  channels(first: 2, after: $after) { edges { cursor node { id name } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }
}`;
const messages = `query Messages($id: ID!, $after: Cursor) {
  channel(id: $id) { id messages(first: 2, after: $after) { edges { cursor node { id text } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }
}`;
const latest = `query Latest($id: ID!, $before: Cursor) {
  channel(id: $id) { id messages(last: 2, before: $before) { edges { cursor node { id text } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }
}`;

async function apollo({ ApolloClient, InMemoryCache, HttpLink, gql }, { relayStylePagination }) {
  const make = () =>
    new ApolloClient({
      link: new HttpLink({ uri: url, fetch, headers }),
      cache: new InMemoryCache({
        typePolicies: { Query: { fields: { channels: relayStylePagination() } }, Channel: { fields: { messages: relayStylePagination() } } },
      }),
    });
  const walk = async (text, variables, of, backward) => {
    const client = make();
    const query = client.watchQuery({ query: gql(text), variables });
    const follow = query.subscribe(() => {});
    let { data } = await query.refetch();
    for (let page = of(data).pageInfo; backward ? page.hasPreviousPage : page.hasNextPage; page = of(data).pageInfo) {
      await query.fetchMore({ variables: backward ? { before: page.startCursor } : { after: page.endCursor } });
      data = client.readQuery({ query: gql(text), variables });
    }
    follow.unsubscribe();
    return of(data).edges.map((e) => e.node.name ?? e.node.text);
  };
  return walk;
}

async function graphcache() {
  const { Client, fetchExchange, gql } = await import('@urql/core');
  const { cacheExchange } = await import('@urql/exchange-graphcache');
  const { relayPagination } = await import('@urql/exchange-graphcache/extras');
  return async (text, variables, of, backward) => {
    const resolvers = { Query: { channels: relayPagination() }, Channel: { messages: relayPagination() } };
    const client = new Client({ url, preferGetMethod: false, fetchOptions: { headers }, exchanges: [cacheExchange({ resolvers }), fetchExchange] });
    let at = {};
    for (;;) {
      const { data, error } = await client.query(gql(text), { ...variables, ...at }).toPromise();
      if (error) throw error;
      const page = of(data).pageInfo;
      if (!(backward ? page.hasPreviousPage : page.hasNextPage)) return of(data).edges.map((e) => e.node.name ?? e.node.text);
      at = backward ? { before: page.startCursor } : { after: page.endCursor };
    }
  };
}

const clients = {
  apollo3: () => apollo(require('apollo3/core'), require('apollo3/utilities')),
  apollo4: async () => apollo(await import('apollo4'), await import('apollo4/utilities')),
  graphcache,
};

const walk = await clients[kind]();
const inChannel = (data) => data.channel.messages;
console.log(JSON.stringify(await walk(channels, {}, (data) => data.channels, false)));
console.log(JSON.stringify(await walk(messages, { id: channel }, inChannel, false)));
console.log(JSON.stringify(await walk(latest, { id: channel }, inChannel, true)));
