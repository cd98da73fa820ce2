/** Writes the body of a post of `email.received`. Runs on the thread that reads messages. */
import { openMail } from '#mail/received/read-mail.ts';
import { formatOf } from '#mail/webhooks/formats/all-formats.ts';
import type { WebhookFormatName } from '#mail/webhooks/subscribed-types.ts';
import { maxBody, type PostBody, type ReceivedPost } from './received-post.ts';

export type ReceivedOrder = Pick<ReceivedPost, 'mail' | 'links' | 'signature' | 'url'> & {
  format: WebhookFormatName;
};

export function writeReceived(raw: Buffer, { format, ...order }: ReceivedOrder): PostBody {
  const { writeReceived: write } = formatOf(format);
  const opened = order.mail.summary.isReadable ? openMail(raw) : null;
  const post = {
    ...order,
    raw,
    content: opened?.content ?? null,
    file: opened?.file ?? none,
    isTooLong: false,
  };
  const whole = write(post);
  return whole.body.length <= maxBody ? whole : write({ ...post, isTooLong: true });
}

const none = () => Buffer.alloc(0);
