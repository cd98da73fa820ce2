/**
 * Header fields as ASCII. Each kind in the way that its readers decode: text and phrases as encoded words (RFC 2047), parameters
 * by RFC 2231, domains as A-labels, URLs with percent signs. Comments of other fields are left out, and so is a field whose
 * bytes have no meaning in it. Only an address with a local part beyond ASCII stays, because it needs SMTPUTF8 anyway
 * (RFC 6531); in a part or an attached message, to which nothing is delivered, it becomes an empty group (RFC 6857 section 3.2).
 */
import { decodeWords } from 'postal-mime';
import { field, foldable, foldedField, mailbox, phrase } from '#mail/compose/field.ts';
import type { Field } from '#mail/compose/head.ts';
import { asciiUrl, structureOf, urlFields } from '#mail/compose/header-grammar.ts';
import { isMostlyLetters } from '#mail/compose/transfer-encoding.ts';
import { domainOf, envelopeAddress } from '#platform/values/address.ts';
import { readAddressList, withoutComments } from '#platform/values/mailbox-list.ts';
import type { NamedAddress } from '#platform/values/recipients.ts';
import { buildHeaderValue, encodeWord, parseHeaderValue } from '#platform/vendor/nodemailer.ts';
import { mediaTypeNamed } from './part-labels.ts';

export interface FieldContext {
  /** The field is in the header of the message itself. */
  isDelivered: boolean;
  /** The new Content-Type; null if it stays. */
  type: string | null;
  charset: string | null;
}

const parameterized = /^content-(?:type|disposition)$/;
const addresses =
  /^(?:resent-)?(?:from|sender|reply-to|to|cc|bcc)$|^(?:disposition-notification|return-receipt|errors|mail-reply|mail-followup)-to$/;
const ids = /^(?:(?:resent-)?message-id|references|in-reply-to|content-id)$/;
const url = /^content-(?:location|base)$/;
const otherGrammar = /^list-(?:id|unsubscribe-post)$/;
/** Encoded words have no meaning in these (RFC 2047 section 5), except in comments. */
const tokens =
  /^(?:(?:resent-)?date|mime-version|received|return-path|content-(?!description$).*|dkim-signature|arc-.*|authentication-results)$/;

/** A longer name leaves no room on its line. */
const longestLabel = 500;

/** Without its last CRLF; null if it cannot be ASCII or cannot be folded. */
export function asciiField({ name, label, value }: Field, context: FieldContext): string | null {
  if (label.length > longestLabel) return null;
  const isChanged = /[^\t\x20-\x7e]/.test(value) || parameterized.test(name);
  const isGrammar = [addresses, ids, urlFields, url, otherGrammar, tokens].some((kind) => kind.test(name));
  if (!isGrammar && !parameterized.test(name))
    return name === 'keywords' ? keywords(label, value) : text(label, value);
  const written = isChanged ? asciiValue(name, value, context) : value;
  return written === null || written === '' ? null : foldedField(label, written);
}

function asciiValue(name: string, value: string, context: FieldContext): string | null {
  if (parameterized.test(name)) return parameters(name, value, context);
  if (addresses.test(name)) return addressList(value, context.isDelivered);
  if (name === 'content-id' && /^<[^\s<>()]{1,300}>$/.test(value)) {
    return value.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
  }
  if (ids.test(name))
    return (withoutComments(value).match(/<[\x21-\x3b=\x3f-\x7e]{1,900}>/g) ?? []).join(' ');
  if (urlFields.test(name)) return structureOf(name)!.write(value);
  if (otherGrammar.test(name)) {
    const forms = [value, withoutComments(value).trim(), /<[^<>]*>/.exec(value)?.[0] ?? ''];
    return forms.map(structureOf(name)!.write).find((one) => one !== null) ?? null;
  }
  if (url.test(name)) return asciiUrl(value.trim());
  const rest = withoutComments(value).replace(/\s+/g, ' ').trim();
  if (/^[\t\x20-\x7e]+$/.test(rest)) return rest;
  return name === 'mime-version' ? '1.0' : null;
}

