import { Identity } from './Identity';
import mark from './mark.svg';
import { graphqlURL, licencesURL, schemaURL } from './server';

/** The bar above the editor: the name, the endpoint, and what else one may want to read. */
export function Header({ secret, onRestoreExamples }: { secret: string | null; onRestoreExamples: () => void }) {
  return (
    <header className="koine-header">
      <img className="koine-mark" src={mark} alt="" width="24" height="24" />
      <h1>koine</h1>
      <span className="koine-tagline">GraphQL playground</span>
      <code className="koine-endpoint" title="Queries and subscriptions are sent here">
        {new URL(graphqlURL).pathname}
      </code>
      {secret !== null && <Identity key={secret} secret={secret} />}
      <nav>
        <button type="button" onClick={onRestoreExamples}>
          Examples
        </button>
        <a href={schemaURL} target="_blank" rel="noreferrer">
          Schema
        </a>
        <a href={licencesURL} target="_blank" rel="noreferrer">
          Licences
        </a>
      </nav>
    </header>
  );
}
