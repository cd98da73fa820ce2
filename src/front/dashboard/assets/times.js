/**
 * Shows times in the reader's zone: those of `data-local` as their text, with UTC in the tooltip; of the others, which say how long
 * ago, both are the tooltip. The page loads it before its content, so an observer sees each time before it is painted, also in a
 * part that updates itself; nothing changes before the reader's eyes. Without it, times are in UTC.
 */
const local = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' });
const zones = new Intl.DateTimeFormat('en', { timeZoneName: 'short' });

function localize(time) {
  const date = new Date(time.dateTime);
  const utc = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  const zone = zones.formatToParts(date).find(({ type }) => type === 'timeZoneName').value;
  const here = `${local.format(date)} ${zone}`;
  const isText = 'local' in time.dataset;
  if (isText) time.textContent = here;
  time.title = isText || here === utc ? utc : `${here} (${utc})`;
}

new MutationObserver((changes) => {
  for (const { addedNodes } of changes)
    for (const node of addedNodes) {
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      if (node.matches('time[datetime]')) localize(node);
      for (const time of node.querySelectorAll('time[datetime]')) localize(time);
    }
}).observe(document, { childList: true, subtree: true });
