/**
 * Kinds of mail: of the API, and submitted over SMTP as programs write them. A line of kinds.jsonl is a kind; {x*9} in it is x
 * nine times.
 */
import { readFileSync } from 'node:fs';
import { repeated } from '#lab/table.ts';

/** The fields of an API send that kinds have; content is base64. */
export interface ApiMail {
  from: string;
  subject: string;
  html?: string;
  text?: string;
  headers?: Record<string, string>;
  cc?: string[];
  tracking?: { opens: boolean; clicks: boolean };
  attachments?: { filename: string; content: string; contentType?: string; contentId?: string }[];
}

interface Kind {
  name: string;
  /** The fields of an API send, or the lines of a message without To. */
  mail: ApiMail | string[];
  /** Only hosts with SMTPUTF8 can get it. */
  needsUtf8?: boolean;
}

const file = new URL('kinds.jsonl', import.meta.url);

export const kinds: Kind[] = readFileSync(file, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(repeated(line)));

export const invitationType = 'text/calendar; method=REQUEST';
/** The domain with a second key, for Ed25519. */
export const twiceSigned = 'twice.invalid';
