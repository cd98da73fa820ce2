/** Every kind of TLS host gets its mail, and encrypted if there is any way to (RFC 7435). */
import test, { type ExecutionContext } from 'ava';
import { type MxOptions, startMx } from '#lab/mx/mx.ts';
import { type TlsHost, tlsHosts } from '#lab/mx/tls-hosts.ts';
import { memory, said, startDeliverer } from '#lab/scenes/deliverer.ts';
import { until } from '#lab/until.ts';
import type { TlsFailure } from '#mail/deliver/smtp-out/tls-failure.ts';

/** For those that stay silent. */
const haste = { ehlo: 3000, tls: 3000 };

async function startHost(t: ExecutionContext, options: MxOptions, timeouts = {}) {
  const mx = await startMx({ host: '127.0.0.2', ...options });
  t.teardown(mx.close);
  const learned = memory<TlsFailure>();
  const deliverer = startDeliverer(t, { port: mx.port, memory: learned, timeouts });
  return { mx, learned, deliverer };
}

async function judge(t: ExecutionContext, { what, expected, with: pattern, mx: options }: TlsHost) {
  const { mx, deliverer } = await startHost(t, options, /silent/.test(what) ? haste : {});
  const attempt = await deliverer.deliver();
  const { tls } = attempt;
  const report = `${what}\n${said(attempt)}`;
  t.is(attempt.verdict.outcome, 'delivered', report);
  t.is(tls ? 'encrypted' : 'clear', expected, report);
  t.is(mx.messages[0]?.tls, tls !== null, report);
  if (tls && pattern) t.regex([tls.protocol, tls.cipher, tls.group].join(' ').trim(), pattern, report);
}

const ofWhat = (text: string) => tlsHosts.find(({ what }) => what === text)!.mx;

/** Nothing of the mail was said. */
const heardNothing = (commands: string[]) => !commands.some((line) => /^(MAIL|RCPT|DATA)/.test(line));

const lesser = [
  ...['TLS 1.0', 'TLS 1.2, 1024-bit DH', 'TLS 1.2, no certificate', 'STARTTLS: 421', 'STARTTLS: closes'],
  ...['handshake: resets', 'first command over TLS: 421', 'first command over TLS: nonsense'],
];

test('where TLS is demanded, neither outdated TLS nor clear text will do', async (t) => {
  const judged = lesser.map(async (what) => {
    const { mx, deliverer } = await startHost(t, ofWhat(what));
    const attempt = await deliverer.deliver({ tls: 'encrypted' });
    t.like(attempt.verdict, { outcome: 'deferred', category: 'tls', rule: 'tls-required' }, said(attempt));
    t.is(mx.sessions.length, 1, what);
    t.true(heardNothing(mx.sessions.flatMap(({ commands }) => commands)), what);
  });
  await Promise.all(judged);
});

test('a connection with outdated TLS carries no mail that demands TLS', async (t) => {
  const { mx, deliverer } = await startHost(t, ofWhat('TLS 1.0'));
  t.is((await deliverer.deliver()).tls?.protocol, 'TLSv1');
  await until(() => deliverer.pool.stats('mx1.invalid').idle === 1, { what: 'the connection to rest' });
  t.is((await deliverer.deliver({ tls: 'encrypted' })).verdict.rule, 'tls-required');
  t.is(mx.messages.length, 1);
});

test('what worked is remembered: outdated TLS, or none; a failure that may pass, for an hour only', async (t) => {
  const hour = 3_600_000;
  const memories: [what: string, ttl: number, legacy: true | undefined][] = [
    ['TLS 1.0', 24 * hour, true],
    ['TLS 1.2, 1024-bit DH', 24 * hour, true],
    ['breaks off at a long ClientHello', hour, true],
    ['handshake: rubbish', 24 * hour, undefined],
    ['STARTTLS: 421', hour, undefined],
    ['first command over TLS: closes', hour, undefined],
  ];
  const judged = memories.map(async ([what, ttl, legacy]) => {
    // What follows the reply ends the connection, so that each mail needs one of its own.
    const { script = {}, ...options } = ofWhat(what);
    const twice = { ...script, dot: () => ({ raw: '250 2.0.0 taken\r\n250 twice\r\n' }) };
    const { mx, learned, deliverer } = await startHost(t, { ...options, script: twice });
    await deliverer.deliver();
    t.like(learned.values.get('mx1.invalid'), { legacy }, what);
    t.is(learned.ttls.get('mx1.invalid'), ttl, what);
    const before = mx.sessions.length;
    const second = await deliverer.deliver();
    t.is(mx.sessions.length - before, 1, said(second));
    t.is(second.tls !== null, legacy === true, said(second));
  });
  await Promise.all(judged);
});

test('a host that takes nothing in clear is offered TLS again', async (t) => {
  let isBusy = true;
  const { mx, deliverer } = await startHost(t, {
    script: {
      starttls: () => (isBusy ? '421 4.3.2 too busy' : undefined),
      mail: ({ session }) => (session.tls ? undefined : '530 5.7.0 Must issue a STARTTLS command first'),
    },
  });
  t.like((await deliverer.deliver()).verdict, { outcome: 'deferred', category: 'tls' });
  isBusy = false;
  const attempt = await deliverer.deliver();
  t.is(attempt.verdict.outcome, 'delivered', said(attempt));
  t.true(mx.messages[0]!.tls);
});

test('LIMITS: a connection carries as many mails as the host takes (RFC 9422)', async (t) => {
  const extensions = ['PIPELINING', 'LIMITS RCPTMAX=1 MAILMAX=2 NEWMAX=7'];
  const { mx, deliverer } = await startHost(t, { extensions });
  for (let n = 1; n <= 5; n++) {
    t.is((await deliverer.deliver()).verdict.outcome, 'delivered');
    await until(() => deliverer.pool.stats('mx1.invalid').idle === 1 || n % 2 === 0, { what: 'rest' });
  }
  const mails = mx.sessions.map(({ commands }) => commands.filter((line) => line.startsWith('MAIL')).length);
  t.deepEqual(mails, [2, 2, 1]);
});

test('each kind of host gets its mail, over TLS if it has any', async (t) => {
  await Promise.all(tlsHosts.map((host) => judge(t, host)));
});
