/**
 * Other people's DKIM verifiers on our mail, as test/mail/compose/sign.test.ts has mailauth on it. A program that is not installed
 * is named in the test that is left out.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ExecutionContext } from 'ava';
import { testWithProgram } from '#lab/needing.ts';
import { record, samples, signer } from '#lab/oversigned-mails.ts';
import { isInstalled } from '#lab/programs/programs.ts';

const run = promisify(execFile);

/** `verify` says for each file whether its signature passes. */
async function judge(
  t: ExecutionContext,
  verify: (files: string[], folder: string) => Promise<boolean[]>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'oversigning-'));
  try {
    const all = samples();
    const files = all.map((_, index) => join(folder, `${index}.eml`));
    await Promise.all(all.map(({ raw }, index) => writeFile(files[index]!, raw)));
    const passed = await verify(files, folder);
    t.is(passed.length, all.length);
    for (const [index, { what, isUntouched }] of all.entries()) t.is(passed[index], isUntouched, what);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const dkimpy = `
import dkim, sys
record = sys.argv[1].encode()
for name in sys.argv[2:]:
    print(dkim.verify(open(name, 'rb').read(), dnsfunc=lambda *args, **named: record))
`;
const python = isInstalled('dkimverify')
  ? ['python3', '/usr/bin/python3'].find((path) => spawnSync(path, ['-c', 'import dkim']).status === 0)
  : undefined;

testWithProgram(python !== undefined)(
  'dkimpy passes a mail as it was sent, and none with a field added on top (needs python3-dkim)',
  async (t) => {
    await judge(t, async (files) => {
      const { stdout } = await run(python!, ['-c', dkimpy, record, ...files]);
      return stdout
        .trim()
        .split('\n')
        .map((line) => line === 'True');
    });
  },
);

testWithProgram(isInstalled('opendkim'))(
  'OpenDKIM passes a mail as it was sent, and none with a field added on top (needs opendkim)',
  async (t) => {
    await judge(t, async (files, folder) => {
      const [config, keys] = [join(folder, 'conf'), join(folder, 'keys')];
      await writeFile(keys, `${signer.selector}._domainkey.${signer.domain} ${record}\n`);
      await writeFile(config, `Mode v\nSyslog no\nTestPublicKeys ${keys}\n`);
      const { stdout, stderr } = await run('opendkim', ['-t', files.join(','), '-x', config, '-v']);
      const verdicts = `${stdout}${stderr}`.match(/verification .*(succeeded|failed)/g) ?? [];
      return verdicts.map((verdict) => verdict.endsWith('succeeded'));
    });
  },
);
