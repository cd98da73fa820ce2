/** What the commands for organizations and test keys print, on a terminal and in a pipe. */
import test from 'ava';
import { startCli } from '../lab/cli.ts';
import { golden } from '../lab/cli-golden.ts';

test('an organization is renamed, paused, resumed and removed; a test key', async (t) => {
  const scene = await startCli(t);
  await scene.json('org create --name Other');
  await golden(
    t,
    scene,
    'organizations',
    [
      'org rename Acme "Acme Ltd"',
      'org rename "Acme Ltd" Other',
      'key create --org "Acme Ltd" --label suite --scope email:send --test',
      'org pause "Acme Ltd" --reason "unpaid bills"',
      'org resume "Acme Ltd" --reason paid',
      'org remove "Acme Ltd" --dry-run',
      'org remove "Acme Ltd" --yes',
    ],
    [[/em_test_[\w-]{43}/g, `em_test_${'x'.repeat(43)}`]],
  );
});
