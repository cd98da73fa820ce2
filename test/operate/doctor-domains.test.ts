/** `postern doctor` on the way back and on sender domains: when one thing alone is wrong, exactly that is named. */
import ava, { type ExecutionContext } from 'ava';
import { setDomainStatus } from '#accounts/rows/domains-table.ts';
import { startMx } from '#lab/mx/mx.ts';
import { type Change, names } from '#lab/scenes/doctor-names.ts';
import { dkimDomain, startDoctorWorld } from '#lab/scenes/doctor-world.ts';

/** Each world is a few servers; many of them at once would keep each other waiting. */
const test = ava.serial;

const ofReturned = { check: 'returned mail', subject: 'bounces.invalid' } as const;

names('nothing takes returned mail', ({ returned }) => returned.close(), {
  ...ofReturned,
  verdict: 'failure',
  found: /nothing answers on this server either$/,
  advice: /^start Postern/,
});

names('another server takes returned mail', ({ peers }, t) => takenPort(t, peers[0]!.port), {
  ...ofReturned,
  verdict: 'failure',
  found: /^port \d+ of 127\.0\.0\.1 greets as another server: "220 other\.invalid/,
  advice: /^stop the other/,
});

async function takenPort(t: ExecutionContext, port: number): Promise<Change> {
  const other = await startMx({ host: '127.0.0.1', port, hostname: 'other.invalid' });
  t.teardown(() => other.close());
  return { surroundings: { returnPort: port } };
}

names('a firewall before returned mail', () => ({ surroundings: { returnPort: 9 } }), {
  ...ofReturned,
  verdict: 'warning',
  advice: /^open port 9 in the firewall/,
  found: /^this server answers at port \d+ here, but 127\.0\.0\.1 refused the connection$/,
});

test('where returned mail is not accepted, the doctor warns', async (t) => {
  const { changed } = await startDoctorWorld(t);
  const [finding, reports, ...more] = await changed({ config: { inboundPort: null } });
  t.deepEqual(more, []);
  t.like(finding, { ...ofReturned, verdict: 'warning', advice: 'set POSTERN_INBOUND_PORT=25' });
  // Reports come in there too: nobody asks for their record now.
  t.like(reports, { check: 'DMARC reports', verdict: 'ok' });
});

test('the DKIM key is not there, is another, or is not told', async (t) => {
  const world = await startDoctorWorld(t);
  const { dkimSelector, dkimPublicKey } = world.domain;
  const name = `${dkimSelector}._domainkey.${dkimDomain}`;
  const record = { type: 'TXT', name, value: `v=DKIM1; k=rsa; p=${dkimPublicKey}` };
  const ofDkim = { check: 'DKIM', subject: dkimDomain };
  for (const [entry, verdict, found] of [
    [null, 'failure', /^no TXT record at pstn/],
    [
      { TXT: ['v=DKIM1; k=rsa; p=AAAA'] },
      'failure',
      /has a different value: v=DKIM1; k=rsa; p=AAAA\. There is a DKIM record, but with a different key/,
    ],
    ['SERVFAIL', 'warning', /no answer for pstn.*SERVFAIL/],
  ] as const) {
    world.dns.set({ [record.name]: entry as never });
    const [finding, ...more] = await world.changed();
    t.deepEqual(more, []);
    t.like(finding, { ...ofDkim, verdict });
    t.regex(finding!.found, found);
    t.deepEqual(finding!.records, verdict === 'failure' ? [record] : []);
  }
});

test('a domain that is named: verified or not, and one that is not registered', async (t) => {
  const { db, domain, examineNow, changed } = await startDoctorWorld(t);
  await setDomainStatus(db, domain.id, 'pending', Date.now());
  t.deepEqual(await changed({ domain: dkimDomain }), []);
  const none = (await examineNow()).at(-1);
  t.like(none, { check: 'registered', subject: 'sender domains', verdict: 'warning' });
  const stranger = (await examineNow({ domain: 'stranger.invalid' })).at(-1);
  t.like(stranger, { check: 'registered', subject: 'stranger.invalid', verdict: 'failure' });
  t.regex(stranger!.advice!, /^postern domain add stranger\.invalid/);
});
