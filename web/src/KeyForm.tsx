import { useRef, useState, type SyntheticEvent } from 'react';
import { keep, whose } from './credential';
import { noticeOf } from './notice';
import { unanswered } from './unanswered';

/** Asks for a key or token and takes the first that the server takes. */
export function KeyForm({ onKept }: { onKept: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [refusal, setRefusal] = useState('');
  const [busy, setBusy] = useState(false);

  async function submit(event: SyntheticEvent) {
    event.preventDefault();
    const secret = field.current!.value.trim().replace(/^Bearer\s+/i, '');
    setBusy(true);
    const reason = await tryOut(secret);
    setBusy(false);
    setRefusal(reason);
    if (reason !== '') return field.current?.select();
    onKept();
  }

  return (
    <form className="koine-key" onSubmit={submit}>
      <label htmlFor="koine-key">This server wants to know who is calling. Your API key or token:</label>
      <div>
        <input id="koine-key" ref={field} type="password" autoComplete="off" spellCheck={false} autoFocus required />
        <button type="submit" disabled={busy}>
          Use it
        </button>
      </div>
      <p role="alert">{refusal}</p>
      <p>It is kept in this browser tab until you forget it or close the tab, and sent to this server only.</p>
    </form>
  );
}

/** Keeps a credential that the server takes; else says why it does not. */
async function tryOut(secret: string): Promise<string> {
  if (!/^[\x21-\x7e]+$/.test(secret)) return 'Neither a key nor a token looks like this.';
  try {
    const answer = await whose(secret);
    if (!(answer instanceof Response)) {
      keep(secret);
      return '';
    }
    const body = await answer.json().catch(() => undefined);
    return noticeOf(answer.status, body, answer.headers.get('retry-after'))?.text ?? `The server answered ${answer.status}.`;
  } catch (error) {
    return unanswered(error);
  }
}
