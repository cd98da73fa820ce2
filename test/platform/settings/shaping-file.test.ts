/**
 * The shaping file as it is read. A bad one is a file NAME.jsonc in fixtures/bad-shaping with what is said of it in
 * NAME.txt, FILE standing for its path: a new case is a new file.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadConfig } from '#platform/settings/config.ts';
import { ConfigError } from '#platform/settings/config-error.ts';
import { loadShaping } from '#platform/settings/shaping-file.ts';
import { createDestinationOf, defaultShape } from '#platform/settings/shaping-rules.ts';

const badFiles = join(import.meta.dirname, '../../fixtures/bad-shaping');

function fileOf(t: ExecutionContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'postern-shaping-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'shaping.jsonc');
  writeFileSync(path, text);
  return path;
}

test('every field is read, with comments and trailing commas', (t) => {
  const path = fileOf(
    t,
    `{
      // a comment
      "builtIn": false,
      "rules": [
        { "domain": ["Example.COM", "bücher.example"], "name": "Both", "perMinute": 600 },
        { "mx": ".MX.example.com.", "connections": 50, "startWith": 10, "mailsPerConnection": 1, "idle": "1m", "tls": "verified" },
        { "destination": "mx2.example.com, MX1.example.com", "perMinute": "unlimited", "tls": "off", },
      ],
    }`,
  );
  t.deepEqual(loadShaping(path, 20), [
    {
      by: 'domain',
      domains: ['example.com', 'xn--bcher-kva.example'],
      name: 'both',
      fields: { perMinute: 600 },
    },
    {
      by: 'mx',
      suffixes: ['.mx.example.com'],
      name: null,
      fields: { connections: 50, startWith: 10, mailsPerConnection: 1, tls: 'verified', idleMs: 60_000 },
    },
    {
      by: 'destination',
      names: ['mx1.example.com,mx2.example.com'],
      fields: { perMinute: null, tls: 'off' },
    },
  ]);
});

test("the operator's rules come before the built-in ones, or replace them", (t) => {
  const google = ['smtp.google.com'];
  const rule = '{ "destination": "google", "connections": 40 }';
  const find = (text: string) =>
    createDestinationOf(loadShaping(fileOf(t, text), 20), defaultShape(20))('a', google);
  t.like(find(`{ "rules": [${rule}] }`), {
    name: 'google',
    shape: { connections: 40, mailsPerConnection: 50 },
  });
  t.is(find('{}').name, 'google');
  t.is(find('{ "builtIn": false }').name, 'smtp.google.com');
});

test('the setting names the file', (t) => {
  t.is(loadConfig({}).shapingFile, null);
  t.is(loadConfig({ POSTERN_SHAPING_FILE: '/etc/shaping.jsonc' }).shapingFile, '/etc/shaping.jsonc');
});

test('a file that cannot be read is named with its setting', (t) => {
  const error = t.throws(() => loadShaping('/nowhere/shaping.jsonc', 20), { instanceOf: ConfigError });
  t.regex(error!.message, /^POSTERN_SHAPING_FILE: cannot read \/nowhere\/shaping\.jsonc \(ENOENT/);
});

for (const file of readdirSync(badFiles).filter((name) => name.endsWith('.jsonc'))) {
  test(`bad: ${basename(file, '.jsonc')}`, (t) => {
    const path = join(badFiles, file);
    const expected = readFileSync(path.replace(/\.jsonc$/, '.txt'), 'utf8').trim();
    const error = t.throws(() => loadShaping(path, 20), { instanceOf: ConfigError });
    t.is(error!.message.replaceAll(path, 'FILE'), expected);
  });
}
