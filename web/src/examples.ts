// The tabs of a first visit: the files of examples/, in the order of their names.
// They are plain GraphQL documents, so that tests can validate and run them.
const documents = import.meta.glob<string>('../examples/*.graphql', {
  query: '?raw',
  import: 'default',
  eager: true,
});

/** The agent that a server in open mode takes the playground for. */
export const defaultHeaders = JSON.stringify({ 'X-Agent-ID': 'agent://playground' }, null, 2);

/** The example tabs with these headers. */
export const exampleTabs = (headers?: string) =>
  Object.keys(documents)
    .sort()
    .map((file) => ({ query: documents[file]!.trimEnd(), headers }));
