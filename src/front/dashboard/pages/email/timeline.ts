/** An email's events in words, with the receiving server's reply. */

import { legible } from '#front/dashboard/legible.ts';
import { agentName, exactly } from '#front/dashboard/number-format.ts';
import { replyText } from '#mail/deliver/outcome.ts';
import type { EmailRecord } from '#mail/record/rows/emails.ts';
import type { Reply } from '#platform/values/glossary.ts';

type Data = Record<string, unknown>;
type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'quiet';

const replyOf = ({ response, diagnostic }: Data) => {
  const reply = response as Reply | null | undefined;
  return reply ? replyText(reply) : text(diagnostic);
};
const text = (value: unknown) => (typeof value === 'string' ? value : '');
const reason = (data: Data) => text(data.reason);
const visitor = ({ userAgent }: Data) => agentName(text(userAgent));

const kinds: Record<string, { title: string; tone: Tone; detail?: (data: Data) => string }> = {
  'email.scheduled': {
    title: 'Accepted and scheduled',
    tone: 'quiet',
    detail: (data) => exactly(Date.parse(text(data.scheduledAt))),
  },
  'email.queued': {
    title: 'Queued',
    tone: 'busy',
    detail: ({ trackedLinks }) =>
      typeof trackedLinks === 'number' ? `Only the first ${trackedLinks} links are tracked` : '',
  },
  'email.delivered': { title: 'Delivered', tone: 'good', detail: replyOf },
  'email.deferred': { title: 'Deferred', tone: 'warn', detail: replyOf },
  'email.bounced': {
    title: 'Bounced',
    tone: 'bad',
    detail: (data) => replyOf(data) || text((data.bounce as Data | undefined)?.diagnostic),
  },
  'email.forward_failed': {
    title: 'Delivered, but could not be passed on',
    tone: 'warn',
    detail: ({ returned, bounce }) =>
      [text((returned as Data | undefined)?.recipient), text((bounce as Data | undefined)?.diagnostic)]
        .filter(Boolean)
        .join(': '),
  },
  'email.expired': {
    title: 'Expired',
    tone: 'bad',
    detail: (data) =>
      [data.reason === 'deadline' ? 'its deadline (expiresAfter)' : '', replyOf(data)]
        .filter(Boolean)
        .join(': '),
  },
  'email.suppressed': { title: 'Not sent: on the suppression list', tone: 'warn' },
  'email.opened': { title: 'Opened', tone: 'good', detail: visitor },
  'email.clicked': {
    title: 'Link clicked',
    tone: 'good',
    detail: (data) => [text(data.url), visitor(data)].filter(Boolean).join(', '),
  },
  'email.complained': { title: 'Marked as spam', tone: 'bad' },
  'email.unsubscribed': { title: 'Unsubscribed', tone: 'warn', detail: (data) => text(data.stream) },
  'email.held': { title: 'Held', tone: 'warn', detail: reason },
  'email.repeated': { title: 'A repeat was ignored', tone: 'quiet' },
  'email.canceled': { title: 'Canceled', tone: 'quiet', detail: reason },
};

/** Newest first, at most `maxShown`. */
export function timelineOf({ events }: EmailRecord) {
  return events
    .slice(-maxShown)
    .reverse()
    .map(({ id, type, at, recipient, data }) => {
      const { title, tone, detail } = kinds[type] ?? { title: type, tone: 'quiet' as const };
      return {
        id,
        at,
        title,
        tone,
        recipient: legible(recipient ?? ''),
        detail: legible(detail?.(data) ?? ''),
      };
    });
}

const maxShown = 200;
