/** The doctor's page: a real look at a machine on loopback, begun by an operator, one at a time. */
import ava, { type ExecutionContext } from 'ava';
import { invite } from '#accounts/people/people.ts';
import { type Browser, createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { dkimDomain, startDoctorWorld } from '#lab/scenes/doctor-world.ts';
import { until } from '#lab/until.ts';
import { createLog } from '#platform/base/log.ts';
import { start } from '#server/start.ts';

/** Each world is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

const path = '/dashboard/doctor';

/** Postern on a machine where all is well, and an operator; `looks` counts what is begun, `hold` keeps it from its end. */
async function arrive(t: ExecutionContext) {
  const machine = await startDoctorWorld(t);
  await machine.stopServer();
  // The doctor looks at the machine's port of 127.0.0.1; Postern's own is beside it, where nobody else listens.
  const config = { ...machine.config, smtpHost: '127.0.0.9', submissionPort: null };
  const desk = { looks: 0, hold: Promise.resolve() };
  const freeBytes = async () => {
    desk.looks++;
    await desk.hold;
    return 50 * 1024 ** 3;
  };
  const surroundings = { ...machine.surroundings, freeBytes };
  const postern = await start(config, {
    surroundings,
    log: createLog(config),
    passwordCost: { N: 2, r: 1, p: 1 },
  });
  t.teardown(() => postern.stop());
  const world = { ...machine, url: () => postern.url, setUpUrl: () => postern.setUpUrl };
  const operator = createBrowser(world);
  await setUp(operator, world);
  return { world, desk, operator };
}

/** Keeps what is begun from its end, until it is let go. */
function held(desk: { hold: Promise<void> }): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  desk.hold = promise;
  return resolve;
}

/** As the page asks while it goes on. */
const poll = async (browser: Browser) =>
  (await browser.ask('GET', path, { headers: { 'hx-request': 'true' } })).html;

async function look(browser: Browser, domain = '') {
  await browser.get(path);
  await browser.submit(path, { domain });
  await until(async () => !/hx-trigger/.test(await poll(browser)), { what: 'the look to end' });
  return browser.get(path);
}

test('all is well; then one thing is broken, and is named with what to do and the record to set', async (t) => {
  const { world, desk, operator } = await arrive(t);
  t.regex((await operator.get(path)).text, /Not run yet/);
  t.is(desk.looks, 0, 'nobody asked');
  const well = await look(operator);
  t.regex(well.text, /Ready to send\. \d+ OK 1 unknown checked/);
  t.regex(well.text, /OK disk space 50 GiB free/);
  t.notRegex(well.text, /What to do/);

  world.dns.set({ '1.0.0.127.in-addr.arpa': null });
  const ill = await look(operator);
  t.regex(ill.text, /Not ready to send: .* 1 failure \d+ OK 1 unknown checked/);
  t.regex(ill.text, /Failure PTR no PTR record What to do: /);
  t.is(ill.text.match(/What to do/g)!.length, 1);
  t.regex(ill.text, /PTR 1\.0\.0\.127\.in-addr\.arpa mx1\.invalid/);
  t.is((await operator.get(path)).text, ill.text, 'it stays until the next');
  t.is(desk.looks, 2);
});

test('while one goes on it says how far it has come, and a second is not begun', async (t) => {
  const { desk, operator } = await arrive(t);
  const letGo = held(desk);
  t.teardown(letGo);
  await operator.get(path);
  const begun = await operator.submit(path, { domain: dkimDomain });
  t.is(begun.path, path);
  t.regex(begun.text, /Checking sender\.invalid…/);
  await until(async () => /waiting for disk space of this server/.test(await poll(operator)));
  t.regex(await poll(operator), /^\s*<div [^>]*id="doctor-result" hx-get="\/dashboard\/doctor"/);

  await operator.get(path);
  const second = await operator.submit(path, { domain: 'other.invalid' });
  t.regex(second.text, /Checking sender\.invalid…/);
  t.is(desk.looks, 1);
  letGo();
  await until(async () => !/hx-trigger/.test(await poll(operator)));
  const ended = await operator.get(path);
  t.regex(ended.text, /Ready to send\..* checked for sender\.invalid/);
  t.notRegex(ended.text, /other\.invalid/);
  t.is(desk.looks, 1);
});

test('what is no domain is refused, and nobody but an operator looks or begins', async (t) => {
  const { world, desk, operator } = await arrive(t);
  await operator.get(path);
  const refused = await operator.submit(path, { domain: 'not a domain' });
  t.is(refused.status, 422);
  t.regex(refused.text, /Enter a domain name, such as example\.com/);
  t.regex(refused.html, /value="not a domain"/);

  const { id: orgId } = await world.db('organizations').first('id');
  const person = { email: 'owner@postern.invalid', name: 'Owner', isOperator: false };
  const { link } = await invite(world.db, { ...person, member: { orgId, role: 'owner' } }, Date.now());
  const owner = createBrowser(world);
  await owner.get(link!.path);
  await owner.submit('', { password });
  t.false((await owner.get('/dashboard/account')).html.includes(path), 'no link leads there');
  const _csrf = owner.csrf();
  t.is((await owner.get(path)).status, 403);
  t.is((await owner.post(path, { _csrf })).status, 403);

  const stranger = createBrowser(world);
  for (const method of ['GET', 'POST']) {
    const answer = await stranger.ask(method, path);
    t.is(answer.status, 303, method);
    t.regex(answer.headers.get('location')!, /^\/dashboard\/sign-in/);
  }
  t.is(desk.looks, 0);
});
