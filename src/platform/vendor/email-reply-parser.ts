/**
 * email-reply-parser, with its expressions for the line above a quoted mail ("On Monday, Ann wrote:") run by RE2. JavaScript's
 * backtrack: 32 KB of "Op a schreef" take them more than 20 s. The package asks for `re2` itself, which is a native module; it
 * offers no other way in, and joins such a line, if it was broken, by a replacement in which `$'` repeats the rest of the text.
 * Read in email-reply-parser 2.3.9.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import EmailReplyParser from 'email-reply-parser';
import { RE2JS } from 're2js';

interface Expressions {
  quoteHeadersRegex: (RegExp | LinearExpression)[];
}

interface LinearExpression {
  test(line: string): boolean;
  /** Null: the text is joined already. */
  [Symbol.match](): null;
}

let headers: RE2JS[] | null = null;

/** Of an expression, which RE2 runs. */
type Expression = Pick<RegExp, 'source' | 'flags'>;

/** Further lines above a quoted mail. Each names an address, so that no line of the answer is taken for one. */
const furtherHeaders: Expression[] = [
  // "From:" of Outlook in Danish and Norwegian, Swedish, Finnish, Polish and Czech, Hungarian, Romanian, Turkish, Russian,
  // Ukrainian, Greek, Japanese, Chinese and Korean.
  String.raw`^\s*((?:Fra|Från|Lähettäjä|Od|Feladó|De la|Gönderen|Kimden|От|Від|Από|差出人|发件人|寄件者|보낸 사람)\s?[:：].*[\[<].+@.+[\]>])`,
  String.raw`^\s*(On\s.+[(<].+@.+[)>]\ssaid:)$`,
  // Gmail in Japanese: "2026年11月28日(土) 10:00 NAME <EMAIL>:"
  String.raw`^\s*(20[0-9]{2}年.+<.+@.+>:)$`,
].map((source) => ({ source, flags: 'm' }));

/** What a text says beside what it quotes and its signature. */
export function replyIn(text: string): string {
  headers ??= linearHeaders();
  return new EmailReplyParser()
    .read(joined(aboveFields(text.replaceAll('\r\n', '\n')), headers))
    .getVisibleText()
    .trim();
}

/** A blank line, or one drawn between an answer and a quoted mail. */
const rule = /^\s*([-_]{2}.*)?$/;
const quotedField = /^[ \t]*\*?(From|Sent|Date|To|Cc|Subject):\*?[ \t]/;

/**
 * What stands above the fields of a quoted mail, which the package finds only if From is the first and names an address. They
 * begin a paragraph below the answer; a journey, which has From, To and Date as well, has no Subject.
 */
function aboveFields(text: string): string {
  const lines = text.split('\n');
  const fields = new Set<string>();
  // Where the answer ends if fields of a mail follow.
  let end = 0;
  let above = false;
  for (const [at, line] of lines.entries()) {
    const name = quotedField.exec(line)?.[1];
    if (name !== undefined) {
      if (above) fields.add(name);
      if (fields.size > 2 && fields.has('From') && fields.has('Subject'))
        return lines.slice(0, end).join('\n');
      continue;
    }
    fields.clear();
    above = end > 0 && rule.test(line);
    if (!rule.test(line)) end = at + 1;
  }
  return text;
}

function linearHeaders(): RE2JS[] {
  const require = createRequire(import.meta.url);
  const path = join(require.resolve('email-reply-parser'), '..', 'regex.js');
  const expressions: Expressions = require(path).default;
  const given: Expression[] = [...(expressions.quoteHeadersRegex as RegExp[]), ...furtherHeaders];
  const anyOf = RE2JS.compile(
    given.map((one) => `(?${one.flags.includes('i') ? 'i' : ''}:${sourceOf(one)})`).join('|'),
  );
  expressions.quoteHeadersRegex = [
    { test: (line) => anyOf.matcher(line).find(), [Symbol.match]: () => null },
  ];
  return given.map((one) => RE2JS.compile(sourceOf(one), flagsOf(one)));
}

/** JavaScript's white space has more characters than RE2's; French puts one of them before a colon. */
const space =
  '[\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}]';

function sourceOf({ source }: Expression): string {
  return source.replace(/\[\\s\\S\]|\\s/g, (found) => (found === '\\s' ? space : '(?s:.)'));
}

function flagsOf({ flags }: Expression): number {
  return (flags.includes('m') ? RE2JS.MULTILINE : 0) | (flags.includes('i') ? RE2JS.CASE_INSENSITIVE : 0);
}

/** The first match of each expression, on one line. */
function joined(text: string, expressions: RE2JS[]): string {
  return expressions.reduce((all, expression) => {
    const found = expression.matcher(all);
    if (!found.find() || found.groupCount() === 0) return all;
    const [start, end] = [found.start(1), found.end(1)];
    return start < 0
      ? all
      : all.slice(0, start) + all.slice(start, end).replaceAll('\n', ' ') + all.slice(end);
  }, text);
}
