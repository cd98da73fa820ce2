/**
 * A rule for bounces that are written as plain text. The rules are in text-bounces/; text-bounce.ts applies the first that
 * matches. Each has at least one mail of its format in test/fixtures/returned.
 *
 * A pattern must not need more than linear time, because anyone can send any text (test/slow/returned-fuzz.test.ts).
 */

export interface TextBounceRule {
  /** The `format` of the result, and the name in the tests. */
  name: string;
  /** A header field that the mail must have: its name in lower case, and a pattern for its value. */
  header?: [name: string, value: RegExp];
  /** Only mail with an empty envelope sender. */
  fromNullSender?: true;
  /** Only mail that is not an answer, of a person or an out-of-office program. */
  noAnswer?: true;
  /** Words of the body that only this format has. The text before them does not describe the failure. */
  opening?: RegExp;
  /** Words of the body or the subject that make it a warning: the host is still retrying. */
  warning?: RegExp;
  /** The end of the description, before the copy of our mail; besides `copies` in text-bounce.ts. */
  end?: RegExp;
  /** The description of the failure, in the group `words`. By default an SMTP reply, or else the whole text. */
  words?: RegExp;
  /** Status codes for words that mail/deliver/reply-rules/ does not know, for example in another language. */
  means?: [words: RegExp, status: string][];
}
