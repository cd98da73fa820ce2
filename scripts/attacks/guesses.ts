/** Item 8: guesses. Of many at once no more are judged than one after the other, and nobody locks out somebody else. */
import { Secret, TOTP } from 'otpauth';
import { invite } from '#accounts/people/people.ts';
import { type Browser, createBrowser, password, signIn } from '#lab/browser/browser.ts';
import { connectSmtp, plain } from '#lab/mx/smtp-client.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import type { Scene } from './scene.ts';

const maxJudged = 10;
/** An account that is guessed at may be slow. */
const maxWaitMs = 15_000;
/** How it is refused to judge a guess. */
const tooMany = 429;
/** As a proxy on this machine names them. */
const networks = { eve: '192.0.2.10', owner: '198.51.100.20' };

const browserFrom = ({ url }: Scene, address: string): Browser =>
  createBrowser({ url: () => url }, { 'x-forwarded-for': address });

async function person(scene: Scene, name: string): Promise<string> {
  const email = `${name}@postern.invalid`;
  const { link } = await invite(scene.db, { email, name, isOperator: false, member: null }, Date.now());
  const browser = browserFrom(scene, '203.0.113.1');
  await browser.get(link!.path);
  await browser.submit('', { password });
  if (!(await isIn(browser))) throw new Error(`${email} is not signed in`);
  return email;
}

const isIn = async (browser: Browser) => (await browser.ask('GET', '/dashboard/account')).status === 200;

/** Sends the form of the page at hand many times at once; the statuses of the answers. */
async function submitAtOnce(browser: Browser, action: string, all: Record<string, string>[]) {
  const { fields } = browser.page().forms.find((form) => form.action.endsWith(action))!;
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const answers = await Promise.all(
    all.map((given) => {
      const body = new URLSearchParams({ ...Object.fromEntries(fields), ...given }).toString();
      return browser.ask('POST', `/dashboard${action}`, { body, headers });
    }),
  );
  return answers.map(({ status }) => status);
}

function judge(statuses: number[]): Verdict {
  const judged = statuses.filter((status) => status !== tooMany).length;
  const strange = statuses.filter((status) => ![tooMany, 422].includes(status));
  return verdict(
    `${judged} of ${statuses.length} judged`,
    [judged > 0, 'none was judged: nothing was measured'],
    [judged <= maxJudged, `${judged} guesses were judged, the limit is ${maxJudged}`],
    [strange.length === 0, `a guess was answered ${strange[0]}`],
  );
}

async function codesAtOnce(scene: Scene): Promise<Verdict> {
  const email = await person(scene, 'second-factor');
  const phone = browserFrom(scene, networks.owner);
  await signIn(phone, email);
  const { html } = await phone.get('/dashboard/account/second-factor');
  const secret = Secret.fromBase32(/data-copy="([A-Z2-7]{32})"/.exec(html)![1]!);
  const right = new TOTP({ secret }).generate();
  await phone.submit('/second-factor', { code: right, current: password });
  const eve = browserFrom(scene, networks.eve);
  await signIn(eve, email);
  // None of them right: codes of the seconds around have six digits too, so these have letters.
  const guesses = Array.from({ length: 90 }, (_, n) => ({ code: `guess${n}` }));
  return judge(await submitAtOnce(eve, '/sign-in/code', guesses));
}

async function passwordsAtOnce(scene: Scene): Promise<Verdict> {
  const email = await person(scene, 'guessed');
  const eve = browserFrom(scene, '192.0.2.30');
  await eve.get('/dashboard/sign-in');
  const guesses = Array.from({ length: 40 }, (_, n) => ({ email, password: `guess number ${n}` }));
  return judge(await submitAtOnce(eve, '/sign-in', guesses));
}

async function lockOut(scene: Scene): Promise<Verdict> {
  const email = await person(scene, 'owner');
  const eve = browserFrom(scene, '192.0.2.40');
  const statuses: number[] = [];
  for (let n = 0; n < 12; n++) statuses.push((await signIn(eve, email, `guess number ${n}`)).status);
  const eveWaits = statuses.includes(tooMany);
  const owner = browserFrom(scene, networks.owner);
  const begun = performance.now();
  const { status } = await signIn(owner, email);
  const ms = Math.round(performance.now() - begun);
  const cameIn = await isIn(owner);
  return verdict(
    `after 12 wrong passwords the owner signs in from another network: ${status} after ${ms} ms`,
    [cameIn, `the owner was answered ${status}`],
    [eveWaits, 'who guesses is not made to wait'],
    [ms <= maxWaitMs, `the owner waited ${ms} ms`],
  );
}

/** Each as often as it can, on a new connection if the server has closed the last one. */
const keyGuessers = 20;
const keyGuessesMs = 5_000;

async function keysBySubmission(scene: Scene): Promise<Verdict> {
  const from = '127.0.0.70';
  const codes = new Map<string, number>();
  const end = Date.now() + keyGuessesMs;
  const guess = async () => {
    const talk = await connectSmtp(scene.ports.submission, { from, tls: true, greeted: false });
    try {
      await talk.reply('220');
      await talk.says('EHLO client.invalid\r\n', '250');
      let code = '';
      // The server closes after 421.
      while (Date.now() < end && code !== '421') {
        code = (await talk.says(`AUTH PLAIN ${plain(`guess-${Math.random()}`)}\r\n`, '')).slice(0, 3);
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    } finally {
      talk.close();
    }
  };
  await Promise.all(
    Array.from({ length: keyGuessers }, async () => {
      while (Date.now() < end) await guess().catch(() => codes.set('lost', (codes.get('lost') ?? 0) + 1));
    }),
  );
  const talk = await connectSmtp(scene.ports.submission, { from, tls: true });
  await talk.says('EHLO client.invalid\r\n', '250');
  const own = await talk.says(`AUTH PLAIN ${plain(scene.key)}\r\n`, '');
  talk.close();
  const judged = codes.get('535') ?? 0;
  return verdict(
    `${JSON.stringify(Object.fromEntries(codes))}; then a valid key: ${own.slice(0, 3)}`,
    [judged > 0, 'none was judged: nothing was measured'],
    [judged <= maxJudged, `${judged} guesses were judged, the limit is ${maxJudged}`],
    [own.startsWith('235'), `a valid key from the same address is answered ${own}`],
  );
}

export const guesses: Attack[] = [
  { item: 8, name: '90 codes of a second factor at once', run: codesAtOnce },
  { item: 8, name: '40 passwords at once', run: passwordsAtOnce },
  { item: 8, name: 'wrong passwords to lock the owner out', run: lockOut },
  { item: 8, name: `wrong keys by submission, ${keyGuessers} at once`, run: keysBySubmission },
];
