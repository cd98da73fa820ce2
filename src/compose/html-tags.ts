/**
 * HTML as its tags, each with its place in the text: what the HTML standard's tokenizer (parse5's) sees, so comments,
 * scripts, styles and the other raw texts hold no tags, and entities in values are read. Any text is HTML to it; none
 * makes it throw.
 *
 * The tokenizer alone, because no tree is needed, and building one is not safe on other people's HTML: the standard
 * makes 130 KB of unclosed <b> between paragraphs into gigabytes of elements. This is linear in time and space.
 *
 * And no more of it than needed, for it takes its time with every character: text between tags is passed over, and so
 * are well-formed tags of the names that nobody asks for. An ordinary mail of 4 KB takes an eighth of the time.
 *
 * BUGS: an SVG's CDATA sections are read as HTML, having no tree around them that tells.
 */
import { Tokenizer, TokenizerMode } from 'parse5';

interface Tag {
  name: string;
  /** Undefined where there is no such attribute; of two the first counts, as in browsers. */
  value(attribute: string): string | undefined;
  /** From the attribute's name to the end of its value. */
  range(attribute: string): { start: number; end: number };
}

export interface TagHandler {
  onStart(tag: Tag): void;
  /** `at`: where the end tag begins. */
  onEnd(name: string, at: number): void;
}

/** What follows these is text up to their end tag. Not noscript: mail is read without scripts. */
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

/** A tag as nearly all are, whole. No two parts of it can take the same text, so that it fails in linear time too. */
const plainTag =
  /<\/?([a-z][a-z0-9:-]*)(?:[ \t\r\n]+[^\s"'<>/=]+(?:=(?:"[^"]*"|'[^']*'|[^\s"'<>=`]+(?=[\s>])))?){0,30}[ \t\r\n]*\/?>/iy;

/** Tells of the tags of these names; it may tell of others. */
export function eachTag(html: string, names: ReadonlySet<string>, handler: TagHandler): void {
  let at = html.indexOf('<');
  while (at >= 0) {
    plainTag.lastIndex = at;
    const name = plainTag.exec(html)?.[1]?.toLowerCase();
    const isPassedOver = name !== undefined && !names.has(name) && !Object.hasOwn(textModes, name);
    const end = isPassedOver ? plainTag.lastIndex : tokenize(html, at, handler);
    at = html.indexOf('<', end);
  }
}

/**
 * Tells of the tags from `from` on, up to where the text is plain again between two tags, which is returned: after one
 * tag or comment as a rule. Looks at twice as much each time it is not, so that the work stays linear.
 */
function tokenize(html: string, from: number, handler: TagHandler): number {
  const tokenizer = createTokenizer(from, handler);
  let at = from;
  for (let look = 1; at < html.length; look *= 2) {
    const end = html.indexOf('>', at + look - 1);
    const next = end < 0 ? html.length : end + 1;
    tokenizer.write(html.slice(at, next), next === html.length);
    at = next;
    if (tokenizer.state === TokenizerMode.DATA) break;
  }
  return at;
}

function createTokenizer(offset: number, { onStart, onEnd }: TagHandler): Tokenizer {
  const ignore = () => {};
  const tokenizer = new Tokenizer(
    { sourceCodeLocationInfo: true },
    {
      onStartTag({ tagName, attrs, location }) {
        onStart({
          name: tagName,
          value: (attribute) => attrs.find(({ name }) => name === attribute)?.value,
          range(attribute) {
            const { startOffset, endOffset } = location!.attrs![attribute]!;
            return { start: offset + startOffset, end: offset + endOffset };
          },
        });
        const mode = Object.hasOwn(textModes, tagName) ? textModes[tagName] : undefined;
        if (mode !== undefined) tokenizer.state = mode;
      },
      onEndTag: ({ tagName, location }) => onEnd(tagName, offset + location!.startOffset),
      onComment: ignore,
      onDoctype: ignore,
      onCharacter: ignore,
      onNullCharacter: ignore,
      onWhitespaceCharacter: ignore,
      onEof: ignore,
    },
  );
  return tokenizer;
}
