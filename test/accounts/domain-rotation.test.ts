/**
 * A domain's DKIM key is replaced without an unsigned mail: the new one signs from the look that finds its record, the
 * record of the old one stays until nothing waits that it has signed. Judged by mailauth's verifier.
 */
import test from 'ava';
import { findDomain } from '#accounts/rows/domains-table.ts';
import { cliOf } from '#lab/cli.ts';
import { verifyDkim } from '#lab/dkim.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

interface DnsRecord {
  name: string;
  value: string;
  note: string;
}

const name = 'sender.invalid';

/** Selectors and results of the signatures that the next mail carries. */
async function signatures(world: World) {
  const { messages } = world.mx[0]!;
  const before = messages.length;
  const { status } = await world.send({ to: 'ann@there.invalid', subject: `${before}` });
  if (status !== 200) throw new Error(`answered ${status}`);
  await until(() => messages.length > before, { what: 'the mail to arrive' });
  const verdicts = await verifyDkim(messages.at(-1)!.raw, world.dns);
  return verdicts.map(({ selector, result }) => `${selector} ${result}`).sort();
}

const domainOf = async ({ db }: World) =>
  (await findDomain(db, (await db('organizations').first('id')).id, name))!;

const publish = ({ dns }: World, ...records: DnsRecord[]) => {
  for (const record of records) dns.set({ [record.name]: { TXT: [record.value] } });
};

/** A minute later, when the server looks again. */
const later = async ({ clock }: World, ms = 70_000) => clock.advance(ms);

test('a new DKIM key is published, is seen in the DNS, signs, and the old one is retired and removed', async (t) => {
  const world = await startWorld(t);
  const { json, refusal, cli } = cliOf(t, world);
  const old = (await domainOf(world)).dkimSelector;
  t.deepEqual(await signatures(world), [`${old} pass`]);

  const rotated = await json(`domain rotate ${name} --org Tenant`);
  const next: DnsRecord = rotated.records[1];
  const selector = next.name.split('.')[0]!;
  t.deepEqual(
    rotated.keys.map((key: { selector: string; status: string }) => [key.selector, key.status]),
    [
      [old, 'signing'],
      [selector, 'pending'],
    ],
  );
  t.regex(await refusal(1, `domain rotate ${name} --org Tenant`), /already has a pending key/);
  await later(world);
  t.deepEqual(await signatures(world), [`${old} pass`], 'not before it is published');

  publish(world, next);
  await until(
    async () => {
      await later(world);
      return (await domainOf(world)).dkimSelector === selector;
    },
    { what: 'the server to find it' },
  );
  await until(async () => (await signatures(world))[0] === `${selector} pass`, {
    what: 'mail to be signed with it',
  });
  const { domain, records } = (await world.call('GET', `/api/public/domains/${name}`)).body;
  t.deepEqual(
    domain.keys.map((key: { selector: string; status: string }) => [key.selector, key.status]),
    [
      [selector, 'signing'],
      [old, 'retired'],
    ],
  );
  t.regex(records[1].note, /^Retired\. Keep this record until 2/);
  t.is((await world.db('dkim_keys').first('private_key')).private_key, null, 'nobody has the old key');

  // Not forgotten while its record is needed, or there.
  world.dns.set({ [`${old}._domainkey.${name}`]: null });
  t.is((await cli(`domain verify ${name} --org Tenant`)).code, 0);
  t.is((await domainOf(world)).otherKeys.length, 1);
  await until(
    async () => {
      await later(world, 49 * 3_600_000);
      return (await domainOf(world)).otherKeys.length === 0;
    },
    { what: 'the old key to be forgotten' },
  );
});

test('a domain has a second signature by Ed25519, whose key is rotated beside that of RSA', async (t) => {
  const world = await startWorld(t);
  const { json, refusal, cli } = cliOf(t, world);
  const rsa = (await domainOf(world)).dkimSelector;
  const [, record] = (await json(`domain ed25519 ${name} on --org Tenant`)).records;
  t.regex(record.value, /^v=DKIM1; k=ed25519; p=[\w+/]{43}=$/);
  const first = record.name.split('.')[0];
  t.deepEqual(await signatures(world), [`${rsa} pass`]);

  publish(world, record);
  const looked = await cli(`domain verify ${name} --org Tenant --json`);
  t.is(looked.code, 0, 'a look signs at once');
  const both = [`${first} pass`, `${rsa} pass`].sort();
  await until(async () => (await signatures(world)).join() === both.join(), { what: 'two signatures' });
  t.regex(await refusal(1, `domain ed25519 ${name} on --org Tenant`), /already has an Ed25519 key/);

  const rotated = await json(`domain rotate ${name} --org Tenant`);
  const pending = rotated.keys.filter((key: { status: string }) => key.status === 'pending');
  t.deepEqual(pending.map((key: { algorithm: string }) => key.algorithm).sort(), ['ed25519', 'rsa']);
  publish(world, ...rotated.records);
  t.is((await cli(`domain verify ${name} --org Tenant`)).code, 0);
  const anew = pending.map(({ selector }: { selector: string }) => `${selector} pass`).sort();
  await until(async () => (await signatures(world)).join() === anew.join(), { what: 'two new ones' });

  await json(`domain ed25519 ${name} off --org Tenant`);
  await until(async () => (await signatures(world)).length === 1, { what: 'one signature' });
  t.regex(await refusal(1, `domain ed25519 ${name} off --org Tenant`), /has no Ed25519 key/);
});

test('a new key that is not wanted is dropped; a look-up that fails decides nothing', async (t) => {
  const world = await startWorld(t);
  const { json, refusal, cli } = cliOf(t, world);
  const old = (await domainOf(world)).dkimSelector;
  const [, record] = (await json(`domain rotate ${name} --org Tenant`)).records;
  world.dns.set({ [record.name]: 'SERVFAIL' });
  t.is((await cli(`domain verify ${name} --org Tenant`)).code, 0);
  t.deepEqual(
    (await domainOf(world)).otherKeys.map(({ status }) => status),
    ['pending'],
  );
  t.is((await json(`domain rotate ${name} --org Tenant --cancel`)).keys.length, 1);
  t.regex(await refusal(1, `domain rotate ${name} --org Tenant --cancel`), /has no pending DKIM key/);
  publish(world, record);
  await later(world);
  t.deepEqual(await signatures(world), [`${old} pass`]);
});
