/** `domain publish`, `domain add --publish`, `doctor --fix` and `domain verify --wait`, at a name server that takes updates. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startCli } from '#lab/cli.ts';
import { startDns } from '#lab/dns/dns.ts';
import { startUpdateServer } from '#lab/dns/update-server.ts';
import { temporaryDirectory } from '#lab/evidence.ts';

const secret = Buffer.from('a secret that is never shown').toString('base64');

async function start(t: ExecutionContext, records: string[] = []) {
  const dns = await startDns({});
  t.teardown(() => dns.close());
  const key = { name: 'postern', secret: Buffer.from(secret, 'base64') };
  const server = await startUpdateServer({ zone: 'example.invalid', key, records });
  t.teardown(() => server.close());
  const keyFile = join(await temporaryDirectory(t), 'update.key');
  await writeFile(keyFile, `key "postern" { algorithm hmac-sha256; secret "${secret}"; };\n`);
  const cli = await startCli(t, {
    POSTERN_DNS_SERVERS: dns.address,
    POSTERN_DNS_UPDATE_SERVER: `127.0.0.1:${server.port}`,
    POSTERN_DNS_UPDATE_KEY: keyFile,
  });
  return { dns, server, ...cli };
}

test('domain publish shows the difference, needs --yes in a script, and writes only our names', async (t) => {
  const { server, json, cli, refusal } = await start(t, ['CNAME bounces.example.invalid elsewhere.invalid']);
  const { records } = await json('domain add example.invalid --org Acme');
  const [dkim, , dmarc] = records;
  const ofAcme = 'example.invalid --org Acme';
  t.regex(
    await refusal(1, `domain publish ${ofAcme}`),
    /write 2 records at the DNS server 127\.0\.0\.1\? Nothing was changed; add --yes if it is meant, or --dry-run/,
  );
  const dry = await json(`domain publish ${ofAcme} --dry-run`);
  t.deepEqual(
    dry.published.map(({ action }: { action: string }) => action),
    ['add', 'leave', 'add'],
  );
  t.deepEqual(server.updates, []);
  const { published } = await json(`domain publish ${ofAcme} --yes`);
  t.like(published[0], { action: 'add', type: 'TXT', name: dkim.name, value: dkim.value, problem: null });
  t.regex(published[1].problem, /not from Postern: CNAME elsewhere\.invalid/);
  t.deepEqual(
    [...server.records].sort(),
    [
      'CNAME bounces.example.invalid elsewhere.invalid',
      `TXT ${dmarc.name} ${dmarc.value}`,
      `TXT ${dkim.name} ${dkim.value}`,
    ].sort(),
  );
  const plain = await cli(`domain publish ${ofAcme} --yes`);
  t.is(plain.code, 0);
  t.regex(plain.stdout.toString(), /^keep\tTXT\tpstn/);

  await json(`domain rotate ${ofAcme}`);
  server.answer = (honest) => honest.subarray(0, 12).fill(0, 2);
  const failed = await cli(`domain publish ${ofAcme} --yes --json`);
  t.is(failed.code, 1);
  t.regex(failed.stdout.toString(), /"problem": "the DNS server 127\.0\.0\.1: its answer is not signed/);
  for (const { stdout, stderr } of [plain, failed]) t.false(`${stdout}${stderr}`.includes(secret));
  t.false((await cli('config')).stdout.toString().includes(secret));
});

test('domain add --publish registers nothing if it cannot publish', async (t) => {
  const { server, json, refusal } = await start(t);
  const added = await json('domain add example.invalid --org Acme --publish rfc2136 --yes');
  t.deepEqual(
    added.published.map(({ action }: { action: string }) => action),
    ['add', 'add', 'add'],
  );
  t.is(server.records.size, 3);
  t.regex(
    await refusal(1, 'domain add other.invalid --org Acme --publish rfc2136'),
    /Nothing was changed; add --yes/,
  );
  t.regex(
    await refusal(1, 'domain add other.invalid --org Acme --publish cloudflare --yes'),
    /set POSTERN_CLOUDFLARE_TOKEN/,
  );
  t.is((await json('domain list --org Acme')).length, 1);
});

test('domain verify --wait ends when the DKIM record is there, or when its time is over', async (t) => {
  const { dns, json, cli } = await start(t);
  const { records } = await json('domain add example.invalid --org Acme');
  const [dkim] = records;
  const wait = (timeout: string) =>
    cli(`domain verify example.invalid --org Acme --wait --timeout ${timeout} --json`);
  const late = await wait('1s');
  t.is(late.code, 1);
  t.is(JSON.parse(late.stdout.toString()).status, 'pending');
  const waiting = wait('1m');
  setTimeout(() => dns.set({ [dkim.name]: { TXT: [dkim.value] } }), 500);
  const found = await waiting;
  t.is(found.code, 0);
  t.is(JSON.parse(found.stdout.toString()).status, 'verified');
  const asked = dns.queries.filter(({ name }) => name === dkim.name).length;
  t.true(asked < 10, `${asked} questions`);
});
