import { setNotice, useNotice } from './notice';

/** Says why the server refused, and lets another key be entered where that helps. */
export function NoticeBar({ onAskAgain }: { onAskAgain: () => void }) {
  const notice = useNotice();
  if (notice === undefined) return null;
  return (
    <div className="koine-notice" role="alert">
      <span>{notice.text}</span>
      {notice.status === 401 && (
        <button type="button" onClick={onAskAgain}>
          Enter a key
        </button>
      )}
      <button type="button" className="koine-close" aria-label="Close notice" onClick={() => setNotice(undefined)}>
        ×
      </button>
    </div>
  );
}
