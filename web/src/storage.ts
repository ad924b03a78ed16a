import { createLocalStorage } from '@graphiql/toolkit';

type Storage = ReturnType<typeof createLocalStorage>;

/** What GraphiQL keeps of the open tabs, as opposed to history and settings. */
export const tabKeys = ['tabState', 'query', 'variables', 'headers'].map((key) => `graphiql:${key}`);

const lists = ['graphiql:queries', 'graphiql:favorites'];

/**
 * What GraphiQL keeps between visits. It would keep the headers of what was run in its
 * history, and with them any credential that was typed there: they are left out.
 */
export function withoutHeaders(kept: Storage): Storage {
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

/**
 * Gives each window its own tabs, also when it is loaded again (sessionStorage). They are
 * kept between visits too: a new window begins with those that were written last.
 */
export function withOwnTabs(kept: Storage): Storage {
  const place = (key: string) => `koine:${key}`;
  if (tabKeys.every((key) => sessionStorage.getItem(place(key)) === null)) {
    for (const key of tabKeys) {
      const value = kept.getItem(key);
      if (value !== null) sessionStorage.setItem(place(key), value);
    }
  }
  return {
    getItem: (key) => (tabKeys.includes(key) ? sessionStorage.getItem(place(key)) : kept.getItem(key)),
    setItem(key, value) {
      if (tabKeys.includes(key)) sessionStorage.setItem(place(key), value);
      kept.setItem(key, value);
    },
    removeItem(key) {
      if (tabKeys.includes(key)) sessionStorage.removeItem(place(key));
      kept.removeItem(key);
    },
    get length() {
      return kept.length;
    },
    clear() {
      tabKeys.forEach((key) => sessionStorage.removeItem(place(key)));
      kept.clear();
    },
  };
}
