// Runs the server audits of graphql-http against a server: node audits.mjs URL.
// Prints one JSON object a line: {id, name, status, reason}.
import { serverAudits } from 'graphql-http';

const url = process.argv[2];
for (const audit of serverAudits({ url })) {
  const { id, name, status, reason } = await audit.fn();
  console.log(JSON.stringify({ id, name, status, reason }));
}
