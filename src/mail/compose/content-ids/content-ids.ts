/**
 * Content ids of attachments. Callers name a file by any text, often by its file name (`logo a.png`), which a message cannot
 * carry. Such an id is replaced by a safe one, in the attachment and where the HTML refers to it; other ids stay.
 */
import { hash } from 'node:crypto';
import { unescape as unescapePercent } from 'node:querystring';
import type { Attachment } from '#mail/compose/attachment.ts';
import { withReferences } from './references.ts';

/** The characters of a Message-ID (RFC 5322 section 3.6.4), which RFC 2392 prescribes. Few callers write an "@domain". */
const dotAtom = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/;
const domainLiteral = /^\[[\x21-\x5a\x5e-\x7e]*\]$/;

function isSafe(id: string): boolean {
  const at = id.indexOf('@');
  if (at < 0) return dotAtom.test(id);
  const domain = id.slice(at + 1);
  return dotAtom.test(id.slice(0, at)) && (dotAtom.test(domain) || domainLiteral.test(domain));
}

/** The id as readers compare it: a `cid:` URL escapes some characters of it (RFC 2392 section 2). */
export function comparedId(id: string): string {
  const plain = unescapePercent(id);
  return plain.includes('\ufffd') ? id : plain;
}

/** Finds what belongs to the id that a reference names, as it is or with escapes. */
export function byReference<Value>(values: ReadonlyMap<string, Value>): (id: string) => Value | undefined {
  const compared = new Map([...values].map(([id, value]) => [comparedId(id), value]));
  return (id) => {
    const plain = comparedId(id);
    return values.get(id) ?? values.get(plain) ?? compared.get(plain);
  };
}

interface Content {
  html?: string;
  amp?: string | undefined;
  attachments: Attachment[];
}

export function withSafeIds<Given extends Content>(given: Given): Given {
  const ids = given.attachments.flatMap(({ contentId }) => contentId ?? []);
  if (ids.every(isSafe)) return given;
  const safe = safeIdsFor(ids);
  const safeIdOf = byReference(safe);
  return {
    ...given,
    ...(given.html && { html: withReferences(given.html, safeIdOf) }),
    ...(given.amp && { amp: withReferences(given.amp, safeIdOf) }),
    attachments: given.attachments.map((file) =>
      file.contentId === undefined ? file : { ...file, contentId: safe.get(file.contentId)! },
    ),
  };
}

/** For each id, itself if it is safe. A file may have the safe id of another as its own. A repeat makes the same message. */
export function safeIdsFor(ids: string[]): Map<string, string> {
  const taken = new Set(ids);
  const safeIdFor = (id: string): string => {
    let made = id;
    do made = `${hash('sha256', made).slice(0, 32)}@inline`;
    while (taken.has(made));
    taken.add(made);
    return made;
  };
  return new Map(ids.map((id) => [id, isSafe(id) ? id : safeIdFor(id)]));
}
