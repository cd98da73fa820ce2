/** What commands print, on a terminal and in a pipe; the transcripts are in test/fixtures/cli/. */
import test from 'ava';
import { createCli, startCli } from '#lab/cli.ts';
import { golden } from '#lab/cli-golden.ts';
import { openQueue } from '#lab/database/queue-rows.ts';

const hints: [RegExp, string][] = [[/\bem_(test_)?[\w-]{6}(?![\w-])/g, 'em_xxxxxx']];

const transcripts: Record<string, string> = {
  organizations: 'an organization is renamed, paused, resumed and removed',
  'org-create': 'an organization is made, found by its name, and limited; one that is not there is named',
  'org-pool': 'an IP pool is assigned and shown, with a warning if no node has it',
  keys: 'a key is made, listed without the key, rotated and revoked',
  credits: 'every change of credits is in the ledger',
  suppressions: 'an address is added, found in any letter case, exported and removed',
  'webhook-usage': 'what cannot be a webhook, or selects no events to post again, is named',
  usage:
    'a command or an option that is not known is answered with the nearest one, a bad value with what would be right',
};

for (const [name, promise] of Object.entries(transcripts))
  test(`${promise} (${name}.txt)`, async (t) => {
    const scene = await startCli(t);
    await golden(t, scene, name, hints);
  });

test('bad usage of the queue is named (queue-usage.txt)', async (t) => {
  await golden(t, createCli(t, (await openQueue(t, 'sqlite')).settings), 'queue-usage');
});
