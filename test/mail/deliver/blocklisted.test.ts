/** A blocklisting that a reply names is found where people look, also if no blocklist's DNS can be asked. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const reply = '550 5.7.1 Service unavailable, Client host [192.0.2.7] blocked using zen.spamhaus.org';

test('doctor quotes the reply, and the bounce rate says that the addresses are not to blame', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { rcpt: () => reply } }] });
  const batch = (from: number) =>
    Array.from({ length: 60 }, (_, index) => ({
      from: 'app@sender.invalid',
      to: `a${from + index}@there.invalid`,
      subject: 's',
      text: 't',
    }));
  for (const from of [0, 60]) {
    const init = { body: JSON.stringify(batch(from)) };
    t.is((await world.call('POST', '/api/public/email/batch', init)).status, 200);
  }
  const bounced = async () =>
    Number((await world.db('deliveries').where({ status: 'bounced' }).count('* as n').first())!.n);
  await until(async () => (await bounced()) === 120, { what: 'all mail to bounce' });
  const { cli } = cliOf(t, world);
  const read = async (command: string) => JSON.parse((await cli(command, '--json')).stdout.toString());
  // The statistics are counted once a minute.
  await world.clock.advance('1m');

  const rate = async () => {
    const { needs } = await read('status');
    return needs.find(({ cause }: { cause: string }) => cause === 'bounce_rate');
  };
  await until(async () => (await rate()) !== undefined, { what: 'the bounce rate' });
  t.like(await rate(), { command: 'postern doctor' });
  t.regex((await rate()).figure, /120 of the last 120 bounces are refusals because of a blocklist/);

  const named = async () => {
    const { findings } = await read('doctor');
    return findings.find(({ check }: { check: string }) => check === 'blocklists named in replies');
  };
  await until(async () => (await named())?.verdict === 'failure', { what: 'the finding' });
  t.regex((await named()).found, /refused by mx1\.invalid: "550 5\.7\.1 .*zen\.spamhaus\.org"/);
  t.regex((await named()).advice, /192\.0\.2\.7 is on the blocklist zen\.spamhaus\.org/);
});
