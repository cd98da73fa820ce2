/** Our own format: `{type, timestamp, data}`; `data` is what `GET /api/public/received/{id}` answers. */
import { outwardReceived } from '#mail/received/outward-received.ts';
import { iso } from '#platform/base/clock.ts';
import { jsonBody, type WriteReceived } from './received-post.ts';

/** Of a post in bytes. Functions in the cloud take at most a few MiB. */
const maxStandard = 256 * 1024;

export const standardReceived: WriteReceived = ({ mail, content, links }) =>
  jsonBody({
    type: 'email.received',
    timestamp: iso(mail.at),
    data: outwardReceived(mail, content, links, maxStandard),
  });
