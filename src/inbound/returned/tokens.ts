/**
 * What in a complaint may name the delivery that is complained of. A complaint comes to an address that everybody
 * knows, so nothing that it says counts but what carries our key: the return path, as the report and the header of the
 * returned mail have it, and the links of a tracked one. Providers strike out the recipient's address, and mostly leave
 * these. Here they are only found; whether the key is right is for their readers to say.
 */
import type { Mail } from './mail.ts';
import type { Token } from './reading.ts';

const returnPath = /(?<![\w-])b-[0-9a-f]{32}-[0-9a-f]{16}(?![\w-])/gi;
const trackingLink = /\/t\/(?<kind>[oc])\/(?<token>[\w-]{46,4000})/g;

const mostTokens = 20;

const isCopy = /^(?:message\/(?:global|rfc822|global-headers)|text\/rfc822-headers?)$/;

/** The likeliest first: the envelope as the report has it, then the copy from its top down. */
export function findTokens(mail: Mail, mailFrom: string | null): Token[] {
  const copies = mail.parts.filter(({ type }) => isCopy.test(type)).map(({ text }) => text);
  const texts = [mailFrom ?? '', ...copies];
  // Links of quoted-printable HTML are broken over lines, and have their equals signs written out.
  const unbroken = copies.map((text) => text.replace(/=\n/g, '').replace(/=3D/gi, '='));
  const tokens = [...texts.flatMap(returnPathsIn), ...unbroken.flatMap(linksIn)];
  const seen = new Set<string>();
  return tokens.filter(({ text }) => !seen.has(text) && seen.add(text)).slice(0, mostTokens);
}

function returnPathsIn(text: string): Token[] {
  return [...text.matchAll(returnPath)].map(([found]) => ({
    kind: 'return-path',
    text: found.toLowerCase(),
  }));
}

function linksIn(text: string): Token[] {
  return [...text.matchAll(trackingLink)].map(({ groups }) => ({
    kind: groups!.kind === 'o' ? 'open' : 'click',
    text: groups!.token!,
  }));
}
