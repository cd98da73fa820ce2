/** The attachments of a send (docs/api.md section 2.2); refuses executables by name and by type. */
import { z } from 'zod';
import { characters, rule } from '#front/http/schema-rule.ts';
import { comparedId } from '#mail/compose/content-ids/content-ids.ts';
import { parseFileUrl } from '#mail/webhooks/guarded-get.ts';
import { evenIfRefused } from '#platform/vendor/zod.ts';
import { limitSize } from './at-most.ts';
import { base64Content } from './base64-content.ts';

export const largestTotal = 10 * 1024 * 1024;
/** The contract bounds only the bytes; a call with very many tiny attachments could keep a core busy for a minute. */
const maxAttachments = 1000;
/** Each makes us connect to a server of the caller's choice. */
const maxFetched = 10;
const expectedCount = `at most ${maxAttachments} attachments`;

const executableName = /\.(exe|bat|sh)[. ]*$/i;
const executableTypes = new Set([
  'application/x-msdownload',
  'application/x-msdos-program',
  'application/vnd.microsoft.portable-executable',
  'application/x-sh',
  'application/x-shellscript',
  'application/x-bat',
  'application/bat',
  'text/x-shellscript',
  'text/x-sh',
]);
/** RFC 6838 section 4.2: names of 127 characters at most. */
const mediaType = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(\s*;[^\p{Cc}]*)?$/u;

/** `type` is in lower case. */
export function isExecutable(name: string, type: string): boolean {
  return executableName.test(name) || executableTypes.has(type);
}

const filename = z
  .string()
  .check(
    characters(1, 255),
    rule((name) => !/\p{Cc}/u.test(name), 'free of control characters'),
    rule((name) => name.isWellFormed(), 'well-formed Unicode'),
    rule((name) => !executableName.test(name), 'a file that is not executable (.exe, .bat, .sh)'),
  )
  .meta({
    minLength: 1,
    maxLength: 255,
    description: 'The name of the file, as the recipient sees it.',
    examples: ['receipt.pdf'],
  });

const content = base64Content.meta({
  contentEncoding: 'base64',
  description: 'The file in standard base64 with its padding; line breaks are allowed. A file can be empty.',
});

const contentType = z
  .string()
  .check(
    rule((type) => !/\p{Cc}/u.test(type.trim()), 'free of control characters'),
    rule(
      (type) => !executableTypes.has(type.split(';', 1)[0]!.trim().toLowerCase()),
      'a type that is not executable',
    ),
  )
  // Programs send what their own look-up gave them: nothing, `pdf`, `undefined`.
  .transform((type) => (mediaType.test(type.trim()) && type.isWellFormed() ? type.trim() : undefined))
  .meta({
    description:
      "The file's media type. If it is left out, empty or none, it is derived from the extension of the name. The first file of the type " +
      '`text/calendar; method=REQUEST` (or another method) is also sent as an invitation that readers can answer.',
    examples: ['application/pdf'],
  });

const contentId = z
  .string()
  .check(characters(1, 255))
  .transform((text) =>
    text
      .trim()
      .replace(/^<(.*)>$/, '$1')
      .replace(/^cid:/i, ''),
  )
  .check(
    rule((id) => id !== '', 'a content id such as logo or logo.png'),
    rule((id) => !/\p{Cc}/u.test(id), 'free of control characters'),
    rule((id) => id.isWellFormed(), 'well-formed Unicode'),
  )
  .meta({
    minLength: 1,
    maxLength: 255,
    description:
      'The name by which the HTML shows the file: `<img src="cid:logo">` shows the attachment with the `contentId` `logo`. ' +
      'Unique in the email. Any text, such as `logo a.png`: an id that a message cannot carry is replaced by another one, in the HTML too.',
    examples: ['logo'],
  });

const disposition = z.enum(['attachment', 'inline']).meta({
  description:
    'How readers show the file. If it is left out, an image with a `contentId` is `inline`, and any other file is an `attachment`.',
});

const url = z
  .string()
  .check(
    rule(
      (text) => parseFileUrl(text) !== null,
      'an http or https URL of at most 2,048 characters without user and password',
    ),
  )
  .meta({
    format: 'uri',
    maxLength: 2048,
    description:
      'Instead of `content`: where the server fetches the file before it accepts the email. At most 10 files of an email have a URL.',
    examples: ['https://shop.example.com/invoices/4711.pdf'],
  });

const attachmentFields = z.object({
  filename,
  content: content.optional(),
  contentType: contentType.optional(),
  contentId: contentId.optional(),
  disposition: disposition.optional(),
  url: url.optional(),
});

/** As the object itself would report them. */
const contentOrUrl = z.check<z.infer<typeof attachmentFields>>(({ value, issues }) => {
  const has = (name: string) => issues.some(({ path }) => path?.[0] === name);
  if (value.url !== undefined && value.content !== undefined) {
    const expected = 'left out, because content is given';
    issues.push({
      code: 'custom',
      path: ['url'],
      message: `must be ${expected}`,
      params: { expected },
      input: value.url,
    });
  } else if (value.url === undefined && value.content === undefined && !has('url') && !has('content')) {
    issues.push({ code: 'invalid_type', expected: 'string', path: ['content'], input: undefined });
  }
});

const attachment = attachmentFields
  .check(evenIfRefused(contentOrUrl))
  .meta({ anyOf: [{ required: ['content'] }, { required: ['url'] }] });

export type GivenAttachment = z.infer<typeof attachment>;

const uniqueContentIds = z.check<z.infer<typeof attachment>[]>(({ value: list, issues }) => {
  const seen = new Set<string>();
  for (const [index, { contentId: id }] of list.entries()) {
    if (id === undefined) continue;
    const compared = comparedId(id);
    if (seen.has(compared)) {
      const expected = 'a content id that no other attachment has';
      const path = [index, 'contentId'];
      issues.push({ code: 'custom', path, message: `must be ${expected}`, params: { expected }, input: id });
    }
    seen.add(compared);
  }
});

export const attachments = limitSize(
  maxAttachments,
  z.array(attachment).check(
    rule((list) => list.length <= maxAttachments, expectedCount),
    rule(
      (list) => list.reduce((total, one) => total + (one.content?.length ?? 0), 0) <= largestTotal,
      'at most 10 MiB in all, decoded',
    ),
    rule(
      (list) => list.filter((one) => one.url !== undefined).length <= maxFetched,
      `at most ${maxFetched} files with a url`,
    ),
    uniqueContentIds,
  ),
  expectedCount,
).meta({ description: 'Files to attach.' });
