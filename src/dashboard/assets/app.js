/**
 * Enhancements in the browser: copy buttons, local times, no double submits, file import, menus. All pages work without it.
 * Elements opt in by data attributes; nothing is inline, because the content security policy forbids it.
 */
const root = document.documentElement;
root.classList.add('js');

const say = (text) => {
  document.getElementById('announcer').textContent = text;
};

/** htmx requests carry the CSRF token in a header. */
document.addEventListener('htmx:configRequest', (event) => {
  event.detail.headers['X-CSRF-Token'] = document.querySelector('meta[name=csrf]').content;
});
document.addEventListener('htmx:responseError', () => say('The page could not be updated. Reload it.'));
document.addEventListener('htmx:sendError', () => say('The server cannot be reached.'));

document.addEventListener('click', async (event) => {
  const copy = event.target.closest('[data-copy]');
  if (copy) {
    await copyText(copy.dataset.copy);
    const word = copy.querySelector('span');
    word.textContent = 'Copied';
    say('Copied');
    setTimeout(() => {
      word.textContent = 'Copy';
    }, 2000);
  }
  event.target.closest('[data-dismiss]')?.parentElement.remove();
});

/** navigator.clipboard exists on secure origins only; otherwise a selection is copied. */
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** Shows times in the reader's zone in their tooltips. */
function localTimes(within) {
  for (const time of within.querySelectorAll('time[datetime]'))
    time.title = new Date(time.dateTime).toLocaleString(undefined, {
      dateStyle: 'medium',
      timeStyle: 'long',
    });
}
localTimes(document);
document.addEventListener('htmx:load', (event) => localTimes(event.detail.elt));

/** A double click must not submit a form twice. */
document.addEventListener('submit', (event) => {
  if (event.target.method !== 'post') return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = 'yes';
});
addEventListener('pageshow', () => {
  for (const form of document.forms) delete form.dataset.sent;
});

/** Copies a chosen file's text into the field named by `data-into`. */
document.addEventListener('change', async (event) => {
  const { into } = event.target.dataset;
  const [file] = (into && event.target.files) || [];
  if (!file) return;
  document.getElementById(into).value = await file.text();
  say(`${file.name} was read into the field.`);
});

/** Reloading a page that answered a POST must not post again. */
history.replaceState(history.state, '', document.querySelector('[data-at]')?.dataset.at ?? location.href);

/** Closes an open menu on a click outside it and on Escape. */
document.addEventListener('click', (event) => {
  for (const open of document.querySelectorAll('details.switcher[open]'))
    if (!open.contains(event.target)) open.open = false;
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const open of document.querySelectorAll('details.switcher[open]')) {
    open.open = false;
    open.querySelector('summary').focus();
  }
});
