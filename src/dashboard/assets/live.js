/**
 * Parts of a page that bring themselves up to date: `data-live` says after how many milliseconds, htmx does the rest on
 * the event `live`. Only while the page is seen, one request at a time, and never under somebody's hands: not while text
 * in the part is selected or a question in it is open. What was folded open stays so; htmx keeps the focus by its id.
 */
(() => {
  const last = new WeakMap();
  const underWay = new WeakSet();

  setInterval(() => {
    if (document.visibilityState !== 'visible') return;
    for (const element of document.querySelectorAll('[data-live]')) {
      const now = performance.now();
      if (!last.has(element)) last.set(element, now);
      if (now - last.get(element) < Number(element.dataset.live) || isInUse(element)) continue;
      last.set(element, now);
      if (!underWay.has(element)) htmx.trigger(element, 'live');
    }
  }, 250);

  const isInUse = (element) => {
    const selection = document.getSelection();
    const isSelected = selection && !selection.isCollapsed && element.contains(selection.anchorNode);
    return isSelected || element.querySelector(':popover-open') !== null;
  };

  document.addEventListener('htmx:beforeRequest', ({ detail: { elt } }) => underWay.add(elt));
  document.addEventListener('htmx:afterRequest', ({ detail: { elt } }) => underWay.delete(elt));

  let folds = new Map();
  document.addEventListener('htmx:beforeSwap', ({ detail: { target } }) => {
    folds = new Map([...target.querySelectorAll('details[id]')].map(({ id, open }) => [id, open]));
  });
  document.addEventListener('htmx:afterSwap', () => {
    for (const [id, open] of folds) {
      const fold = document.getElementById(id);
      if (fold) fold.open = open;
    }
    folds = new Map();
  });
})();
