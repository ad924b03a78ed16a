import type { ExecutionResult } from 'graphql';

/** How many events of a subscription stay in the result pane. */
export const maxShown = 50;

/**
 * The events of one subscription, newest first, in a shape for the result pane.
 * A commit arrives as several events at once: showing only the last of them, as the
 * pane does on its own, would hide the others.
 */
export class EventLog {
  private received = 0;
  private newestFirst: ExecutionResult[] = [];

  add(event: ExecutionResult): ExecutionResult {
    if (isMark(event)) {
      // Only the newest mark says something: how far the stream has been read.
      this.newestFirst = this.newestFirst.filter((shown) => !isMark(shown));
    } else {
      this.received++;
    }
    this.newestFirst = [event, ...this.newestFirst].slice(0, maxShown);
    return { received: this.received, newestFirst: this.newestFirst } as ExecutionResult;
  }
}

/** Whether an event only says that nothing happened up to its position. */
function isMark(event: ExecutionResult): boolean {
  return Object.values(event.data ?? {}).some(
    (root) => (root as { __typename?: string } | null)?.__typename === 'Progress',
  );
}
