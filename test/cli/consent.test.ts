/** Destructive commands say what they affect, and ask on a terminal. */
import { PassThrough } from 'node:stream';
import test from 'ava';
import { type Consent, isWanted } from '#cli/args/consent.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { cliOf } from '#lab/cli.ts';
import { startWorld } from '#lab/scenes/world.ts';

async function asked(answer: string | null, consent: Consent, isForGood = false) {
  const [stdin, stderr] = [new PassThrough(), new PassThrough()];
  for (const stream of [stdin, stderr]) Object.assign(stream, { isTTY: answer !== null });
  if (answer !== null) stdin.write(`${answer}\n`);
  const printed: object[] = [];
  const context = {
    process: { stdin, stderr },
    out: { print: (document: object) => printed.push(document) },
  };
  const effect = { question: 'delete it', fields: {}, document: { id: 1 }, isForGood };
  const verdict = await isWanted(context as unknown as CommandContext, effect, consent).catch(
    (error: Error) => error.message,
  );
  return { verdict, printed, shown: String(stderr.read() ?? '') };
}

test('a terminal is asked, and only a yes is a yes', async (t) => {
  for (const yes of ['y', 'yes', ' Y ']) t.is((await asked(yes, {})).verdict, true, yes);
  for (const no of ['', 'n', 'no', 'yesterday'])
    t.is((await asked(no, {})).verdict, 'nothing was changed', no);
  t.regex((await asked('y', {})).shown, /delete it\? \[y\/N\]/);
  t.like(await asked('n', { yes: true }), { verdict: true, shown: '' });
});

test('a script is not asked, and gives --yes for what cannot be undone', async (t) => {
  t.is((await asked(null, {})).verdict, true);
  t.regex(String((await asked(null, {}, true)).verdict), /^delete it\? Nothing was changed; add --yes/);
  t.is((await asked(null, { yes: true }, true)).verdict, true);
});

test('--dry-run shows and changes nothing, whatever else is given', async (t) => {
  const { verdict, printed } = await asked('y', { yes: true, dryRun: true });
  t.is(verdict, false);
  t.deepEqual(printed, [{ dryRun: true, id: 1 }]);
});

test('--dry-run of each destructive command leaves everything as it is', async (t) => {
  const world = await startWorld(t);
  const { json } = cliOf(t, world);
  await world.send({ to: 'ann@there.invalid', scheduledAt: new Date(Date.now() + 3_600_000).toISOString() });
  const [{ id: keyId }] = await json('key list --org Tenant');
  const { id: webhookId } = await json('webhook add https://there.invalid/ --org Tenant');
  const look = async () => [
    await world.db('deliveries').select('status'),
    await world.db('api_keys').select('revoked_at'),
    await world.db('webhooks').select('id'),
    await world.db('domains').select('name'),
  ];
  const before = await look();
  t.like(await json(`key revoke ${keyId} --dry-run`), { dryRun: true, id: keyId });
  t.like(await json(`webhook remove ${webhookId} --dry-run`), { dryRun: true, id: webhookId, open: 0 });
  t.like(await json('domain remove sender.invalid --org Tenant --dry-run'), {
    dryRun: true,
    name: 'sender.invalid',
  });
  const canceled = await json('queue cancel --org Tenant --reason test --dry-run');
  t.like(canceled, { dryRun: true, order: 'cancel', moved: 1, sending: 0 });
  t.deepEqual(await look(), before);
});
