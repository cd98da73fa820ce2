/** What all dialects have in common, in each service's own form: the emails keep which one sent them. */
import test from 'ava';
import { type DialectName, dialectNames } from '../../src/glossary.ts';
import { createBrowser, setUp } from '../lab/browser/browser.ts';
import { cliOf } from '../lab/cli.ts';
import { startWorld, type World } from '../lab/scenes/world.ts';

interface Mail {
  to: string;
  text?: string;
}

const from = 'app@sender.invalid';
const subject = 'Hi';
const json = (path: string, key: (key: string) => Record<string, string>, body: (mail: Mail) => object) => ({
  path,
  headers: (given: string) => ({ ...key(given), 'content-type': 'application/json' }),
  body: (mail: Mail) => JSON.stringify(body(mail)),
});
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** One email through each of them. */
const requests = {
  resend: json('/emails', bearer, (mail) => ({ from, subject, ...mail })),
  postmark: json(
    '/email',
    (key) => ({ 'x-postmark-server-token': key }),
    ({ to, text }) => ({ From: from, To: to, Subject: subject, TextBody: text }),
  ),
  sendgrid: json('/v3/mail/send', bearer, ({ to, text: value }) => ({
    personalizations: [{ to: [{ email: to }] }],
    from: { email: from },
    subject,
    content: [{ type: 'text/plain', value }],
  })),
  mailgun: {
    path: '/v3/sender.invalid/messages',
    headers: (key: string) => ({ authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` }),
    body: (mail: Mail) => new URLSearchParams({ from, subject, ...mail }),
  },
} satisfies Record<DialectName, object>;

async function send(world: World, name: DialectName, mail: Mail) {
  const { path, body, headers: own } = requests[name];
  const response = await fetch(`${world.url()}${path}`, {
    method: 'POST',
    headers: own(world.key),
    body: body({ text: 'Hi', ...mail }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : JSON.parse(text) };
}

test('an email keeps the dialect that it was sent through', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const { cli } = cliOf(t, world);
  const own = (await world.send({ to: 'own@there.invalid' })).body.emailId;
  t.false('dialect' in (await world.get(own)));
  const page = async (id: string) => (await browser.get(`/dashboard/o/${world.orgId}/emails/${id}`)).text;
  t.notRegex(await page(own), /Sent through/);
  for (const name of dialectNames) {
    await send(world, name, { to: `${name}@there.invalid` });
    const { email_id: id } = await world
      .db('deliveries')
      .where({ recipient: `${name}@there.invalid` })
      .first('email_id');
    t.is((await world.get(id)).dialect, name);
    t.regex(await page(id), new RegExp(`Sent through\\s+the API of ${name}`, 'i'));
    t.regex((await cli(`email show ${id}`)).stdout.toString(), new RegExp(`dialect\\t${name}`));
  }
});
