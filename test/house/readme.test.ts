/** README.md keeps its word: its links lead somewhere, the files that it names are there, its samples work. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { type ParseError, parse } from 'jsonc-parser';
import { Webhook } from 'standardwebhooks';
import { headingsOf } from '../../scripts/peers/headings.ts';
import { isInstalled } from '../../scripts/peers/programs.ts';
import { testNeeding } from '../helpers/needing.ts';
import { startWorld } from '../helpers/world.ts';

const root = join(import.meta.dirname, '../..');
const readme = await readFile(join(root, 'README.md'), 'utf8');
const prose = readme.replace(/^```.*?^```/gms, '');
const run = promisify(execFile);

interface Sample {
  language: string;
  text: string;
}

const samples: Sample[] = [...readme.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, language, text]) => ({
  language: language!,
  text: text!,
}));

const sampleWith = (language: string, words: string) =>
  samples.find((one) => one.language === language && one.text.includes(words))!.text;

test('links within lead to headings', (t) => {
  const anchors = headingsOf(readme).map(({ anchor }) => anchor);
  const links = [...prose.matchAll(/\]\(#([^)]*)\)/g)].map(([, anchor]) => anchor!);
  t.true(links.length > 20);
  t.deepEqual(
    links.filter((link) => !anchors.includes(link)),
    [],
  );
});

test('files that are named are there', (t) => {
  const linked = [...prose.matchAll(/\]\((?!#|https?:)([^)]*)\)/g)].map(([, path]) => path!);
  const named = [...readme.matchAll(/(?<![\w/.-])(?:config|scripts|src|test)\/[\w@./-]*[\w/]/g)].map(
    ([path]) => path,
  );
  const missing = [...new Set([...linked, ...named])].filter((path) => !existsSync(join(root, path)));
  t.deepEqual(
    missing.filter((path) => path !== 'config/.env'),
    [],
  );
  t.true(named.length > 30);
});

/** What reads a file of that language without running it. */
const readers: Record<string, [program: string, ...args: string[]]> = {
  js: [process.execPath, '--check'],
  sh: ['sh', '-n'],
  python: ['python3', '-c', 'import ast, sys; ast.parse(open(sys.argv[1]).read())'],
  php: ['php', '-l'],
};

test('samples are of the language that they say', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'postern-readme-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  const read = samples.map(async ({ language, text }, index) => {
    const [program, ...args] = readers[language] ?? [];
    if (!program || (program !== process.execPath && !isInstalled(program))) return;
    const file = join(directory, `${index}.${language === 'js' ? 'mjs' : language}`);
    await writeFile(file, text);
    await t.notThrowsAsync(run(program, [...args, file]), text);
  });
  await Promise.all(read);
  for (const { language, text } of samples) {
    if (!language.startsWith('json') || text.includes('…')) continue;
    const errors: ParseError[] = [];
    parse(text, errors, { allowTrailingComma: false });
    t.deepEqual(errors, [], text);
  }
});

const mail = {
  from: 'App <app@sender.invalid>',
  to: 'ann@there.invalid',
  subject: 'Order',
  text: 'On its way.',
};

test('the sample for Node sends, once however often it is called, and says what was refused', async (t) => {
  const world = await startWorld(t);
  const directory = await mkdtemp(join(tmpdir(), 'postern-readme-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, 'send.mjs'), sampleWith('js', 'sendMail'));
  const { sendMail } = await import(join(directory, 'send.mjs'));
  const where = { url: world.url(), key: world.key };
  const first = await sendMail(mail, 'order-1', where);
  t.deepEqual(first.accepted, ['ann@there.invalid']);
  t.is((await sendMail(mail, 'order-1', where)).emailId, first.emailId);
  await t.throwsAsync(sendMail({ ...mail, to: 'nobody' }, 'order-2', where), { message: /VALIDATION_ERROR/ });
});

const withPython = testNeeding(isInstalled('python3'));

withPython('the sample for Python sends, once however often it is called', async (t) => {
  const world = await startWorld(t);
  const program = `${sampleWith('python', 'send_mail')}
mail = json.loads(os.environ["MAIL"])
print(json.dumps([send_mail(mail, "order-1")["emailId"] for _ in range(2)]))
try:
    send_mail({}, "order-2")
except RuntimeError as error:
    print(error)`;
  const settings = { POSTERN_URL: world.url(), POSTERN_KEY: world.key, MAIL: JSON.stringify(mail) };
  const { stdout } = await run('python3', ['-c', program], { env: { ...process.env, ...settings } });
  const [ids, refusal] = stdout.split('\n');
  const [first, second] = JSON.parse(ids!);
  t.is(first, second);
  t.is((await world.get(first)).subject, 'Order');
  t.regex(refusal!, /VALIDATION_ERROR/);
});

withPython('the sample that verifies a webhook by hand takes what is signed, and nothing else', async (t) => {
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
