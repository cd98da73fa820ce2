/**
 * The `cid:` URLs of HTML, which show attached files: in attributes, in styles, and in the conditional comments that Outlook
 * reads. Everything else stays as it is, such as `cid:` in the text that people read. Linear in the HTML.
 */
import { eachTag, type Tag, withValue } from '#mail/compose/html-tags.ts';

/** The id that replaces the one in the HTML; the same or undefined leaves the URL as it was written. */
type NewIdOf = (id: string) => string | undefined;

interface Edit {
  start: number;
  end: number;
  text: string;
}

/** HTML with more references than a mail that people read has keeps those that follow, because each tag is tokenized. */
const maxTags = 10_000;

/** A colon can be an entity. */
const mayRefer = /cid[:&]/i;

export function withReferences(html: string, newIdOf: NewIdOf): string {
  if (!mayRefer.test(html)) return html;
  const pieces: string[] = [];
  let done = 0;
  const edits = editsOf(html, newIdOf, { hasComments: true });
  for (const { start, end, text } of edits.sort((a, b) => a.start - b.start)) {
    pieces.push(html.slice(done, start), text);
    done = end;
  }
  return [...pieces, html.slice(done)].join('');
}

const conditional = '<!--[if';

/** `hasComments`: conditional comments are read as HTML. There are none in them. */
function editsOf(html: string, newIdOf: NewIdOf, { hasComments }: { hasComments: boolean }): Edit[] {
  const edits: Edit[] = [];
  let styleStart = 0;
  eachTag(html, wantedTags(html), {
    onStart(tag) {
      if (tag.name === 'style') styleStart = tag.start;
      else edits.push(...attributeEdits(html, tag, newIdOf));
    },
    onEnd(name, end) {
      if (name !== 'style') return;
      const before = html.slice(styleStart, end);
      const text = inStyle(before, newIdOf);
      if (text !== before) edits.push({ start: styleStart, end, text });
    },
    onComment(start, end) {
      if (!hasComments || !html.startsWith(conditional, start)) return;
      const from = start + conditional.length;
      const inside = editsOf(html.slice(from, end), newIdOf, { hasComments: false });
      for (const edit of inside) edits.push({ ...edit, start: from + edit.start, end: from + edit.end });
    },
  });
  return edits;
}

/** Only those with `cid` in them are tokenized. */
function wantedTags(html: string) {
  const expression = /cid/gi;
  let next = -1;
  let left = maxTags;
  return (_name: string, start: number, end: number): boolean => {
    if (next < start) {
      expression.lastIndex = start;
      next = expression.exec(html)?.index ?? html.length;
    }
    if (next >= end || left === 0) return false;
    left -= 1;
    return true;
  };
}

const urls = ['src', 'href', 'xlink:href', 'background', 'poster', 'data'];
const edited: [name: string, edit: (value: string, newIdOf: NewIdOf) => string][] = [
  ...urls.map((name): [string, typeof inUrl] => [name, inUrl]),
  ['srcset', inSourceSet],
  ['style', inStyle],
];

function attributeEdits(html: string, tag: Tag, newIdOf: NewIdOf): Edit[] {
  return edited.flatMap(([name, edit]) => {
    const value = tag.value(name);
    if (value === undefined) return [];
    const text = edit(value, newIdOf);
    if (text === value) return [];
    const { start, end } = tag.range(name);
    return [{ start, end, text: withValue(html.slice(start, end), text) }];
  });
}

/** As browsers read a URL: without outer white space and line ends. */
function inUrl(value: string, newIdOf: NewIdOf): string {
  const url = value.trim().replace(/[\t\r\n]/g, '');
  if (!/^cid:/i.test(url)) return value;
  const id = url.slice('cid:'.length);
  const newId = newIdOf(id);
  return newId === undefined || newId === id ? value : `cid:${newId}`;
}

/** A comma separates if white space or another `cid:` follows. */
function inSourceSet(value: string, newIdOf: NewIdOf): string {
  return value
    .split(/(,(?=\s|cid:))/i)
    .map((candidate) => {
      const size = /\s[\d.]{1,20}[wxh]\s{0,20}$/.exec(candidate)?.[0] ?? '';
      const url = candidate.slice(0, candidate.length - size.length);
      const text = inUrl(url, newIdOf);
      return text === url ? candidate : `${/^\s?/.exec(url)![0]}${text}${size}`;
    })
    .join('');
}

/** In quotes, or without them with any parentheses in pairs, as in the name `a(1).png`. */
const styleUrl =
  /\burl\(\s{0,100}(?:"(cid:[^"\n]{0,2000})"|'(cid:[^'\n]{0,2000})'|(cid:(?:[^()"'\\]|\\.|\([^()\\]{0,300}\)){0,2000}))\s{0,100}\)/gi;

function inStyle(css: string, newIdOf: NewIdOf): string {
  return css.replace(styleUrl, (whole, double?: string, single?: string, bare?: string) => {
    const url = (double ?? single ?? bare)!.replace(/\\(?:([0-9a-f]{1,6})\s?|(.))/gi, unescapedInCss);
    const text = inUrl(url, newIdOf);
    return text === url ? whole : `url(${text})`;
  });
}

function unescapedInCss(_whole: string, hex: string | undefined, character: string | undefined): string {
  if (hex === undefined) return character!;
  const code = Number.parseInt(hex, 16);
  return code > 0x10ffff ? '\ufffd' : String.fromCodePoint(code);
}
