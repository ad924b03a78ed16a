import { createLocalStorage } from '@graphiql/toolkit';

const lists = ['graphiql:queries', 'graphiql:favorites'];

/**
 * What GraphiQL keeps between visits. It would keep the headers of what was run in its
 * history, and with them any credential that was typed there: they are left out.
 */
export function withoutHeaders(kept: ReturnType<typeof createLocalStorage>): ReturnType<typeof createLocalStorage> {
  return {
    ...kept,
    getItem: (key) => kept.getItem(key),
    get length() {
      return kept.length;
    },
    setItem: (key, value) => kept.setItem(key, lists.includes(key) ? strip(value) : value),
  };
}

function strip(value: string): string {
  return JSON.stringify(JSON.parse(value), (key, inner) => (key === 'headers' ? undefined : inner));
}
