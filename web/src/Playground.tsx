import { GraphiQL } from 'graphiql';
import { createLocalStorage } from '@graphiql/toolkit';
import { Header } from './Header';
import { SystemTheme } from './SystemTheme';
import { defaultHeaders, exampleTabs } from './examples';
import { fetcher } from './fetcher';

const storage = createLocalStorage({ namespace: 'koine' });

/** What GraphiQL keeps of the open tabs, as opposed to history and settings. */
const tabKeys = ['tabState', 'query', 'variables', 'headers'];

function restoreExamples() {
  if (!confirm('Close all tabs and open the examples again?')) return;
  for (const key of tabKeys) storage.removeItem(`graphiql:${key}`);
  location.reload();
}

export function Playground() {
  return (
    <>
      <Header onRestoreExamples={restoreExamples} />
      <main className="koine-editor">
        <GraphiQL
          fetcher={fetcher}
          storage={storage}
          defaultTabs={exampleTabs}
          defaultHeaders={defaultHeaders}
          defaultEditorToolsVisibility="headers"
        >
          {/* The name is in the header. */}
          <GraphiQL.Logo>
            <span />
          </GraphiQL.Logo>
          <SystemTheme />
        </GraphiQL>
      </main>
    </>
  );
}
