/** The functions that src/platform/vendor/nodemailer.ts uses are as they were in the version that was read. */
import { createRequire } from 'node:module';
import test from 'ava';
import * as mimeFuncs from '#platform/vendor/nodemailer.ts';

const changed =
  "nodemailer's header functions have changed: read its lib/mime-funcs again and adapt src/platform/vendor/nodemailer.ts";

test('the header functions give what the composer expects of them', (t) => {
  const { version } = createRequire(import.meta.url)('nodemailer/package.json');
  t.is(version, '10.6.0', changed);
  const results = {
    detected: mimeFuncs.detectMimeType('report.pdf'),
    extension: mimeFuncs.detectExtension('image/png'),
    quoted: mimeFuncs.quoteString('Lee, "Ann"'),
    word: mimeFuncs.encodeWord('Grüße an alle', 'Q', 52),
    words: mimeFuncs.encodeWords('用户 x', 'B', 52, true),
    folded: mimeFuncs.foldLines(`X-A: ${'word '.repeat(20)}end`, 76),
    built: mimeFuncs.buildHeaderValue({ value: 'attachment', params: { filename: 'Grüße.pdf' } }),
    parsed: mimeFuncs.parseHeaderValue('Text/Plain (a comment); Charset="utf-8"', { stripComments: true }),
  };
  t.deepEqual(
    results,
    {
      detected: 'application/pdf',
      extension: 'png',
      quoted: '"Lee, \\"Ann\\""',
      word: '=?UTF-8?Q?Gr=C3=BC=C3=9Fe_an_alle?=',
      words: '=?UTF-8?B?55So5oi3IHg=?=',
      folded: `X-A: ${'word '.repeat(13)}word\r\n ${'word '.repeat(6)}end`,
      built: "attachment; filename*0*=utf-8''Gr%C3%BC%C3%9Fe.pdf",
      parsed: { value: 'Text/Plain', params: { charset: 'utf-8' } },
    },
    changed,
  );
});
