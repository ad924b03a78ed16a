import type { ExecutionResult, GraphQLFormattedError } from 'graphql';
import { createClient } from 'graphql-sse';
import { answer, type Headers, type Request } from './answer';
import { EventLog } from './eventlog';
import { noticeOf, setNotice } from './notice';
import { graphqlURL } from './server';
import { asResult, unanswered } from './unanswered';

export interface Sink {
  next(value: ExecutionResult): void;
  complete(): void;
}

/** The wait before the first try to come back; each further one takes twice as long. */
const firstWait = 500;
/** The longest wait, both in milliseconds. */
const longestWait = 15_000;

/** How one connection ended. Behind a cut there is more to come, on another one. */
type End =
  | { kind: 'complete' }
  | { kind: 'cut'; why: string; retryAfter?: number }
  | { kind: 'refused'; answer: ExecutionResult; told: boolean }; // told: the bar says so

/**
 * Follows one subscription across connections and hands the event log on after each
 * event. It comes back behind the last position that it was told, so that nothing is
 * missed and nothing told twice. fromNow says that the operation begins with what comes.
 * Returns the function that ends it.
 */
export function follow(request: Request, headers: Headers, fromNow: boolean, sink: Sink): () => void {
  const stop = new AbortController();
  new Following(request, headers, sink, stop.signal).run(fromNow).catch((reason) => {
    if (!stop.signal.aborted) sink.next(asResult(String(reason)));
    if (!stop.signal.aborted) sink.complete();
  });
  return () => stop.abort();
}

class Following {
  private log = new EventLog();
  /** Behind it is what was not told yet. */
  private position: string | undefined;
  private opened = false;
  private tries = 0;
  private reconnecting = false;
  /** Of the connection: what its last event with errors and nothing else says. */
  private failure: GraphQLFormattedError | undefined;

  constructor(
    private readonly request: Request,
    private readonly headers: Headers,
    private readonly sink: Sink,
    private readonly stop: AbortSignal,
  ) {}

  async run(fromNow: boolean) {
    // Cut off before the first event, it would else begin behind what was missed.
    if (fromNow) this.position = await positionNow(this.headers, this.stop);
    for (let resume: string | undefined; !this.stop.aborted; resume = this.position) {
      this.failure = undefined;
      const end = await this.connect(resume);
      if (this.stop.aborted) break;
      if (end.kind === 'cut' && this.opened) {
        await this.wait(end);
        continue;
      }
      if (end.kind === 'cut') this.sink.next(asResult(end.why));
      if (end.kind === 'refused') this.sink.next(this.opened ? this.log.add(end.answer) : end.answer);
      this.tellEnd(end, resume !== undefined);
      return this.sink.complete();
    }
    if (this.reconnecting) setNotice(undefined);
  }

  /** Says in the bar that a subscription that was under way is over, and why. */
  private tellEnd(end: End, resumed: boolean) {
    const error = end.kind === 'refused' ? end.answer.errors?.[0] : this.failure;
    if (!this.opened || !error || (end.kind === 'refused' && end.told)) return;
    const what = resumed ? 'The subscription cannot go on' : 'The subscription has ended';
    const text = `${what}: ${error.message}. Run it again to begin anew.`;
    setNotice(noticeOf(200, { errors: [error] }) ?? { status: 0, text });
  }

  /** Waits before the next try, and says so. */
  private async wait({ why, retryAfter = 0 }: { why: string; retryAfter?: number }) {
    this.reconnecting = true;
    setNotice({ status: 0, text: `${why} Reconnecting …` });
    const most = Math.min(longestWait, firstWait * 2 ** this.tries++);
    await sleep(Math.max(most * (0.5 + Math.random() / 2), retryAfter * 1000), this.stop);
  }

