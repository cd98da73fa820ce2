/**
 * The text part of a mail that has only HTML: spam filters count its absence. Made with the tokenizer alone (html-tags.ts) in
 * one pass, in time that is linear in the length, whatever the nesting. html-to-text builds a tree first: for 4 KB that takes
 * as long as the signature, and for 240 KB of unclosed <b> four seconds (measured with version 10.0.1).
 */
import { createTokenizer } from './html-tags.ts';

/** Longer HTML gets no text part: it is no ordinary mail, and the time is taken from other mails. */
const maxLength = 256 * 1024;

const blocks = new Set(
  (
    'address article aside blockquote body center dd div dl dt fieldset figcaption figure footer form header html main ' +
    'nav ol pre section table tbody tfoot thead tr ul li'
  ).split(' '),
);
/** With an empty line around them. */
const paragraphs = new Set('p h1 h2 h3 h4 h5 h6 ul ol blockquote pre hr'.split(' '));
const unseen = new Set('script style title template noframes noembed iframe object svg'.split(' '));
/** Null if the HTML is too long or has no text. */
export function textFromHtml(html: string): string | null {
  if (html.length > maxLength) return null;
  const writer = new TextWriter();
  const tokenizer = createTokenizer(
    {
      onStart({ tagName, attrs, selfClosing }) {
        const value = (name: string) => attrs.find((one) => one.name === name)?.value;
        writer.open(tagName, value, selfClosing);
      },
      onEnd: ({ tagName }) => writer.close(tagName),
      onText: (text) => writer.write(text),
    },
    { sourceCodeLocationInfo: false },
  );
  tokenizer.write(html, true);
  return writer.text();
}

/** Previews, and copies for other screens. Only elements that need an end tag: an open paragraph would hide all that follows. */
function isHidden(name: string, value: Value): boolean {
  if (name !== 'div' && name !== 'span') return false;
  return (
    value('hidden') !== undefined || /(?:^|;)\s{0,9}display\s{0,9}:\s{0,9}none\b/i.test(value('style') ?? '')
  );
}

/** As a browser reads it (WHATWG URL section 4.4), with letters of all scripts; null if it is not a link to show. */
function writtenUrl(href: string): string | null {
  if (href.length > maxUrl || !/^(?:https?:|mailto:|tel:)./i.test(href)) return null;
  const written = href.replace(/[\t\n\r]/g, '').replace(/[\s<>]/g, encodeURIComponent);
  return written.isWellFormed() && URL.canParse(written) ? written : null;
}

/** Longer ones are for programs. */
const maxUrl = 2000;

type Value = (name: string) => string | undefined;

const lineLength = 76;
const space = /[\s\p{Cc}]/u;
const piece = /[\s\p{Cc}]+|[^\s\p{Cc}]+/gu;
/** Newsletters fill their previews with characters that cannot be seen. */
const invisible = /^\p{Default_Ignorable_Code_Point}+$/u;

class TextWriter {
  readonly #lines: string[] = [];
  #line = '';
  /** White space comes before the next word. */
  #hasSpace = false;
  /** The element whose content is not shown, and how many of its name are open. */
  #hidden: { name: string; depth: number } | null = null;
  /** The open link and its text without spaces. */
  #link: { href: string; text: string } | null = null;

  open(name: string, value: Value, isClosed: boolean): void {
    if (this.#hidden) {
      if (this.#hidden.name === name && !isClosed) this.#hidden.depth += 1;
      return;
    }
    if (unseen.has(name) || isHidden(name, value)) {
      if (!isClosed) this.#hidden = { name, depth: 1 };
      return;
    }
    this.#break(name);
    if (name === 'br') this.#endLine();
    else if (name === 'hr') this.#lines.push('---', '');
    else if (name === 'li') this.write('* ');
    else if (name === 'td' || name === 'th') this.#hasSpace = true;
    else if (name === 'img') this.write(value('alt') ?? '');
    else if (name === 'a') this.#openLink(value('href')?.trim() ?? '');
  }

  close(name: string): void {
    if (this.#hidden) {
      if (this.#hidden.name === name && --this.#hidden.depth === 0) this.#hidden = null;
    } else if (name === 'a') this.#closeLink();
    else this.#break(name);
  }

  write(text: string): void {
    if (this.#hidden) return;
    for (const [found] of text.matchAll(piece)) {
      if (space.test(found)) this.#hasSpace = true;
      else if (!invisible.test(found)) this.#word(found);
    }
  }

  /** Null if there is none. */
  text(): string | null {
    this.#closeLink();
    this.#endLine();
    const text = this.#lines.join('\n').trim();
    return text === '' ? null : `${text}\n`;
  }

  #word(word: string): void {
    const gap = this.#hasSpace && this.#line !== '' ? ' ' : '';
    if (gap && this.#line.length + 1 + word.length > lineLength) this.#endLine();
    this.#line += this.#line === '' ? word : gap + word;
    this.#hasSpace = false;
    if (this.#link && this.#link.text.length <= this.#link.href.length) this.#link.text += word;
  }

  #break(name: string): void {
    const isParagraph = paragraphs.has(name);
    if (!isParagraph && !blocks.has(name)) return;
    if (this.#line !== '') this.#endLine();
    if (isParagraph && this.#lines.length > 0 && this.#lines.at(-1) !== '') this.#lines.push('');
    this.#hasSpace = false;
  }

  #endLine(): void {
    const isSecondEmpty = this.#line === '' && this.#lines.at(-1) === '';
    if (!isSecondEmpty) this.#lines.push(this.#line);
    this.#line = '';
    this.#hasSpace = false;
  }

  #openLink(href: string): void {
    this.#closeLink();
    const written = writtenUrl(href);
    if (written !== null) this.#link = { href: written, text: '' };
  }

  /**
   * The address in angle brackets (RFC 3986 appendix C), unless it is the text. A link around an image without a text is left
   * out.
   */
  #closeLink(): void {
    const link = this.#link;
    this.#link = null;
    if (!link || link.text === '') return;
    const bare = (text: string) =>
      text
        .replace(/^(?:https?:\/\/|mailto:|tel:)/i, '')
        .replace(/\/$/, '')
        .toLowerCase();
    if (bare(link.text) === bare(link.href)) return;
    this.#hasSpace = true;
    this.#word(`<${link.href}>`);
  }
}
