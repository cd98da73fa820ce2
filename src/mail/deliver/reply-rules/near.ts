/** Sentences by their parts: what is spoken of, and what is said of it, with a few words between them. */

/** `subject` and `predicate` in this order, at most `words` words apart. */
export const near = (subject: string, predicate: string, words = 6) =>
  `(?:${subject})(?:[ \\n]{1,3}\\S{1,40}){0,${words}}[ \\n]{1,3}(?:${predicate})`;

/** The same in either order, with no comma or stop between: "relaying denied", "unable to relay". */
export const together = (one: string, other: string, words: number) =>
  [
    [one, other],
    [other, one],
  ]
    .map(([a, b]) => `(?:${a})(?: {1,2}\\S{0,39}[^\\s.,:;]){0,${words}} {1,2}["'(<[]?(?:${b})`)
    .join('|');

/** That something is refused, in the words of many servers. */
export const refused = String.raw`(?:\b(?:reject|refus|deny|denie[ds]|denial|block|bann?ed|prohibit|forbid|disallow|unauthori[sz]|no (?:access|permission)|bloqu|rejet|rejeit|rechaz|rifiutat|abgelehnt|gesperrt|verweigert|geweigerd|odrzucon|zablokowan|a[fv]vis|odm[ií]tnut)|(?:\bnot|n't)[ -](?:be |been |currently )?(?:allow|permit|accept|authori[sz]))\w{0,12}`;
