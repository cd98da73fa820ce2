/** A script that finds what does not fit on a page; evaluated in the browser. */

/** Visible elements that reach out of the card around them, unless something between cuts or scrolls them; tables that scroll. */
export const outside = `[...document.querySelectorAll('.card *, .head *')].flatMap((element) => {
  const { right, width } = element.getBoundingClientRect();
  if (width === 0 || element.closest('.hidden, dialog:not([open]), details:not([open]) > :not(summary)')) return [];
  for (let box = element.parentElement; box !== document.body; box = box.parentElement) {
    if (getComputedStyle(box).overflowX !== 'visible') return [];
    if (box.matches('.card, .head') && right > box.getBoundingClientRect().right + 1)
      return [element.tagName + '.' + element.className + ' ' + element.textContent.trim().slice(0, 30)];
  }
  return [];
}).concat([...document.querySelectorAll('.table-card:not([tabindex])')].flatMap((table) =>
  table.scrollWidth > table.clientWidth + 1 ? ['a table scrolls: ' + table.scrollWidth + ' in ' + table.clientWidth] : []
))`;
