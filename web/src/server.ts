// Where the server's other resources are. Everything is relative to the page,
// which is served as <prefix>/playground (or <prefix>/), so that a reverse proxy
// may put koine under any path.
const at = (path: string) => new URL(path, document.baseURI).href;

export const graphqlURL = at('graphql');
export const cardURL = at('.well-known/agent-card.json');
export const schemaURL = at('graphql/schema');
export const licencesURL = at('playground/THIRD_PARTY_LICENSES.txt');
