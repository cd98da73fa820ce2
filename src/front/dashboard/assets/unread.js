/**
 * Marks the emails of the test inbox that this browser has not opened yet, and counts them in the title. The opened ones are kept
 * in the browser: reading is a person's own matter.
 */
const maxKept = 2000;
const opened = new Set(JSON.parse(localStorage.getItem('opened') ?? '[]'));
const here = /\/emails\/([0-9a-f-]{36})$/.exec(location.pathname)?.[1];
if (here && !opened.has(here)) {
  opened.add(here);
  localStorage.setItem('opened', JSON.stringify([...opened].slice(-maxKept)));
}

const { title } = document;
function markUnread() {
  const rows = [...document.querySelectorAll('[data-email]')];
  for (const row of rows) row.classList.toggle('unread', !opened.has(row.dataset.email));
  const unread = rows.filter((row) => row.classList.contains('unread')).length;
  if (!here) document.title = unread > 0 ? `(${unread}) ${title}` : title;
}
markUnread();
document.addEventListener('htmx:load', markUnread);
