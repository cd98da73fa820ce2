/** The README and the pages of docs/: the files that they name exist, and their samples work. Links: paths.test.ts. */
import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { type ParseError, parse } from 'jsonc-parser';
import { Webhook } from 'standardwebhooks';
import { temporaryDirectory } from '#lab/evidence.ts';
import { testWithProgram } from '#lab/needing.ts';
import { isInstalled } from '#lab/programs/programs.ts';
import { startWorld } from '#lab/scenes/world.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const pages = globSync('{*,docs/*}.md', { cwd: root }).sort();
/** Every page but the changelog, which names files as they were called then. */
const current = pages.filter((page) => page !== 'docs/changelog.md');
const run = promisify(execFile);

interface Sample {
  page: string;
  language: string;
  text: string;
}

const samples: Sample[] = pages.flatMap((page) =>
  [...read(page).matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language, text]) => ({
    page,
    language: language!,
    text: text!,
  })),
);

const sampleWith = (language: string, words: string) =>
  samples.find((sample) => sample.language === language && sample.text.includes(words))!.text;

test('samples read no variable that a command of ours, which is run with the same environment, would refuse as a setting', (t) => {
  const known = read('docs/settings.md');
  for (const { page, text } of samples)
    for (const [, name] of text.matchAll(/(?:\benv\.|environ\["|getenv\('|"[^"\n]*\$)(POSTERN_\w+)/g))
      t.true(known.includes(`\`${name}\``), `${page}: ${name} is no setting`);
});

test('the README is a front door: under 400 lines, with a link to every page', (t) => {
  const readme = read('README.md');
  t.true(readme.split('\n').length < 400);
  t.deepEqual(
    pages.filter((page) => page !== 'README.md' && !readme.includes(`](${page})`)),
    [],
  );
});

test('every page begins with a title and a sentence', (t) => {
  for (const page of pages) t.regex(read(page), /^# \S.*\n\n[A-Z]\S* .{40}/, page);
});

test('the files that the pages name exist', (t) => {
  const named = current.flatMap((page) =>
    [...read(page).matchAll(/(?<![\w/.-])(?:config|docs|scripts|src|test)\/[\w@./-]*[\w/]/g)].map(
      ([path]) => ({ page, path }),
    ),
  );
  t.true(named.length > 60);
  t.deepEqual(
    named.filter(({ path }) => !existsSync(join(root, path)) && path !== 'config/.env'),
    [],
  );
});

/** The program that checks a file of each language without running it. */
const readers: Record<string, [program: string, ...args: string[]]> = {
  js: [process.execPath, '--check'],
  sh: ['sh', '-n'],
  python: ['python3', '-c', 'import ast, sys; ast.parse(open(sys.argv[1]).read())'],
  php: ['php', '-l'],
};

test('code samples are of the language that their fence names', async (t) => {
  const directory = await temporaryDirectory(t);
  const checks = samples.map(async ({ page, language, text }, index) => {
    const [program, ...args] = readers[language] ?? [];
    if (!program || (program !== process.execPath && !isInstalled(program))) return;
    const file = join(directory, `${index}.${language === 'js' ? 'mjs' : language}`);
    await writeFile(file, text);
    await t.notThrowsAsync(run(program, [...args, file]), `${page}: ${text}`);
  });
  await Promise.all(checks);
  for (const { page, language, text } of samples) {
    if (!language.startsWith('json') || text.includes('…')) continue;
    const errors: ParseError[] = [];
    parse(text, errors, { allowTrailingComma: false });
    t.deepEqual(errors, [], `${page}: ${text}`);
  }
});

const mail = {
  from: 'App <app@sender.invalid>',
  to: 'ann@there.invalid',
  subject: 'Order',
  text: 'On its way.',
};

test('the Node sample sends a mail once, even if it is called twice, and reports a refusal', async (t) => {
  const world = await startWorld(t);
  const directory = await temporaryDirectory(t);
  await writeFile(join(directory, 'send.mjs'), sampleWith('js', 'sendMail'));
  const { sendMail } = await import(join(directory, 'send.mjs'));
  const server = { url: world.url(), key: world.key };
  const first = await sendMail(mail, 'order-1', server);
  t.deepEqual(first.accepted, ['ann@there.invalid']);
  t.is((await sendMail(mail, 'order-1', server)).emailId, first.emailId);
  await t.throwsAsync(sendMail({ ...mail, to: 'nobody' }, 'order-2', server), {
    message: /VALIDATION_ERROR/,
  });
});

const withPython = testWithProgram(isInstalled('python3'));

withPython('the Python sample sends a mail once, even if it is called twice', async (t) => {
  const world = await startWorld(t);
  const program = `${sampleWith('python', 'send_mail')}
mail = json.loads(os.environ["MAIL"])
print(json.dumps([send_mail(mail, "order-1")["emailId"] for _ in range(2)]))
try:
    send_mail({}, "order-2")
except RuntimeError as error:
    print(error)`;
  const settings = { MAIL_API_URL: world.url(), MAIL_API_KEY: world.key, MAIL: JSON.stringify(mail) };
  const { stdout } = await run('python3', ['-c', program], { env: { ...process.env, ...settings } });
  const [ids, refusal] = stdout.split('\n');
  const [first, second] = JSON.parse(ids!);
  t.is(first, second);
  t.is((await world.get(first)).subject, 'Order');
  t.regex(refusal!, /VALIDATION_ERROR/);
});

withPython('the sample that verifies a webhook by hand accepts only a valid signature', async (t) => {
  const secret = `whsec_${Buffer.from('a secret of the readme').toString('base64')}`;
  const now = new Date();
  const sign = (body: string) => ({
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': `v1,AAAA ${new Webhook(secret).sign('evt_1', now, body)}`,
  });
  const program = `${sampleWith('python', 'is_genuine')}
import json, sys
for secret, headers, body in json.loads(sys.argv[1]):
    print(is_genuine(secret, headers, body.encode()))`;
  const old = { ...sign('{}'), 'webhook-timestamp': '1000000000' };
  const calls = [
    [secret, sign('{"ü":1}'), '{"ü":1}'],
    [secret, sign('{}'), '{ }'],
    [`whsec_${Buffer.from('another').toString('base64')}`, sign('{}'), '{}'],
    [secret, old, '{}'],
  ];
  const { stdout } = await run('python3', ['-c', program, JSON.stringify(calls)]);
  t.deepEqual(stdout.trim().split('\n'), ['True', 'False', 'False', 'False']);
});
