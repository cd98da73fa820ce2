/**
 * What pages do in a browser beyond links and forms; all of them work without it. Elements say what they want by data-
 * attributes; nothing is inline, as the content policy demands.
 */
(() => {
  const root = document.documentElement;
  root.classList.add('js');

  const say = (text) => {
    document.getElementById('announcer').textContent = text;
  };

  /** htmx's requests carry the token that forms have in a field. */
  document.addEventListener('htmx:configRequest', (event) => {
    event.detail.headers['X-CSRF-Token'] = document.querySelector('meta[name=csrf]').content;
  });
  document.addEventListener('htmx:responseError', () =>
    say('This could not be brought up to date; reload the page.'),
  );
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

  /** The clipboard is for secure origins; elsewhere a selection is copied. */
  async function copyText(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }

  /** Times in the reader's own zone, where one points at them. */
  function localTimes(within) {
    for (const time of within.querySelectorAll('time[datetime]'))
      time.title = new Date(time.dateTime).toLocaleString(undefined, {
        dateStyle: 'medium',
        timeStyle: 'long',
      });
  }
  localTimes(document);
  document.addEventListener('htmx:load', (event) => localTimes(event.detail.elt));

  /** A form that is sent twice by a double click does things twice. */
  document.addEventListener('submit', (event) => {
    if (event.target.method !== 'post') return;
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = 'yes';
  });
  addEventListener('pageshow', () => {
    for (const form of document.forms) delete form.dataset.sent;
  });

  /** A file's text goes where it could be typed. */
  document.addEventListener('change', async (event) => {
    const { into } = event.target.dataset;
    const [file] = (into && event.target.files) || [];
    if (!file) return;
    document.getElementById(into).value = await file.text();
    say(`The text of ${file.name} is there.`);
  });

  /** A page that answered a form is not asked for again by reloading it. */
  history.replaceState(history.state, '', document.querySelector('[data-at]')?.dataset.at ?? location.href);

  /** An open menu shuts when something else is chosen. */
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
})();
