/** The replies that may follow each command, so that no reply is taken for the answer to another command. */

import type { Phase, Reply } from '#platform/values/glossary.ts';

/** The positive replies to each command: RFC 5321 section 4.3.2. A refusal is valid everywhere. */
const consent: Record<Phase, RegExp> = {
  greeting: /^220/,
  ehlo: /^2/,
  starttls: /^2/,
  mail: /^2/,
  rcpt: /^2/,
  data: /^3/,
  dot: /^2/,
  // And RSET.
  rset: /^2/,
};

/** Phases that are followed by another command: an extra reply would be taken as the reply to it. */
const goesOnAfterConsent = new Set<Phase>(['greeting', 'ehlo', 'mail', 'rcpt', 'data']);
/** After a refused EHLO we send HELO; after a refused STARTTLS we continue without TLS. */
const goesOnAfterRefusal = new Set<Phase>(['ehlo', 'starttls']);

export const isRefusal = ({ code }: Reply) => code >= 400;

export interface Circumstances {
  /** The phase that the reply answers. */
  phase: Phase;
  /** The message is still being sent. */
  isWriting: boolean;
  /** More replies have come than commands were sent. */
  hasExtra: boolean;
}

/** Null if the reply is valid here. `reply`: the parsed text. */
export function problemOf(
  text: string,
  reply: Reply | null,
  { phase, isWriting, hasExtra }: Circumstances,
): string | null {
  if (!reply) return notSmtp(text);
  if (!isRefusal(reply)) {
    if (!consent[phase].test(String(reply.code)))
      return `${reply.code} is no answer to ${phase}: ${reply.text}`;
    if (isWriting) return `the host answered ${reply.code} before the message was out`;
  }
  const goesOn = isRefusal(reply) ? goesOnAfterRefusal : goesOnAfterConsent;
  return goesOn.has(phase) && hasExtra ? 'the host sent a reply that no command asked for' : null;
}

export function notSmtp(text: string): string {
  return `not an SMTP reply: ${JSON.stringify(text.slice(0, 200))}`;
}
