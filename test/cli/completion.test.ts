/** What completion offers, and that it never fails. test/slow/completion-shells.test.ts has the shells. */
import test from 'ava';
import { startNames } from '#lab/scenes/cli-names.ts';

test('offers commands, options, values and live names, and never fails', async (t) => {
  const { cli, json, keyId } = await startNames(t);
  const offered = async (...words: string[]) => {
    const { code, stdout, stderr } = await cli('complete --', ...words);
    t.deepEqual([code, stderr], [0, '']);
    return stdout
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split('\t')[0]);
  };
  t.deepEqual(await offered('que'), ['queue']);
  t.true((await offered('')).includes('send'));
  t.deepEqual(await offered('queue', 'sl'), ['slow']);
  t.deepEqual(await offered('queue', 'slow', '--p'), ['--per-minute']);
  t.deepEqual(await offered('queue', 'list', '--status', 'de'), ['deferred', 'delivered']);
  t.deepEqual(await offered('logs', '--status', 'bounced', '--status', 'de'), ['delivered', 'deferred']);
  t.deepEqual(await offered('queue', 'rule', 'x.example', ''), ['hold', 'bounce', 'none']);
  t.deepEqual(await offered('webhook', 'add', 'https://x', '--event', 'email.bou'), ['email.bounced']);
  t.deepEqual(await offered('queue', 'hold', '--js'), ['--json']);
  t.deepEqual(await offered('domain', 'list', '--org', ''), ['Acme', 'Two Words']);
  t.deepEqual(await offered('domain', 'show', ''), ['acme.example', 'words.example']);
  t.deepEqual(await offered('domain', 'show', '--org', 'Two Words', ''), ['words.example']);
  t.deepEqual(await offered('key', 'revoke', ''), [keyId]);
  t.deepEqual(await offered('org', 'show', 'A'), ['Acme']);
  t.deepEqual(await offered('suppression', 'import', ''), [':files']);
  t.deepEqual(await offered('completion', 'z'), ['zsh']);
  for (const words of [
    ['nonsense', ''],
    ['queue', 'nonsense', ''],
    ['queue', 'rules', ''],
    ['--help', ''],
    ['domain', 'show', '--org', 'Nobody', ''],
  ])
    t.deepEqual(await offered(...words), words[0] === '--help' ? await offered('') : [], words.join(' '));
  for (const name of ['A\u202Eb', 'A\u2066x', 'A\u200fy']) await json('org create --name', name);
  t.deepEqual(await offered('org', 'show', 'A'), ['Acme'], 'no name that a terminal would show as another');
  const lost = await cli('complete -- org show --org', '');
  t.is(lost.code, 0);
});
