/**
 * What a rule about bounces in prose is. The rules themselves are data, in text-bounces/; text-bounce.ts applies them, the
 * first that matches. Each has at least one mail of its format in test/fixtures/returned.
 *
 * No pattern may need more than linear time: they meet whatever a stranger writes (test/slow/returned-fuzz.test.ts).
 */

export interface TextBounceRule {
  /** In the books and the tests. */
  name: string;
  /** A field of the header that must be there: its name in lower case, and what is in it. */
  header?: [name: string, value: RegExp];
  /** Words of the body that only this format has; what comes before them says nothing of the failure. */
  opening?: RegExp;
  /** Words of the body or the subject that make it a warning: they are still trying. */
  warning?: RegExp;
  /** Where what it says ends and the copy of our mail begins, if not where `copies` (text-bounce.ts) has it. */
  end?: RegExp;
  /** The words about the failure, in the group `words`; without it an SMTP reply, or else all that is said. */
  words?: RegExp;
  /** What is meant, where the words are in a language that the rules about replies do not read. */
  means?: [words: RegExp, status: string][];
}
