/**
 * Whether verifiers find our key in the TXT records at a selector: exactly one record (RFC 6376 section 3.6.2.2), whose tags
 * (section 3.6.1) let it be used for mail that is signed with rsa-sha256 or ed25519-sha256. mailauth, read strictly, has the
 * last word; this file names the problem.
 */
import { createPublicKey } from 'node:crypto';
import { readDkimKey } from '#platform/vendor/mailauth-dkim-key.ts';

export interface Judgement {
  ok: boolean;
  /** The trouble and the remedy; also for a record that is right, but should be changed. */
  problem: string | null;
}

/** `found`: the TXT records, each in one piece; at least one. `wanted`: the record that should be there. */
export async function judgeDkim(found: string[], wanted: string): Promise<Judgement> {
  const [record] = found;
  if (found.length > 1 || record === undefined) return { ok: false, problem: tooMany(found, wanted) };
  const problem = problemOf(record, wanted);
  if (problem !== null) return { ok: false, problem: `${problem} ${replace}` };
  try {
    const { publicKey, testing } = await readDkimKey(record);
    const ours = await readDkimKey(wanted);
    if (!createPublicKey(publicKey).equals(createPublicKey(ours.publicKey)))
      return { ok: false, problem: `${anotherKey} ${replace}` };
    return { ok: true, problem: testing ? inTesting : null };
  } catch (error) {
    const isOurs = keyIn(record) === keyIn(wanted);
    const why = isOurs ? `Verifiers ignore the record: ${(error as Error).message}.` : anotherKey;
    return { ok: false, problem: `${why} ${replace}` };
  }
}

const replace = 'Replace it with this value.';
const anotherKey =
  'There is a DKIM record, but with a different key, perhaps of another selector or from an earlier registration.';
const inTesting =
  'The record has the flag t=y (testing): receivers may treat the mail as if it were not signed. Remove t=y.';

function tooMany(found: string[], wanted: string): string {
  const others = found.includes(wanted) ? 'Remove the others.' : `Remove them and publish this value.`;
  return `There are ${found.length} TXT records at this name, but only one is allowed: verifiers read any one of them. ${others}`;
}

const squeezed = (text: string) => text.replace(/["\s]+/g, '');

function problemOf(record: string, wanted: string): string | null {
  if (/^\s*v=spf1\b/i.test(record)) return 'This is an SPF record; it belongs at the name of the domain.';
  if (/^\s*v=DMARC1\b/i.test(record))
    return 'This is a DMARC record; it belongs at the name that begins with _dmarc.';
  const [text, whole] = [squeezed(record), squeezed(wanted)];
  if (text.length < whole.length && whole.startsWith(text) && !text.endsWith('p='))
    return `The record ends after ${text.length} of ${whole.length} characters: it was cut off when it was entered. If your provider limits the length, split the value into several quoted strings.`;
  const tags = readTags(record);
  const problem = typeof tags === 'string' ? tags : tagProblem(tags, readTags(wanted) as Tags);
  // Entered as it is written in a zone file.
  if (problem !== null && record.includes('\\')) return 'The record contains backslashes.';
  return problem !== null && record.includes('"') ? 'The record contains quotation marks.' : problem;
}

type Tags = Map<string, string>;

/** The tag list of RFC 6376 section 3.2, or what is wrong with it. Values are without white space at their ends. */
function readTags(record: string): Tags | string {
  const parts = record.split(';');
  if (parts.at(-1)!.trim() === '') parts.pop();
  const tags: Tags = new Map();
  for (const part of parts) {
    const at = part.indexOf('=');
    const name = part.slice(0, Math.max(at, 0)).trim();
    if (!/^[a-z]\w*$/i.test(name))
      return part.trim() === ''
        ? 'The record has two semicolons with nothing between them.'
        : `The record is not a list of tags such as k=rsa, separated by semicolons: "${part.trim().slice(0, 40)}".`;
    if (tags.has(name)) return `The record has ${name}= twice, which makes all of it invalid.`;
    const value = part.slice(at + 1).trim();
    if (!/^[\x21-\x7e \t\r\n]*$/.test(value))
      return `The value of ${name}= has a character that is not ASCII.`;
    tags.set(name, value);
  }
  return tags;
}

function keyIn(record: string): string | undefined {
  const tags = readTags(record);
  return typeof tags === 'string' ? undefined : tags.get('p')?.replace(/\s+/g, '');
}

/** Unknown tags are ignored, as verifiers do. */
function tagProblem(tags: Tags, wanted: Tags): string | null {
  const [first] = tags.keys();
  const version = tags.get('v');
  if (version !== undefined && version !== 'DKIM1')
    return `The record says v=${version.slice(0, 40)}, which must be exactly DKIM1.`;
  if (version !== undefined && first !== 'v') return 'v=DKIM1 must be the first tag of the record.';
  const key = tags.get('p')?.replace(/\s+/g, '');
  if (key === undefined) return 'There is a TXT record, but it has no DKIM key (p=).';
  if (key === '') return 'The record revokes the key: its p= is empty.';
  const kind = tags.get('k') ?? 'rsa';
  if (kind.toLowerCase() !== wanted.get('k'))
    return `The record is for keys of the kind ${kind.slice(0, 40)}, and this key is of the kind ${wanted.get('k')} (k=).`;
  if (!lists(tags, 'h', ['sha256']))
    return 'h= must list sha256, with which the mail is signed, or be left out.';
  if (!lists(tags, 's', ['email', '*'])) return 's= must list email or *, or be left out.';
  return /^[A-Za-z0-9+/]+={0,2}$/.test(key) ? null : 'The key (p=) is not Base64.';
}

/** Whether a list with colons, if there is one, has one of these. */
function lists(tags: Tags, name: string, wanted: string[]): boolean {
  const list = tags
    .get(name)
    ?.split(':')
    .map((one) => one.trim().toLowerCase());
  return list === undefined || list.some((one) => wanted.includes(one));
}
