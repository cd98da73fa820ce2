/**
 * Enhancements in the browser: copy buttons, no double submits, file import. All pages work without it.
 * Elements opt in by data attributes; nothing is inline, because the content security policy forbids it.
 */
const say = (text) => {
  document.getElementById('announcer').textContent = text;
};

/** htmx requests carry the CSRF token in a header. */
document.addEventListener('htmx:configRequest', (event) => {
  event.detail.headers['X-CSRF-Token'] = document.querySelector('meta[name=csrf]').content;
});
document.addEventListener('htmx:responseError', () => say('The page could not be updated. Reload it.'));
const showOffline = (isOffline) => {
  document.getElementById('offline').hidden = !isOffline;
};
document.addEventListener('htmx:sendError', () => showOffline(true));
document.addEventListener('htmx:beforeOnLoad', () => showOffline(false));

document.addEventListener('click', async (event) => {
  const copy = event.target.closest('[data-copy]');
  if (copy) {
    await copyText(copy.dataset.copy);
    const word = copy.querySelector('span');
    word.dataset.label ??= word.textContent;
    word.textContent = 'Copied';
    say('Copied');
    setTimeout(() => {
      word.textContent = word.dataset.label;
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

/** A double click must not submit a form twice. */
document.addEventListener('submit', (event) => {
  if (event.target.method !== 'post') return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = 'yes';
});
addEventListener('pageshow', () => {
  for (const form of document.forms) delete form.dataset.sent;
});

/** A search has no parameters for what is left empty. */
document.addEventListener('formdata', ({ target, formData }) => {
  if (target.method === 'post') return;
  for (const [name, value] of [...formData]) if (value === '') formData.delete(name);
});

/** If the session has ended when a form is sent, its text is there again after signing in; passwords are not kept. */
const keptForm = `form ${location.pathname}`;
document.addEventListener('submit', ({ target }) => {
  if (target.method !== 'post' || document.body.classList.contains('bare')) return;
  const isText = ([name, value]) =>
    typeof value === 'string' && target.elements[name]?.type !== 'password' && name !== '_csrf';
  const fields = [...new FormData(target)].filter(isText);
  const kept = JSON.stringify({ action: target.getAttribute('action'), fields });
  // A list to be imported is too large to be kept.
  if (kept.length < 200_000) sessionStorage.setItem(keptForm, kept);
});
const { action, fields } = JSON.parse(sessionStorage.getItem(keptForm) ?? '{}');
sessionStorage.removeItem(keptForm);
if (fields && document.referrer.startsWith(`${location.origin}/dashboard/sign-in`))
  for (const form of document.forms) if (form.getAttribute('action') === action) fillForm(form, fields);

function fillForm(form, values) {
  form.closest('details')?.setAttribute('open', '');
  for (const field of form.elements) {
    const own = values.filter(([name]) => name === field.name).map(([, value]) => value);
    if (['checkbox', 'radio'].includes(field.type)) field.checked = own.includes(field.value);
    else if (own.length > 0) field.value = own[0];
  }
}

/** After a refused form the focus is on its first wrong field, also in a dialog or fold that was closed. */
const wrong = document.querySelector('.field.wrong :is(input, select, textarea)');
wrong?.closest('details')?.setAttribute('open', '');
wrong?.closest('dialog:not([open])')?.showModal();
wrong?.focus();

/** Copies a chosen file's text into the field named by `data-into`. */
document.addEventListener('change', async (event) => {
  const { into } = event.target.dataset;
  const [file] = (into && event.target.files) || [];
  if (!file) return;
  document.getElementById(into).value = await file.text();
  say(`${file.name} was read into the field.`);
});

/** Reloading a page that answered a POST must not post again: the browser gets the path, and is redirected to its page. */
history.replaceState(history.state, '', location.href);

/** Opens and closes dialogs in browsers that do not know a button's `command` yet. */
if (!('command' in HTMLButtonElement.prototype))
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[commandfor]');
    const dialog = button && document.getElementById(button.getAttribute('commandfor'));
    if (button?.getAttribute('command') === 'close') dialog.close();
    else dialog?.showModal();
  });
