/**
 * Parts of a page that update themselves: `data-live` is the interval in milliseconds, and htmx requests the part on the
 * event `live`. Only while the page is visible, one request at a time, and not while text in the part is selected or a
 * dialog or menu in it is open. Open <details> stay open; htmx keeps the focus by element id.
 */
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
  return isSelected || element.querySelector('dialog[open], :popover-open') !== null;
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
