import { useEffect, useRef } from 'react';
import { useGraphiQL } from '@graphiql/react';
import { newestChannel, withChannel } from './channel';

/**
 * Writes the newest channel into the variables of a tab that takes one, when the tab is
 * chosen. Each only once, so that another can be written in its place.
 */
export function NewestChannel() {
  const tab = useGraphiQL((state) => state.tabs[state.activeTabIndex]?.id);
  const query = useGraphiQL((state) => state.tabs[state.activeTabIndex]?.query);
  const editor = useGraphiQL((state) => state.variableEditor);
  const written = useRef(new Map<string, string>());

  useEffect(() => {
    const newest = newestChannel();
    if (!tab || !editor || !newest || written.current.get(tab) === newest.id) return;
    const variables = withChannel(newest, query ?? '', editor.getValue());
    if (variables === undefined) return;
    written.current.set(tab, newest.id);
    editor.setValue(variables);
  }, [tab, query, editor]);

  return null;
}
