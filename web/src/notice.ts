import { useSyncExternalStore } from 'react';

/** Why the server refused the newest request, in words for a person. */
export interface Notice {
  status: number;
  text: string;
}

let newest: Notice | undefined;
const listeners = new Set<() => void>();

export function setNotice(notice: Notice | undefined) {
  newest = notice;
  for (const listener of listeners) listener();
}

export function useNotice(): Notice | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => newest,
  );
}

interface Refusal {
  errors?: readonly { message: string; extensions?: { code?: unknown; hint?: unknown } }[];
}

/**
 * Tells of a refusal that has to do with who is calling; undefined of every other
 * answer. A stream's last event has no status of its own, but the error's code.
 */
export function noticeOf(status: number, answer: Refusal | undefined, retryAfter?: string | null): Notice | undefined {
  const [error] = answer?.errors ?? [];
  if (error?.extensions?.code === 'UNAUTHENTICATED') status = 401;
  const said = error ? `: ${error.message}` : '';
  switch (status) {
    case 401:
      return { status, text: `The server wants another key or token${said}.` };
    case 403:
      return { status, text: `The server does not allow this${said}. ${error?.extensions?.hint ?? ''}`.trim() };
    case 429:
      return { status, text: `Too much at once${said}. ${retryAfter ? `Try again in ${retryAfter} s.` : 'Try again in a moment.'}` };
  }
  return undefined;
}
