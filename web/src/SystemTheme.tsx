import { useEffect } from 'react';
import { useGraphiQL, useGraphiQLActions } from '@graphiql/react';

/**
 * Lets the editors follow when the system changes between light and dark while no
 * theme is chosen. GraphiQL does that for the page, but tells Monaco only at the start.
 */
export function SystemTheme() {
  const chosen = useGraphiQL((state) => state.theme);
  const { setTheme } = useGraphiQLActions();

  useEffect(() => {
    if (chosen) return;
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const follow = () => setTheme(null);
    dark.addEventListener('change', follow);
    return () => dark.removeEventListener('change', follow);
  }, [chosen, setTheme]);

  return null;
}
