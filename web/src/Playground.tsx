import { useState } from 'react';
import { GraphiQL } from 'graphiql';
import { createLocalStorage } from '@graphiql/toolkit';
import { credential, forget } from './credential';
import { Header } from './Header';
import { KeyForm } from './KeyForm';
import { NewestChannel } from './NewestChannel';
import { NoticeBar } from './NoticeBar';
import { SystemTheme } from './SystemTheme';
import { TabArrows } from './TabArrows';
import { defaultHeaders, exampleTabs } from './examples';
import { fetcher } from './fetcher';
import { setNotice } from './notice';
import { tabKeys, withOwnTabs, withoutHeaders } from './storage';

const storage = withoutHeaders(withOwnTabs(createLocalStorage({ namespace: 'koine' })));

/**
 * Whether headers are to be kept, as chosen in the settings. GraphiQL keeps the choice, and
 * looks at it again only if it is told to keep headers; told false, it offers no choice.
 */
const keepsHeaders = () => storage.getItem('graphiql:shouldPersistHeaders') === 'true' || undefined;

function restoreExamples() {
  if (!confirm('Close all tabs and open the examples again?')) return;
  for (const key of tabKeys) storage.removeItem(key);
  location.reload();
}

/**
 * The page. known: the server knows its callers by credentials, and so is told no name;
 * the editor is there once there is a key.
 */
export function Playground({ known }: { known: boolean }) {
  const [asking, setAsking] = useState(known && credential() === null);
  const headers = known ? undefined : defaultHeaders;

  function askAgain() {
    forget();
    setNotice(undefined);
    setAsking(true);
  }

  return (
    <>
      <Header secret={asking ? null : credential()} onRestoreExamples={restoreExamples} />
      {asking || <NoticeBar onAskAgain={askAgain} />}
      <main className="koine-editor">
        {asking ? (
          <KeyForm onKept={() => setAsking(false)} />
        ) : (
          <GraphiQL
            fetcher={fetcher}
            storage={storage}
            defaultTabs={exampleTabs(headers)}
            defaultHeaders={headers}
            shouldPersistHeaders={keepsHeaders()}
            defaultEditorToolsVisibility="headers"
          >
            {/* The name is in the header; the place beside the tabs is free. */}
            <GraphiQL.Logo>
              <TabArrows />
            </GraphiQL.Logo>
            <SystemTheme />
            <NewestChannel />
          </GraphiQL>
        )}
      </main>
    </>
  );
}
