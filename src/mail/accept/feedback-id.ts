/**
 * Feedback-ID, by which Gmail's Postmaster Tools show which mail people report as spam (Google's help page "Feedback Loop"): up to
 * three identifiers, then the sender. Gmail adds up each identifier by itself, wherever it is, so each begins with its kind.
 *
 * Recipients can read it, so it names kinds of mail and never a person: a tag that may be an address or a number is left out.
 */
import { hash } from 'node:crypto';
import type { Send } from '#platform/database/tables/send-record.ts';
import { defaultStream } from '#platform/values/stream.ts';

type Kind = Pick<Send, 'orgId' | 'stream' | 'tags'>;

/** `domain`: the return path's, which all nodes share. Google wants 5 to 15 characters that stay the same. */
export function createFeedbackId(domain: string): (kind: Kind) => string {
  const sender = `postern-${hash('sha256', domain).slice(0, 6)}`;
  return ({ orgId, stream, tags }) =>
    `${tagPart(tags)}stream-${stream ?? defaultStream}:org-${orgId.slice(-12)}:${sender}`;
}

/** The tag named `tag` is the tag, or the categories, of the other services' APIs. */
function tagPart({ tag }: Send['tags']): string {
  if (tag === undefined) return '';
  const name = tag.split(',', 1)[0]!.trim().replaceAll(' ', '-');
  const isKind = /^[A-Za-z][\w.-]{0,39}$/.test(name) && !/(?:\d.*){5}/.test(name);
  return isKind ? `tag-${name}:` : '';
}
