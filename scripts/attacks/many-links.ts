/** Item 2: mails that are dear to compose. The other organization's sends do not wait, and the database does not swell. */

import { callJson } from '#lab/ask.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import type { Scene } from './scene.ts';

const sends = 6;
const links = 55_000;
const recipients = 10;
const timeoutMs = 50_000;
/** The mail once, and for each recipient the thousand links that are theirs. */
const maxGrowthMb = 10;

async function sendLinks(scene: Scene): Promise<Verdict> {
  const { url, key, db } = scene;
  const anchors = Array.from({ length: links }, (_, n) => `<a href=http://a.invalid/${n}>x</a>`);
  const to = Array.from({ length: recipients }, (_, n) => `links-${n}@there.invalid`);
  const mail = { from: 'a@sender.invalid', to, html: anchors.join('\n') };
  const tracking = { openTracking: true, clickTracking: true };
  const before = await sizeOf(db);
  const calls = Array.from({ length: sends }, (_, n) =>
    callJson(
      `${url}/api/public/email/send`,
      key,
      'POST',
      { ...mail, subject: `Links ${n}`, tracking },
      timeoutMs,
    ),
  );
  const replies = await Promise.all(calls);
  const taken = replies.filter(({ status }) => status === 200).length;
  const growth = ((await sizeOf(db)) - before) / Math.max(taken, 1) / 1e6;
  const slowest = Math.max(...replies.map(({ ms }) => ms));
  const silent = replies.find(({ isOverdue }) => isOverdue);
  return verdict(
    `${taken} of ${sends} taken, the slowest in ${(slowest / 1000).toFixed(1)} s; each adds ${growth.toFixed(1)} MB`,
    [silent === undefined, `a send was not answered: ${silent?.text}`],
    [growth <= maxGrowthMb, `each send adds ${growth.toFixed(1)} MB to the database`],
  );
}

/** Without pages that are free to be used again. */
async function sizeOf(db: Db): Promise<number> {
  const [{ page_count: pages }] = await db.raw('pragma page_count');
  const [{ freelist_count: free }] = await db.raw('pragma freelist_count');
  const [{ page_size: bytes }] = await db.raw('pragma page_size');
  return (pages - free) * bytes;
}

export const manyLinks: Attack[] = [
  {
    item: 2,
    name: 'six sends of 1.9 MB with 55,000 tracked links to ten recipients',
    timeoutMs: timeoutMs + 5_000,
    run: sendLinks,
  },
];
