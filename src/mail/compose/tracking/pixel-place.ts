/**
 * The place of the tracking pixel: before the last `</body>`, else before `</html>`, else at the end; but never where a mail
 * reader would not load it: in a comment, a tag or raw text that never ends, or in an element whose content is not shown.
 */
import type { Tag } from '#mail/compose/html-tags.ts';

/** Parsers drop an image in these, keep it inert, or show it only if something else cannot be shown. */
const hiding = [
  'audio',
  'canvas',
  'datalist',
  'math',
  'noscript',
  'object',
  'select',
  'svg',
  'template',
  'video',
];

/** Only in these does a tag that ends in `/>` have no content. */
const foreign = ['math', 'svg'];

export class PixelPlace {
  static readonly tags: readonly string[] = ['body', 'html', ...hiding];

  #place: number | null = null;
  #isInBody = false;
  /** The outermost element that is open and hides its content, and the number of open elements of its name. */
  #hidden: { name: string; start: number; depth: number } | null = null;

  onStart({ name, start, isSelfClosing }: Tag): void {
    if (isSelfClosing && foreign.includes(name)) return;
    if (this.#hidden?.name === name) this.#hidden.depth += 1;
    else if (!this.#hidden && hiding.includes(name)) this.#hidden = { name, start, depth: 1 };
  }

  onEnd(name: string, at: number): void {
    if (name === 'body' || (name === 'html' && !this.#isInBody)) {
      this.#isInBody = name === 'body';
      this.#place = this.#hidden?.start ?? at;
    } else if (this.#hidden?.name === name) {
      this.#hidden.depth -= 1;
      if (this.#hidden.depth === 0) this.#hidden = null;
    }
  }

  /** `completeTo`: the position up to which the HTML is complete. */
  in(completeTo: number): number {
    return this.#place ?? this.#hidden?.start ?? completeTo;
  }
}
