/** Finds the addresses that failed in a bounce that is written for people: alone on a line, or else where servers name it. */

const label = String.raw`[^\s<>()[\]"',;:@.\u3000-\u303f\uff00-\uffef]{1,63}`;
const address = String.raw`(?<address>[^\s<>()[\]"',;:@\u3000-\u303f\uff00-\uffef]{1,64}@(?:${label}\.){0,12}${label})`;
const origin = String.raw`(?:[ \t]{0,4}\((?:ultimately )?(?:expanded|generated) from[^)\n]{0,330}\))?`;

const places = [
  // On the line before the reason: qmail, Exim, Sendmail, Gmail, Courier, Exchange, Domino.
  String.raw`^[ \t>*]{0,16}(?:(?:recipients?|address|failed (?:address|recipient)):[ \t]{0,8})?["'<[(]{0,2}${address}["'>\])]{0,2}(?:[ \t]?<mailto:[^>\n]{1,400}>)?${origin}(?:[:,.]| on [A-Z\d][^\n]{1,60})?[ \t]{0,80}$`,
  // Before the reason, on its line: Postfix, OpenSMTPD, Stalwart.
  String.raw`^[ \t>]{0,16}<?${address}>?${origin}(?:[:,][ \t]{1,4}\S| \((?:host|connection|TLS|DNS)\b)`,
  // In a sentence: CommuniGate, IronPort, Microsoft 365.
  String.raw`\b(?:deliver(?:ed|y)?|message|mail)(?: your (?:message|mail))? to:? ["'<]?${address}["'>]?(?=[\s.,:]|$)`,
].map((pattern) => new RegExp(pattern, 'gim'));

/** Addresses to write to for help. */
const helper = /^(?:postmaster|mailer-daemon|abuse|support|help|info|admin|hostmaster)@/i;

/** The most telling places only. */
export function recipientsIn(text: string, max: number): string[] {
  for (const place of places) {
    const found = [...text.matchAll(place)].slice(0, max).map(({ groups }) => groups!.address!);
    const recipients = [...new Set(found)].filter((one) => !helper.test(one));
    if (recipients.length > 0) return recipients;
  }
  return [];
}
