/** The opening of a conversation: greeting, EHLO or HELO, and STARTTLS if it is wanted and offered. */
import { isIP } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { Reply } from '../glossary.ts';
import type { Phase, SessionResult } from '../outcome.ts';
import type { Conversation } from './conversation.ts';
import { isRefusal } from './expected-replies.ts';
import { type Extensions, extensionsOf, noExtensions } from './extensions.ts';

export interface Greeting {
  /** The MX's name, for SNI and for the check of its certificate. */
  host: string;
  /** Our own name in EHLO. */
  name: string;
  /** False: no TLS, even if the host offers STARTTLS. */
  startTls: boolean;
  secureContext: SecureContext;
}

/** `clearBecause`: why there is no TLS although it was wanted; else empty. */
export type Opened =
  | { extensions: Extensions; clearBecause: string }
  | Extract<SessionResult, { kind: 'refused' }>;

export async function open(conversation: Conversation, greeting: Greeting): Promise<Opened> {
  const reply = await conversation.readReply();
  if (isRefusal(reply)) return refused('greeting', reply);
  const extensions = await hello(conversation, greeting.name);
  if ('kind' in extensions || !greeting.startTls) return opened(extensions);
  if (!extensions.has('STARTTLS')) return opened(extensions, ': it does not offer STARTTLS');
  conversation.send(['starttls', 'STARTTLS']);
  const answer = await conversation.readReply();
  if (answer.code === 421) return refused('starttls', answer);
  if (isRefusal(answer)) return opened(extensions, ': it refuses STARTTLS');
  await secure(conversation, greeting);
  // RFC 3207 section 4.2: the extensions offered before TLS are discarded.
  return opened(await hello(conversation, greeting.name));
}

function opened(extensions: Extensions | Extract<Opened, { kind: 'refused' }>, clearBecause = ''): Opened {
  return 'kind' in extensions ? extensions : { extensions, clearBecause };
}

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
function secure(conversation: Conversation, { host, secureContext }: Greeting): Promise<void> {
  // RFC 6066 section 3: no addresses in SNI.
  const servername = isIP(host) ? '' : host;
  return conversation.startTls({ host, servername, rejectUnauthorized: false, secureContext });
}
