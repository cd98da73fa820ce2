/**
 * Finds the tokens in a complaint that identify its delivery. A complaint comes to a public address, so only tokens with our
 * key are believed. Providers redact the recipient's address, and mostly leave these:
 *
 *   the return path    identifies the delivery; in the envelope, and in the header that the last host adds
 *   the Message-ID     identifies the email; if it has several recipients, a link must say which one complains. In the
 *                      header of the copy, or in the report's field Original-Message-ID
 *   a tracking link    proves nothing by itself: it is in the body, which people forward and publish
 *
 * Anyone whom the recipient has answered knows the Message-ID too, and could forge a complaint; that is accepted, because
 * many complaints have no return path. Mail submitted with its own Message-ID is found by its return path only.
 */

import type { ParsedMail } from '#mail/returned/parse/parsed-mail.ts';
import type { ReadMessageId } from '#platform/values/message-id.ts';
import type { Token } from './parse-result.ts';
import type { ReadReturnPath } from './return-path.ts';

const returnPath = /(?<![\w-])b-(?:[0-9a-f]{32}-[0-9a-f]{16}|[0-9a-v]{37})(?![\w-])/gi;
/** Some providers leave the angle brackets out. */
const messageId = /^(?:original-)?message-id:\s*<?(?<local>[\w-]{32})@/gim;
const trackingLink = /\/t\/(?<kind>[oc])\/(?<token>[\w-]{46,4000})/g;

const maxTokens = 20;

const isCopy = /^(?:message\/(?:global|rfc822|global-headers)|text\/rfc822-headers?)$/;

/** The most reliable first: the report's own fields, then the copy of the mail from its start. */
export function findTokens(mail: ParsedMail): Token[] {
  const copies = mail.parts.filter(({ type }) => isCopy.test(type)).map(({ text }) => text);
  const reports = mail.parts.filter(({ type }) => type === 'message/feedback-report');
  const texts = [...reports.map(({ text }) => text), ...copies];
  // In quoted-printable HTML, links are wrapped and their equals signs encoded.
  const unbroken = copies.map((text) => text.replace(/=\n/g, '').replace(/=3D/gi, '='));
  const tokens = [
    ...texts.flatMap(returnPathsIn),
    ...texts.flatMap(messageIdsIn),
    ...unbroken.flatMap(linksIn),
  ];
  const seen = new Set<string>();
  return tokens.filter(({ text }) => !seen.has(text) && seen.add(text)).slice(0, maxTokens);
}

function returnPathsIn(text: string): Token[] {
  return [...text.matchAll(returnPath)].map(([found]) => ({
    kind: 'return-path',
    text: found.toLowerCase(),
  }));
}

/** Only from the report's fields and the header of the copy, not from mail quoted below it. */
function messageIdsIn(text: string): Token[] {
  const header = text.split('\n\n', 1)[0]!;
  return [...header.matchAll(messageId)].map(({ groups }) => ({
    kind: 'message-id',
    text: groups!.local!,
  }));
}

function linksIn(text: string): Token[] {
  return [...text.matchAll(trackingLink)].map(({ groups }) => ({
    kind: groups!.kind === 'o' ? 'open' : 'click',
    text: groups!.token!,
  }));
}

export interface TokenReaders {
  returnPath: ReadReturnPath;
  /** The email that has this Message-ID. */
  messageId: ReadMessageId;
  /** The delivery that a tracking link was made for. */
  link(kind: 'open' | 'click', token: string): string | null;
  /** Ids of an email's deliveries. */
  deliveriesOf(emailId: string): Promise<string[]>;
}

/** The delivery that the tokens of a complaint prove, or null. */
export function createDeliveryOf(read: TokenReaders): (tokens: Token[]) => Promise<string | null> {
  return async (tokens) => {
    const first = (kind: Token['kind'], reader: (text: string) => string | null) =>
      tokens.flatMap((token) => (token.kind === kind ? (reader(token.text) ?? []) : []))[0];
    const returnPath = first('return-path', read.returnPath);
    if (returnPath !== undefined) return returnPath;
    const emailId = first('message-id', read.messageId);
    if (emailId === undefined) return null;
    const deliveries = await read.deliveriesOf(emailId);
    if (deliveries.length === 1) return deliveries[0]!;
    const linked = tokens.map(({ kind, text }) =>
      kind === 'open' || kind === 'click' ? read.link(kind, text) : null,
    );
    return deliveries.find((id) => linked.includes(id)) ?? null;
  };
}
