// The channel that was made last: what is said next is said there, without its id being
// copied by hand. It is kept for the other windows of the browser, too.
const place = 'koine:channel';

export interface Newest {
  id: string;
  /** Whether it was made since this page is there: then it replaces an older one. */
  madeHere: boolean;
}

let made: string | undefined;

export function newestChannel(): Newest | undefined {
  const id = made ?? localStorage.getItem(place);
  return id ? { id, madeHere: made !== undefined } : undefined;
}

/** Keeps the id of the channel that was made, if an answer tells of one. */
export function keepMade(data: Record<string, unknown> | null | undefined) {
  const id = (data?.createChannel as { channel?: { id?: unknown } } | null | undefined)?.channel?.id;
  if (typeof id !== 'string') return;
  made = id;
  localStorage.setItem(place, id);
}

/** The variables with the channel as $channelId; undefined when they are to stay as they are. */
export function withChannel(channel: Newest, query: string, variables: string): string | undefined {
  if (!/\$channelId\s*:/.test(query)) return undefined;
  let said: Record<string, unknown>;
  try {
    said = JSON.parse(variables.trim() || '{}');
  } catch {
    return undefined; // somebody is about to write them
  }
  if (said.to || said.channelId === channel.id || (said.channelId && !channel.madeHere)) return undefined;
  return JSON.stringify({ ...said, channelId: channel.id }, null, 2);
}
