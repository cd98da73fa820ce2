/**
 * Asks a spam filter for its verdict: Rspamd (`POST /checkv2`) or SpamAssassin's spamd. Its absence defers nothing: without an
 * answer in time there is no verdict, and a filter that has not answered is left alone for a while.
 */
import '#platform/base/net/next-address.ts';
import { once } from 'node:events';
import { connect } from 'node:net';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import type { SpamVerdict } from './received-mail.ts';
import type { FilteredMail } from './reception-handler.ts';

export type SpamFilter = (mail: FilteredMail) => Promise<SpamVerdict | null>;

interface FilterParts {
  /** `http://HOST:PORT` of Rspamd, or `spamd://HOST:PORT`; null: there is none. */
  url: string | null;
  clock: Pick<Clock, 'now'>;
  onError(what: string, error: unknown): void;
  timeoutMs?: number;
}

const defaultTimeoutMs = 5000;
const absenceMs = 30_000;
const maxAnswer = 256 * 1024;
const maxRules = 50;

export function createSpamFilter({
  url,
  clock,
  onError,
  timeoutMs = defaultTimeoutMs,
}: FilterParts): SpamFilter {
  if (url === null) return async () => null;
  const ask = url.startsWith('spamd:') ? askSpamd : askRspamd;
  let absentAt = Number.NEGATIVE_INFINITY;
  return async (mail) => {
    if (isRecent(absentAt, clock.now(), absenceMs)) return null;
    try {
      return await ask(new URL(url), mail, AbortSignal.timeout(timeoutMs));
    } catch (error) {
      absentAt = clock.now();
      onError('the spam filter gave no verdict; received mail has none for the next 30 s', error);
      return null;
    }
  };
}

/** https://docs.rspamd.com/developers/protocol */
async function askRspamd(url: URL, mail: FilteredMail, signal: AbortSignal): Promise<SpamVerdict> {
  const headers = new Headers({ IP: mail.peer, Helo: header(mail.helo), From: header(mail.sender) });
  for (const recipient of mail.recipients) headers.append('Rcpt', header(recipient));
  const body = new Uint8Array(mail.raw.buffer as ArrayBuffer, mail.raw.byteOffset, mail.raw.length);
  const response = await fetch(new URL('/checkv2', url), { method: 'POST', headers, body, signal });
  const text = await textOf(response.body ?? []);
  if (response.status !== 200) throw new Error(`Rspamd answered ${response.status}`);
  const { action, score, required_score: threshold, symbols } = JSON.parse(text);
  if (typeof action !== 'string' || typeof score !== 'number' || typeof threshold !== 'number')
    throw new Error('Rspamd answered without an action or a score');
  return {
    isSpam: !['no action', 'greylist', 'soft reject'].includes(action),
    score,
    threshold,
    rules: Object.keys(symbols ?? {}).slice(0, maxRules),
  };
}

/** Addresses may be in UTF-8, and header values may not. */
const header = (text: string) => text.replace(/[^\x20-\x7e]/g, '?');

async function textOf(chunks: AsyncIterable<Uint8Array> | Uint8Array[]): Promise<string> {
  const read: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxAnswer) throw new Error('the spam filter answered more than it may');
    read.push(chunk);
  }
  return Buffer.concat(read).toString();
}

/** The protocol SPAMC/1.5, in which the end of what is sent ends the request. */
async function askSpamd(url: URL, { raw }: FilteredMail, signal: AbortSignal): Promise<SpamVerdict> {
  // An IPv6 address has brackets in a URL only.
  const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port), signal });
  try {
    await once(socket, 'connect', { signal });
    socket.write(`SYMBOLS SPAMC/1.5\r\nContent-length: ${raw.length}\r\n\r\n`);
    socket.end(raw);
    const answer = await textOf(socket);
    const found = /^Spam: (True|False|Yes|No) ; (-?[\d.]+) \/ (-?[\d.]+)/im.exec(answer);
    if (!found) throw new Error('spamd answered without a score');
    const rules = answer.slice(answer.indexOf('\r\n\r\n') + 4).trim();
    return {
      isSpam: /^(?:true|yes)$/i.test(found[1]!),
      score: Number(found[2]),
      threshold: Number(found[3]),
      rules: rules.split(/[,\s]+/, maxRules).filter(Boolean),
    };
  } finally {
    socket.destroy();
  }
}
