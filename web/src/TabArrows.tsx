import { useEffect, useState } from 'react';
import { useGraphiQL } from '@graphiql/react';

const tabBar = () => document.querySelector<HTMLElement>('.graphiql-tabs');

/** Scrolls the bar of tabs just so far that the active tab is in sight. */
function showActiveTab() {
  const bar = tabBar();
  const tab = bar?.querySelector('.graphiql-tab-active');
  if (!bar || !tab) return;
  const [outer, inner] = [bar.getBoundingClientRect(), tab.getBoundingClientRect()];
  const before = outer.left - inner.left;
  const behind = Math.min(inner.right - outer.right, inner.left - outer.left);
  if (before > 0) bar.scrollLeft -= before;
  else if (behind > 0) bar.scrollLeft += behind;
}

/** A wheel that only turns up and down scrolls the bar, which only goes to the sides. */
function scrollSideways({ deltaX, deltaY }: WheelEvent) {
  if (deltaX === 0) tabBar()!.scrollLeft += deltaY;
}

/** Scrolls by most of what is in sight. */
function page(direction: number) {
  const bar = tabBar()!;
  bar.scrollLeft += direction * bar.clientWidth * 0.8;
}

interface Hidden {
  before: boolean;
  behind: boolean;
}

/** What is out of sight, in whole pixels: what zooming leaves over is nothing. */
function hidden(bar: HTMLElement): Hidden {
  const left = bar.scrollWidth - bar.clientWidth - bar.scrollLeft;
  return { before: bar.scrollLeft >= 1, behind: left >= 1 };
}

/**
 * Lets all tabs be reached, however many there are and however narrow the window is: the
 * active tab comes into sight, a wheel scrolls, and arrows are there while they are needed.
 */
export function TabArrows() {
  const active = useGraphiQL((state) => state.tabs[state.activeTabIndex]?.id);
  const titles = useGraphiQL((state) => state.tabs.map((tab) => tab.title).join('\n'));
  const [{ before, behind }, setHidden] = useState<Hidden>({ before: false, behind: false });

  function look() {
    const bar = tabBar();
    if (bar) setHidden(hidden(bar));
  }

  useEffect(showActiveTab, [active]);
  useEffect(look, [active, titles]);

  useEffect(() => {
    const bar = tabBar();
    if (!bar) return;
    const resized = new ResizeObserver(() => {
      showActiveTab();
      look();
    });
    resized.observe(bar);
    bar.addEventListener('scroll', look, { passive: true });
    bar.addEventListener('wheel', scrollSideways, { passive: true });
    return () => {
      resized.disconnect();
      bar.removeEventListener('scroll', look);
      bar.removeEventListener('wheel', scrollSideways);
    };
  }, []);

  if (!before && !behind) return null;
  return (
    <div className="koine-tab-arrows">
      <button type="button" aria-label="Tabs before" disabled={!before} onClick={() => page(-1)}>
        ‹
      </button>
      <button type="button" aria-label="Tabs behind" disabled={!behind} onClick={() => page(1)}>
        ›
      </button>
    </div>
  );
}
