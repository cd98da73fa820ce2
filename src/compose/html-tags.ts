/**
 * HTML as its tags, each with its place in the text: what the HTML standard's tokenizer (parse5's) sees, so comments,
 * scripts, styles and the other raw texts hold no tags, and entities in values are read. Any text is HTML to it; none
 * makes it throw.
 *
 * The tokenizer alone, because no tree is needed, and building one is not safe on other people's HTML: the standard
 * makes 130 KB of unclosed <b> between paragraphs into gigabytes of elements. This is linear in time and space.
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

export function eachTag(html: string, { onStart, onEnd }: TagHandler): void {
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
            return { start: startOffset, end: endOffset };
          },
        });
        const mode = Object.hasOwn(textModes, tagName) ? textModes[tagName] : undefined;
        if (mode !== undefined) tokenizer.state = mode;
      },
      onEndTag: ({ tagName, location }) => onEnd(tagName, location!.startOffset),
      onComment: ignore,
      onDoctype: ignore,
      onCharacter: ignore,
      onNullCharacter: ignore,
      onWhitespaceCharacter: ignore,
      onEof: ignore,
    },
  );
  tokenizer.write(html, true);
}
