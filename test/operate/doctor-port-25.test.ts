/** `postern doctor` on the way out, from each address and family: when one thing alone is wrong, exactly that is named. */
import ava from 'ava';
import { startSilent } from '#lab/mx/silent.ts';
import { names } from '#lab/scenes/doctor-names.ts';
import { hostname, startDoctorWorld } from '#lab/scenes/doctor-world.ts';
import { checkPort25 } from '#operate/doctor/checks/port-25.ts';
import { isSameAddress, reversed, reverseName } from '#platform/values/reverse-name.ts';

/** Each world is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

const machine = 'this server';

const returnMx = ['10 back.bounces.invalid'];

const ofPort = { check: 'port 25', subject: machine } as const;

names('port 25 leads nowhere', ({ peers }) => Promise.all(peers.map((peer) => peer.close())).then(() => {}), {
  ...ofPort,
  verdict: 'failure',
  advice: /ask the provider of this server/,
  found: /^in\.big\.invalid \(127\.0\.0\.2\) refused the connection; in\.large\.invalid/,
});

names('one host cannot be reached', ({ peers }) => peers[1]!.close(), {
  ...ofPort,
  verdict: 'warning',
  found: /^in\.big\.invalid greeted, but in\.large\.invalid \(127\.0\.0\.3\) refused the connection$/,
});

names(
  'all hosts turn us away',
  ({ peers }) => {
    for (const peer of peers) peer.script = { greeting: () => '554 5.7.1 no thanks' };
  },
  { ...ofPort, verdict: 'failure', found: /said "554 5\.7\.1 no thanks"/, advice: /blocklists/ },
);

test('nothing could be probed, but the queue knows that the port is shut', (t) => {
  const origin = { from: undefined, family: 4, name: hostname } as const;
  t.is(checkPort25(origin, []).verdict, 'skipped');
  t.like(checkPort25(origin, [], 3), { verdict: 'failure' });
  t.regex(checkPort25(origin, [], 3).found, /all 3 hosts/);
});

test('packets to port 25 are dropped: it takes no longer than the patience for a connection', async (t) => {
  const { peers, surroundings, changed } = await startDoctorWorld(t);
  const { port } = peers[0]!;
  await Promise.all(peers.map((peer) => peer.close()));
  const silent = await startSilent(
    peers.map(({ host }) => host),
    port,
  );
  t.teardown(silent.close);
  const timeouts = { ...surroundings.timeouts!, connect: 300 };
  const [finding, ...more] = await changed({ surroundings: { timeouts } });
  t.deepEqual(more, []);
  t.like(finding, { ...ofPort, verdict: 'failure' });
  t.regex(finding!.found, /did not answer within 0\.3 s/);
});

test('each source address is looked at, under its own name', async (t) => {
  const world = await startDoctorWorld(t);
  const mtaSources = [
    { address: '127.0.0.1', name: null, pool: 'default' },
    { address: '127.0.0.77', name: 'mx77.invalid', pool: 'default' },
  ];
  for (const peer of world.peers)
    peer.script = { ehlo: ({ session }) => `250 at your service, [${session.from}]` };
  world.dns.set({
    'mx77.invalid': { A: ['127.0.0.77'] },
    '77.0.0.127.in-addr.arpa': { PTR: ['mx77.invalid'] },
    'bounces.invalid': { MX: ['10 back.bounces.invalid'], TXT: ['v=spf1 ip4:127.0.0.0/24 -all'] },
  });
  const good = await world.examineNow({ config: { mtaSources } });
  t.deepEqual(
    good.filter(({ verdict }) => verdict !== 'ok'),
    [],
  );
  const of77 = good.filter(({ subject }) => ['127.0.0.77', 'mx77.invalid'].includes(subject));
  t.deepEqual(
    of77.map(({ check }) => check),
    ['port 25', 'hostname', 'address', 'PTR', 'Spamhaus ZEN', 'SpamCop', 'Barracuda'],
  );
  world.dns.set({ '77.0.0.127.zen.spamhaus.org': { A: ['127.0.0.4'] } });
  const bad = await world.examineNow({ config: { mtaSources } });
  t.deepEqual(
    bad.filter(({ verdict }) => verdict !== 'ok').map(({ check, subject }) => [check, subject]),
    [['Spamhaus ZEN', '127.0.0.77']],
  );
});

test('IPv6: seen from outside, its PTR, AAAA, blocklists and SPF', async (t) => {
  const world = await startDoctorWorld(t);
  const [six, four] = world.peers;
  const address = '2001:db8::567:89ab';
  const nibbles = 'b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2';
  six!.script = { ehlo: () => `250 at your service, [IPv6:${address}]` };
  world.dns.set({
    'in.big.invalid': { AAAA: [`::ffff:${six!.host}`] },
    'in.large.invalid': { A: [four!.host] },
    [hostname]: { A: ['127.0.0.1'], AAAA: ['2001:0DB8::0567:89AB'] },
    [`${nibbles}.ip6.arpa`]: { PTR: [hostname] },
    'bounces.invalid': { MX: returnMx, TXT: ['v=spf1 a:mx1.invalid -all'] },
  });
  const good = await world.examineNow();
  t.deepEqual(
    good.filter(({ verdict }) => verdict !== 'ok'),
    [],
  );
  const ofAddress = good.filter(({ subject }) => subject === address).map(({ check }) => check);
  t.deepEqual(ofAddress, ['PTR', 'Spamhaus ZEN']);
  world.dns.set({
    [hostname]: { A: ['127.0.0.1'] },
    [`${nibbles}.ip6.arpa`]: null,
    [`${nibbles}.zen.spamhaus.org`]: { A: ['127.0.0.3'] },
  });
  const bad = (await world.examineNow()).filter(({ verdict }) => verdict !== 'ok');
  const wrong = bad.map(({ check, subject, records }) => [
    check,
    subject,
    ...records.map(({ value }) => value),
  ]);
  t.deepEqual(wrong, [
    ['address', hostname, address],
    ['PTR', address, hostname],
    ['Spamhaus ZEN', address],
    ['SPF', 'bounces.invalid', `v=spf1 ip6:${address} a:mx1.invalid -all`],
  ]);
});

test('port 25 is shut for IPv6 alone: mail goes by IPv4', async (t) => {
  const world = await startDoctorWorld(t);
  world.dns.set({ 'in.big.invalid': { A: ['127.0.0.2'], AAAA: ['::ffff:127.0.8.25'] } });
  const [finding, ...more] = await world.changed();
  t.deepEqual(more, []);
  t.like(finding, { check: 'port 25 by IPv6', subject: machine, verdict: 'warning' });
  t.regex(finding!.advice!, /^mail is sent over IPv4/);
});

test('addresses turned round, as RFC 3596 has it', (t) => {
  const nibbles = 'b.a.9.8.7.6.5.0.4.0.0.0.3.0.0.0.2.0.0.0.1.0.0.0.0.0.0.0.1.2.3.4';
  t.is(reverseName('4321:0:1:2:3:4:567:89ab'), `${nibbles}.ip6.arpa`);
  t.is(reverseName('192.0.2.1'), '1.2.0.192.in-addr.arpa');
  t.is(reversed('::'), Array(32).fill('0').join('.'));
  t.true(isSameAddress('::ffff:127.0.0.1', '::FFFF:7f00:1'));
  t.true(isSameAddress('2001:db8::1', '2001:0db8:0:0::0001'));
  t.false(isSameAddress('::1', '::2'));
  t.false(isSameAddress('127.0.0.1', '::ffff:127.0.0.1'));
});

test('a source address that is not this server’s', async (t) => {
  const world = await startDoctorWorld(t);
  const findings = await world.examineNow({
    config: { mtaSources: [{ address: '192.0.2.77', name: null, pool: 'default' }] },
  });
  const finding = findings.find(({ check }) => check === 'port 25')!;
  t.like(finding, {
    subject: '192.0.2.77',
    verdict: 'failure',
    found: '192.0.2.77 is not an address of this server',
  });
});