  /** One connection (graphql-sse, distinct connections mode), to its end. */
  private connect(resume: string | undefined): Promise<End> {
    if (resume === undefined) this.log = new EventLog(); // it begins anew
    let refused: End | undefined;
    let cut = false;
    const client = createClient({
      url: graphqlURL,
      headers: resume === undefined ? this.headers : behind(resume, this.headers),
      retryAttempts: 0, // it would not come back behind the last position
      // The client takes any body for an event stream, and drops the body of an error.
      fetchFn: async (input: RequestInfo, init?: RequestInit) => {
        const response = await fetch(input, init);
        if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
          this.opened = true;
          if (this.reconnecting) setNotice(undefined);
          this.reconnecting = false;
          return ended(response);
        }
        refused = await this.refusal(response);
        throw new Error('the server refused the subscription');
      },
    });
    return new Promise((resolve) => {
      const over = (reason?: unknown) => {
        if (refused) resolve(refused);
        else if (this.failure && !isPassing(this.failure)) resolve({ kind: 'complete' });
        else if (this.failure) resolve({ kind: 'cut', why: `The server has let go: ${this.failure.message}.` });
        else if (reason !== undefined) resolve({ kind: 'cut', why: unanswered(reason) });
        else resolve(cut ? { kind: 'cut', why: 'The connection was cut off.' } : { kind: 'complete' });
      };
      const unsubscribe = client.subscribe(
        this.request,
        { next: (event) => this.take(event as ExecutionResult), complete: () => over(), error: over },
        { message: ({ event, data }) => void (cut ||= event === 'complete' && (data as unknown) !== null) },
      );
      this.stop.addEventListener('abort', unsubscribe, { once: true });
    });
  }

  /** What an answer that is no stream means: one that passes is no reason to give up. */
  private async refusal(response: Response): Promise<End> {
    const said = await answer(response);
    if (!this.opened || ![429, 502, 503, 504].includes(response.status)) {
      return { kind: 'refused', answer: said, told: noticeOf(response.status, said) !== undefined };
    }
    const retryAfter = Number(response.headers.get('retry-after')) || 0;
    return { kind: 'cut', why: `The server does not take the subscription back yet: ${said.errors?.[0]?.message}`, retryAfter };
  }

  /** Takes an event in. */
  private take(event: ExecutionResult) {
    if (this.stop.aborted) return;
    const [error] = event.errors ?? [];
    const told = event.extensions?.position ?? error?.extensions?.position;
    if (typeof told === 'string') this.position = told;
    this.failure = event.data === undefined ? error : undefined;
    if (this.failure && isPassing(this.failure)) return; // it goes on
    if (!this.failure) this.tries = 0;
    setNotice(noticeOf(200, event));
    this.sink.next(this.log.add(event));
  }
}

/** Whether a stream that the server ends for this can be resumed at once. */
function isPassing({ extensions }: GraphQLFormattedError) {
  return extensions?.code === 'SERVER_SHUTDOWN' || extensions?.code === 'SLOW_CONSUMER';
}

/** The headers that ask for what comes behind a position. */
function behind(position: string, headers: Headers): Headers {
  const others = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'last-event-id');
  return { ...Object.fromEntries(others), 'last-event-id': position };
}

/** The position of the newest that there is; undefined where it cannot be learned. */
async function positionNow(headers: Headers, signal: AbortSignal): Promise<string | undefined> {
  try {
    const response = await fetch(graphqlURL, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query: 'query Position { __typename }', operationName: 'Position' }),
      signal,
    });
    return (await response.json()).extensions?.position;
  } catch {
    return undefined; // the subscription itself tells what is wrong
  }
}

/** Waits, at most until the signal. */
function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** What a stream that was cut off ends with, so that it can be told from one at its end. */
const cutMark = new TextEncoder().encode('\n\nevent: complete\ndata: {"cut": true}\n\n');

/**
 * The stream with an end that the client sees. A server that cuts one off (a key was
 * revoked, it shuts down) says why in the last event and sends no `complete`; when that
 * event and the end come together, the client waits for ever.
 */
function ended(response: Response): Response {
  const reader = response.body!.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(stream) {
      const { value } = await reader.read().catch(() => ({ value: undefined }));
      stream.enqueue(value ?? cutMark);
      if (value === undefined) stream.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}
