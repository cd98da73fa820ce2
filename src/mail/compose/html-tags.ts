/**
 * Finds the tags in HTML and their positions, as the HTML standard's tokenizer (parse5) sees them: there are no tags in
 * comments, scripts, styles and other raw text, and entities in values are decoded. It accepts any text and never throws.
 *
 * Only the tokenizer is used. No tree is needed, and building one is not safe for HTML from outside: by the standard, 130 KB
 * of unclosed <b> between paragraphs become gigabytes of elements. This file is linear in time and space.
 *
 * The tokenizer is slow for every character, so text between tags and well-formed tags with other names are skipped. For
 * an ordinary mail of 4 KB that saves seven eighths of the time.
 *
 * BUGS: CDATA sections of an SVG are read as HTML, because only a tree would tell that they are inside an SVG.
 */
import { type Token, Tokenizer, TokenizerMode } from 'parse5';
import { escapeHtml } from '#platform/base/sanitize.ts';

export interface Tag {
  name: string;
  /** The position of its `<`. */
  start: number;
  isSelfClosing: boolean;
  /** Undefined if the tag does not have the attribute. If it has it twice, the first counts, as in browsers. */
  value(attribute: string): string | undefined;
  /** The range from the attribute's name to the end of its value. */
  range(attribute: string): { start: number; end: number };
}

export interface TagHandler {
  onStart(tag: Tag): void;
  /** The end tag begins at `at`. */
  onEnd(name: string, at: number): void;
  /** `end` is the position after the comment. */
  onComment?(start: number, end: number): void;
}

/** After these tags, everything up to their end tag is text. Not after noscript: mail readers run no scripts. */
const textModes: Partial<Record<string, (typeof TokenizerMode)[keyof typeof TokenizerMode]>> = {
  title: TokenizerMode.RCDATA,
  textarea: TokenizerMode.RCDATA,
  style: TokenizerMode.RAWTEXT,
  xmp: TokenizerMode.RAWTEXT,
  iframe: TokenizerMode.RAWTEXT,
  noembed: TokenizerMode.RAWTEXT,
  noframes: TokenizerMode.RAWTEXT,
  script: TokenizerMode.SCRIPT_DATA,
  plaintext: TokenizerMode.PLAINTEXT,
};

function isFollowedByText(tagName: string): boolean {
  return Object.hasOwn(textModes, tagName);
}

interface Tokens {
  onStart(tag: Token.TagToken): void;
  onEnd(tag: Token.TagToken): void;
  onText?(text: string): void;
  onComment?(comment: Token.CommentToken): void;
}

/** `sourceCodeLocationInfo`: tokens have their positions. */
export function createTokenizer(
  { onStart, onEnd, onText, onComment }: Tokens,
  options: { sourceCodeLocationInfo: boolean },
): Tokenizer {
  const ignore = () => {};
  const onCharacters = onText ? ({ chars }: Token.CharacterToken) => onText(chars) : ignore;
  const tokenizer = new Tokenizer(options, {
    onStartTag(tag) {
      if (isFollowedByText(tag.tagName)) tokenizer.state = textModes[tag.tagName]!;
      onStart(tag);
    },
    onEndTag: onEnd,
    onCharacter: onCharacters,
    onWhitespaceCharacter: onCharacters,
    onNullCharacter: ignore,
    onComment: onComment ?? ignore,
    onDoctype: ignore,
    onEof: ignore,
  });
  return tokenizer;
}

/** A complete, ordinary tag. No two parts of the expression match the same text, so that it also fails in linear time. */
const plainTag =
  /<\/?([a-z][a-z0-9:-]*)(?:[ \t\r\n]+[^\s"'<>/=]+(?:=(?:"[^"]*"|'[^']*'|[^\s"'<>=`]+(?=[\s>])))?){0,30}[ \t\r\n]*\/?>/iy;

/**
 * Calls the handler for the tags that are wanted, by their name and their range; it may also call it for others. Returns the
 * position up to which the HTML is complete: its length, or where a tag, a comment or raw text begins that never ends.
 */
export function eachTag(
  html: string,
  isWanted: (name: string, start: number, end: number) => boolean,
  handler: TagHandler,
): number {
  let at = html.indexOf('<');
  while (at >= 0) {
    plainTag.lastIndex = at;
    const name = plainTag.exec(html)?.[1]?.toLowerCase();
    const isPassedOver =
      name !== undefined && !isFollowedByText(name) && !isWanted(name, at, plainTag.lastIndex);
    const end = isPassedOver ? plainTag.lastIndex : tokenize(html, at, handler);
    if (typeof end === 'object') return end.completeTo;
    at = html.indexOf('<', end);
  }
  return html.length;
}

/**
 * Tokenizes from `from` until the tokenizer is between two tags again, usually after one tag or comment, and returns that
 * position. If it is not, the next step is twice as long, so that the work stays linear. At the end of the HTML, returns how
 * far it is complete.
 */
function tokenize(html: string, from: number, handler: TagHandler): number | { completeTo: number } {
  let completeTo = from;
  const tokenizer = createTokenizer(
    {
      onStart(tag) {
        handler.onStart(tagOf(tag, from));
        if (!isFollowedByText(tag.tagName)) completeTo = from + tag.location!.endOffset;
      },
      onEnd({ tagName, location }) {
        handler.onEnd(tagName, from + location!.startOffset);
        completeTo = from + location!.endOffset;
      },
      onComment({ location }) {
        handler.onComment?.(from + location!.startOffset, from + location!.endOffset);
      },
    },
    { sourceCodeLocationInfo: true },
  );
  let at = from;
  for (let step = 1; at < html.length; step *= 2) {
    const end = html.indexOf('>', at + step - 1);
    const next = end < 0 ? html.length : end + 1;
    tokenizer.write(html.slice(at, next), next === html.length);
    at = next;
    if (tokenizer.state === TokenizerMode.DATA) return at;
  }
  return { completeTo };
}

/** `offset`: the position of what was tokenized. */
function tagOf({ tagName, attrs, selfClosing, location }: Token.TagToken, offset: number): Tag {
  return {
    name: tagName,
    start: offset + location!.startOffset,
    isSelfClosing: selfClosing,
    value: (attribute) => attrs.find(({ name }) => name === attribute)?.value,
    range(attribute) {
      const { startOffset, endOffset } = location!.attrs![attribute]!;
      return { start: offset + startOffset, end: offset + endOffset };
    },
  };
}

/** An attribute as it was written, with another value, which is always quoted. */
export function withValue(written: string, value: string): string {
  const [, before, quote] = /^([^=]*=\s*)(["']?)/.exec(written)!;
  return `${before}${quote || '"'}${escapeHtml(value)}${quote || '"'}`;
}
