/** Item 9: limits under concurrency, a complaint that proves nothing, a header on every answer, an address of a cloud. */

import { makeKey } from '#accounts/create-key.ts';
import { newDkimKey } from '#accounts/domains.ts';
import { insertDomain } from '#accounts/rows/domains-table.ts';
import { callJson, type Reply } from '#lab/ask.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { goldenMail } from '#lab/scenes/returns.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { orgIdOf, type Scene } from './scene.ts';

const atOnce = 60;

/** Makes as many at once, and one more by itself: if that is refused with a limit, there must not be more than that. */
async function exceed(what: string, before: number, make: (n: number) => Promise<Reply>): Promise<Verdict> {
  const replies = await Promise.all(Array.from({ length: atOnce }, (_, n) => make(n)));
  const made = before + replies.filter(({ status }) => status === 200).length;
  const { status, text } = await make(atOnce);
  const limit = status === 400 ? Number(/has (\d+) /.exec(text)?.[1]) : null;
  if (limit === null || Number.isNaN(limit)) {
    return verdict(`${made} ${what}, and none is too many`, [
      status === 200,
      `one more is answered ${status}: ${text}`,
    ]);
  }
  return verdict(`${made} ${what}, the limit is ${limit}`, [
    made <= limit,
    `${made} ${what} exceed ${limit}`,
  ]);
}

async function webhooks(scene: Scene): Promise<Verdict> {
  const key = await scene.addTenant();
  return exceed('webhooks', 0, (n) =>
    callJson(`${scene.url}/api/public/webhooks`, key, 'POST', { url: `https://hooks.invalid/${n}` }),
  );
}

/** Each costs a key: all but the last few of a thousand are put there. One at a time may be added by the API. */
async function domains(scene: Scene): Promise<Verdict> {
  const key = await scene.addTenant();
  const orgId = await orgIdOf(scene.db, key);
  const { selector, publicKey } = await newDkimKey();
  const dkim = { dkimSelector: selector, dkimPublicKey: publicKey, dkimPrivateKey: '' };
  const already = 996;
  await scene.db.transaction(async (trx) => {
    for (let n = 0; n < already; n++)
      await insertDomain(trx, { orgId, name: `d${n}.invalid`, ...dkim }, Date.now());
  });
  const operator = await scene.operator();
  await operator.get(`/dashboard/o/${orgId}/domains`);
  const _csrf = operator.csrf();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  // sender.invalid is the first.
  return exceed('domains', already + 1, async (n) => {
    if (n % 2 === 0)
      return callJson(`${scene.url}/api/public/domains`, key, 'POST', { name: `new${n}.invalid` });
    const body = new URLSearchParams({ _csrf, name: `new${n}.invalid` }).toString();
    const { status, html } = await operator.ask('POST', `/dashboard/o/${orgId}/domains`, { body, headers });
    return { status: status === 303 ? 200 : status, text: html } as Reply;
  });
}

async function keys(scene: Scene): Promise<Verdict> {
  const key = await scene.addTenant();
  const orgId = await orgIdOf(scene.db, key);
  const already = 990;
  await scene.db.transaction(async (trx) => {
    for (let n = 0; n < already; n++)
      await makeKey(trx, { orgId, label: 'x', scopes: ['email:send'] }, Date.now());
  });
  return exceed('keys', already + 1, () =>
    callJson(`${scene.url}/api/public/keys`, key, 'POST', { label: 'x', scopes: ['email:send'] }),
  );
}

/** By somebody who has got a tracked mail, or only a link of it, and no return path. */
async function forgedComplaint(scene: Scene): Promise<Verdict> {
  const { url, key, db, config } = scene;
  const to = 'quoted@there.invalid';
  const tracking = { openTracking: true, clickTracking: true };
  const mail = {
    from: 'a@sender.invalid',
    to,
    subject: 'x',
    html: '<a href="https://a.invalid/">x</a>',
    tracking,
  };
  const { emailId } = JSON.parse((await callJson(`${url}/api/public/email/send`, key, 'POST', mail)).text);
  const { id } = await db('deliveries').where({ email_id: emailId }).first('id');
  const link = createTrackingLinks(loadSecrets(config))
    .tracker(url, await orgIdOf(db, key), id)
    .link('https://a.invalid/');
  const copy = `From: Shop <a@sender.invalid>\r\nSubject: x\r\n\r\nSee ${link}\r\n`;
  const complaint = goldenMail('arf-anonymous')
    .toString('latin1')
    .replace('Content-Type: text/rfc822-headers', 'Content-Type: message/rfc822')
    .replace(/Received: from mail\.postern[\s\S]*?(?=\r\n--=_arf)/, copy);
  const talk = await connectSmtp(scene.ports.inbound, { from: '127.0.70.1' });
  await talk.says('EHLO stranger.example\r\n', '250');
  await talk.says('MAIL FROM:<stranger@stranger.example>\r\n', '250');
  await talk.says('RCPT TO:<abuse@postern.invalid>\r\n', '250');
  await talk.says('DATA\r\n', '354');
  // The reply comes after the commit.
  await talk.says(`${complaint}\r\n.\r\n`, '');
  talk.close();
  const email = JSON.parse((await callJson(`${url}/api/public/email/${emailId}`, key, 'GET')).text);
  const kept = await callJson(`${url}/api/public/suppressions/${to}`, key, 'GET');
  return verdict(
    `the email is ${email.status}; the address is ${kept.status === 404 ? 'not ' : ''}suppressed`,
    [kept.status === 404, 'a stranger has suppressed an address'],
    [email.status !== 'complained', 'a stranger has made an email complained of'],
  );
}

