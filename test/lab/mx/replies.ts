/**
 * Real replies out of test/fixtures/replies, one file a source or a kind of host, none of them invented:
 *
 *   seen: where the replies of the file were seen
 *
 *   rcpt -> bounced hard unknown_user recipient (unknown-user), host working
 *   550-5.1.1 the reply, line by line as it came,
 *   550 5.1.1 after the command that it answered and what is to be made of it
 *   seen: where this one was seen, if elsewhere
 *
 * Parts of addresses are redacted, mostly by those who published them. Where the source does not tell the command,
 * it is one that such a reply is given to.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Phase } from '#platform/values/glossary.ts';

export interface RecordedReply {
  file: string;
  phase: Phase;
  /** The lines, joined by CRLF. */
  reply: string;
  /** What is to be made of it: the rest of the first line. */
  expected: string;
  source: string;
}

const folder = join(import.meta.dirname, '../../fixtures/replies');

export function recordedReplies(): RecordedReply[] {
  return readdirSync(folder).flatMap((file) => {
    const blocks = readFileSync(join(folder, file), 'utf8').split(/^(?=\w+ -> )/m);
    const isRow = (block: string) => /^\w+ -> /.test(block);
    const ofFile = sourceOf(blocks.find((block) => !isRow(block)) ?? '');
    return blocks.filter(isRow).map((block) => {
      const [, phase, expected] = /^(\w+) -> (.*)$/m.exec(block)!;
      const reply = block.split('\n').filter((line) => /^\d{3}/.test(line));
      const source = sourceOf(block) ?? ofFile;
      if (!source || reply.length === 0) throw new Error(`${file}: no source or no reply: ${block}`);
      return { file, phase: phase as Phase, reply: reply.join('\r\n'), expected: expected!, source };
    });
  });
}

function sourceOf(text: string): string | undefined {
  return /^seen: (.+)$/m.exec(text)?.[1];
}