/** The time of nodemailer's functions grows with more than the length. */
const maxParsed = 8192;

function parameters(name: string, value: string, { type, charset }: FieldContext): string {
  const given = value.slice(0, maxParsed);
  const parsed = parseHeaderValue(given.startsWith('=?') ? decodeWords(given) : given, {
    stripComments: true,
  });
  const params = Object.fromEntries(
    Object.entries(parsed.params).filter(
      ([key, text]) => /^[\x21-\x7e]+$/.test(key) && (key !== 'boundary' || /^[\x20-\x7e]*$/.test(text)),
    ),
  );
  if (name === 'content-disposition') {
    return buildHeaderValue({ value: /^[\w-]+/.exec(parsed.value)?.[0] ?? 'attachment', params });
  }
  const kept =
    type === null ? params : Object.fromEntries(Object.entries(params).filter(([key]) => key === 'name'));
  return buildHeaderValue({
    value: type ?? mediaTypeNamed(parsed.value) ?? 'application/octet-stream',
    params: charset === null ? kept : { ...kept, charset },
  });
}

function addressList(value: string, isDelivered: boolean): string {
  const list = readAddressList(value);
  if (!list) return emptyGroup(value);
  const written = list.mailboxes.map((one) => asciiMailbox(one, isDelivered));
  const elements: string[] = [];
  let at = 0;
  for (const { name, start, end } of list.groups) {
    const members = written.slice(start, end).filter((one) => !one.endsWith(':;'));
    elements.push(...written.slice(at, start), `${phrase(shown(name))}: ${members.join(', ')};`);
    at = end;
  }
  return [...elements, ...written.slice(at)].join(', ');
}

function asciiMailbox({ name, address }: NamedAddress, isDelivered: boolean): string {
  const isAscii = (text: string) => /^[\x20-\x7e]*$/.test(text);
  const shownName = shown(name);
  if (domainOf(address) !== null) {
    const canStay = isDelivered || isAscii(envelopeAddress(address));
    return canStay ? mailbox({ name: shownName, address }) : emptyGroup(`${shownName} ${address}`);
  }
  if (!isAscii(address)) return emptyGroup(`${shownName} ${address}`);
  return shownName === '' ? address : `${phrase(shownName)} <${address}>`;
}

/** RFC 5322 section 3.4: a name that stands for no address. */
function emptyGroup(value: string): string {
  return `${words(shown(value)).join(' ')}:;`;
}

function keywords(label: string, value: string): string | null {
  const phrases = value.split(',').map((one) => phrase(shown(one)));
  return foldedField(label, phrases.join(', '));
}

function text(label: string, value: string): string {
  const isLong = value.length > maxParsed;
  const readable = isLong ? value : shown(value, maxParsed);
  if (foldable.test(readable) && !readable.includes('=?')) return field(label, readable).text;
  // Pieces, because encoding takes more than linear time.
  const pieces =
    readable.length <= maxPiece ? [readable] : (readable.match(/.{1,2000}\s|.{1,2000}/gsu) ?? []);
  const encoded = pieces.flatMap((piece) => words(isLong ? decodeWords(piece) : piece));
  return [`${label}:`, ...encoded].join('\r\n ').replace('\r\n ', ' ');
}

const maxPiece = 2000;
const maxWordLength = 52;

function words(readable: string): string[] {
  return encodeWord(readable, isMostlyLetters(readable) ? 'Q' : 'B', maxWordLength).split(' ');
}

const longestName = 400;

/** Decoded, because what is encoded again would be shown as encoded words. */
function shown(value: string, longest = longestName): string {
  return decodeWords(value.slice(0, 8 * longest))
    .toWellFormed()
    .replace(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, longest)
    .toWellFormed();
}
