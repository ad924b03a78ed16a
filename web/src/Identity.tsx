import { useEffect, useState } from 'react';
import { forget, masked, whose, type Caller } from './credential';

/** Who is calling, by which credential, and the way to forget it. */
export function Identity({ secret }: { secret: string }) {
  const [caller, setCaller] = useState<Caller>();

  useEffect(() => {
    let gone = false;
    whose(secret).then(
      (answer) => gone || answer instanceof Response || setCaller(answer),
      () => {}, // the editor's own first request tells what is wrong
    );
    return () => {
      gone = true;
    };
  }, [secret]);

  // A new page holds nothing of what was read with the key, and no stream goes on.
  function end() {
    forget();
    location.reload();
  }

  return (
    <div className="koine-identity">
      <span title="To act for another agent, name it as X-Agent-ID in the Headers tab">
        {caller && [caller.id, ...caller.roles].join(', ')} <code>{masked(secret)}</code>
      </span>
      <button type="button" onClick={end}>
        Forget key
      </button>
    </div>
  );
}