const get = (path: string, more = '') =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`;

/** Each as it goes over the wire. */
const requests: Record<string, string> = {
  ...Object.fromEntries(
    [
      ...['/', '/nothing', '/docs', '/api/public/openapi.json', '/api/public/nothing', '/api/public/emails'],
      ...[
        '/health/live',
        '/health/ready',
        '/metrics',
        '/dashboard',
        '/dashboard/sign-in',
        '/dashboard/nothing',
      ],
      ...[
        '/dashboard/assets/nothing',
        '/t/o/x',
        '/t/c/x',
        '/favicon.ico',
        '/robots.txt',
        '/%',
        '/dashboard/%',
      ],
    ].map((path) => [path, get(path)]),
  ),
  'a method that is not taken': get('/docs').replace('GET', 'DELETE'),
  'a post to /metrics': 'POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
  'no HTTP': 'GARBAGE\r\n\r\n',
  'no Host': 'GET / HTTP/1.1\r\n\r\n',
  'an unknown expectation': get('/docs', 'Expect: nothing\r\n'),
  'headers that are too large': get('/docs', `X: ${'x'.repeat(40_000)}\r\n`),
  'a wrong length': 'POST /docs HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n',
  'a wrong chunk':
    'POST /api/public/email/send HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n',
};

async function headOf(scene: Scene, request: string): Promise<string> {
  const socket = scene.connect(Number(new URL(scene.url).port), '127.0.0.1');
  socket.setEncoding('latin1').write(request);
  return new Promise((resolve) => {
    let came = '';
    const done = () => {
      socket.destroy();
      resolve(came.split('\r\n\r\n', 1)[0]!);
    };
    socket.setTimeout(5_000, done);
    socket.on('data', (text) => {
      came += text;
      if (came.includes('\r\n\r\n')) done();
    });
    socket.on('end', done).on('error', done);
  });
}

async function sniff(scene: Scene): Promise<Verdict> {
  const without: string[] = [];
  const statuses = new Set<string>();
  for (const [what, request] of Object.entries(requests)) {
    const head = await headOf(scene, request);
    statuses.add(head.split(' ')[1] ?? 'none');
    if (!/^x-content-type-options: *nosniff$/im.test(head))
      without.push(`${what} (${head.split('\r\n')[0]})`);
  }
  return verdict(
    `${without.length} of ${Object.keys(requests).length} answers lack nosniff (statuses ${[...statuses].sort().join(', ')})`,
    [without.length === 0, `no nosniff: ${without.join('; ')}`],
  );
}

/** Azure's own services, from inside its machines, in all the ways to write the address. */
const azure = ['168.63.129.16', '[::ffff:168.63.129.16]', '[64:ff9b::a83f:8110]', '2822734096', '0xa83f8110'];

async function cloudAddress(scene: Scene): Promise<Verdict> {
  // An organization that sends nothing, so that nothing is posted.
  const key = await scene.addTenant();
  const taken: string[] = [];
  for (const host of azure) {
    const { status, text } = await callJson(`${scene.url}/api/public/webhooks`, key, 'POST', {
      url: `http://${host}/`,
    });
    if (status !== 200) continue;
    taken.push(host);
    await callJson(`${scene.url}/api/public/webhooks/${JSON.parse(text).webhook.id}`, key, 'DELETE');
  }
  const plain = await callJson(`${scene.url}/api/public/webhooks`, key, 'POST', {
    url: 'https://hooks.invalid/',
  });
  return verdict(
    `${taken.length} of ${azure.length} spellings taken`,
    [taken.length === 0, `webhooks may post to ${taken.join(', ')}`],
    [plain.status === 200, `no webhook is taken (${plain.status}): nothing was measured`],
  );
}

export const bounds: Attack[] = [
  { item: 9, name: `${atOnce} webhooks at once`, run: webhooks },
  { item: 9, name: `${atOnce} domains at once, beside a thousand`, run: domains },
  { item: 9, name: `${atOnce} keys at once, beside a thousand`, run: keys },
  { item: 9, name: 'a complaint that only quotes a tracking link', run: forgedComplaint },
  { item: 9, name: 'answers whose type a browser might guess', run: sniff },
  { item: 9, name: 'a webhook to 168.63.129.16', run: cloudAddress },
];
