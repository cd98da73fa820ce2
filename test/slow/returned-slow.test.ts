/** Mail to the addresses that anybody may write to, which costs seconds to read. */
import test from 'ava';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';
import { until } from '#lab/until.ts';

test('mail to the open addresses that takes long to read keeps no bounce waiting', async (t) => {
  const world = await startReturns(t);
  const { emailId, path } = await world.delivered();
  // Its lines are read one by one, which ends after two seconds.
  const head = 'Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n';
  const slow = `${head}${`${'=3D'.repeat(43)}\r\n`.repeat(30_000)}`;
  let read = 0;
  const report = async () => {
    await world.comesBack('tls-reports@postern.invalid', slow, 'someone@there.invalid');
    read += 1;
  };
  // Those that are not read when the test ends are refused by the closing world.
  for (let n = 0; n < 4; n++) report().catch(() => {});
  await until(() => read === 1);
  await world.comesBack(path, goldenMail('qmail-remote', path));
  t.is((await world.get(emailId)).status, 'bounced');
  t.true(read < 4, 'other reports are still being read');
  const [letter] = await world.db('inbound_mails').orderBy('id').select('kind', 'recipient');
  t.deepEqual(letter, { kind: 'letter', recipient: 'tls-reports@postern.invalid' });
});
