import { cardURL, graphqlURL } from './server';

// The key or token that is sent with every request. It is kept for this browser tab
// only (sessionStorage), and neither in addresses nor in what GraphiQL stores.
const place = 'koine:credential';

export const credential = () => sessionStorage.getItem(place);
export const keep = (secret: string) => sessionStorage.setItem(place, secret);
export const forget = () => sessionStorage.removeItem(place);

/** What tells one credential from another without giving it away: the id in a key. */
export function masked(secret: string): string {
  const [id] = /^ak_(live|test)_[0-9A-Za-z]+_/.exec(secret) ?? ['token '];
  return id + '••••';
}

/** The headers of a request: what the editor says wins. */
export function withCredential(headers: Record<string, string>): Record<string, string> {
  const secret = credential();
  const said = Object.keys(headers).map((name) => name.toLowerCase());
  if (secret === null || said.includes('authorization') || said.includes('x-api-key')) return headers;
  return { ...headers, authorization: `Bearer ${secret}` };
}

/** Whether the server knows its callers by credentials: its agent card says so. */
export async function wantsCredential(): Promise<boolean> {
  try {
    const card = await (await fetch(cardURL)).json();
    return Object.keys(card.securitySchemes ?? {}).length > 0;
  } catch {
    return false; // a server that wants one after all says 401, and then it is asked for
  }
}

export interface Caller {
  id: string;
  roles: string[];
}

/** What the server says of a credential: whose it is, or why it is not taken. */
export async function whose(secret: string): Promise<Caller | Response> {
  const response = await fetch(graphqlURL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
    body: JSON.stringify({ query: 'query Me { me { id roles } }', operationName: 'Me' }),
  });
  if (!response.ok) return response;
  return (await response.json()).data.me;
}
