/** The opening of a conversation: greeting, EHLO or HELO, and STARTTLS if it is wanted and offered. */
import { isIP } from 'node:net';
import type { Reply } from '../glossary.ts';
import { type Phase, replyText, type SessionResult } from '../outcome.ts';
import type { Conversation } from './conversation.ts';
import { isRefusal } from './expected-replies.ts';
import { type Extensions, extensionsOf, noExtensions } from './extensions.ts';
import { secureContextOf, type TlsOffer } from './handshake.ts';
import { tlsFailed } from './session-result.ts';

export interface Greeting {
  /** The MX's name, for SNI and for the check of its certificate. */
  host: string;
  /** Our own name in EHLO. */
  name: string;
  /** Null: no TLS, even if the host offers STARTTLS. */
  tls: TlsOffer | null;
}

/** `clearBecause`: why there is no TLS although it was wanted; else empty. */
export type Opened =
  | { extensions: Extensions; clearBecause: string }
  | Extract<SessionResult, { kind: 'refused' | 'tls-failed' }>;

export async function open(conversation: Conversation, greeting: Greeting): Promise<Opened> {
  const reply = await conversation.readReply();
  if (isRefusal(reply)) return refused('greeting', reply);
  const extensions = await hello(conversation, greeting.name);
  const { tls } = greeting;
  if ('kind' in extensions || !tls) return opened(extensions);
  if (!extensions.has('STARTTLS')) return opened(extensions, ': it does not offer STARTTLS');
  conversation.send(['starttls', 'STARTTLS']);
  const answer = await conversation.readReply();
  // RFC 5321 section 4.2.1: it closes, so what it may take in clear is not known.
  if (answer.code === 421) return tlsFailed('starttls', 'lost', `the host said ${replyText(answer)}`);
  if (isRefusal(answer)) return opened(extensions, ': it refuses STARTTLS');
  await secure(conversation, greeting.host, tls);
  // RFC 3207 section 4.2: the extensions offered before TLS are discarded.
  const secured = await hello(conversation, greeting.name);
  if (!('kind' in secured)) return opened(secured);
  return tlsFailed('ehlo', 'lost', `the host said ${replyText(secured.reply)}`);
}

function opened(extensions: Extensions | Refused, clearBecause = ''): Opened {
  return 'kind' in extensions ? extensions : { extensions, clearBecause };
}

type Refused = Extract<Opened, { kind: 'refused' }>;

const refused = (phase: Phase, reply: Reply) => ({ kind: 'refused', phase, reply }) as const;

async function hello(conversation: Conversation, name: string) {
  conversation.send(['ehlo', `EHLO ${name}`]);
  const reply = await conversation.readReply();
  if (!isRefusal(reply)) return extensionsOf(conversation.lastReply);
  if (reply.code === 421) return refused('ehlo', reply);
  conversation.send(['ehlo', `HELO ${name}`]);
  const second = await conversation.readReply();
  return isRefusal(second) ? refused('ehlo', second) : noExtensions;
}

/** Accepts any certificate; tls-demand.ts checks it afterwards. */
function secure(conversation: Conversation, host: string, tls: TlsOffer): Promise<void> {
  // RFC 6066 section 3: no addresses in SNI. Some old hosts break off at a name that they do not know.
  const servername = isIP(host) || tls === 'legacy' ? '' : host;
  const secureContext = secureContextOf(tls);
  return conversation.startTls({ host, servername, rejectUnauthorized: false, secureContext });
}
