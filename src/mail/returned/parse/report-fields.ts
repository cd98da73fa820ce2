/**
 * Parses blocks of "Name: value" lines, as in message/delivery-status (RFC 3464 section 2.1) and message/feedback-report
 * (RFC 5965 section 3). Empty lines separate blocks; a line that begins with white space continues the line before. Values
 * keep their line ends, because some are SMTP replies of several lines.
 */

/** The values of each field, by its name in lower case. */
export type FieldBlock = Map<string, string[]>;

const maxBlocks = 100;
const maxFields = 100;

export function readBlocks(text: string): FieldBlock[] {
  return text
    .split(/\n[ \t]*\n/, maxBlocks)
    .map(readBlock)
    .filter(({ size }) => size > 0);
}

const field = /^([!-9;-~]{1,60})[ \t]*:(.*)$/s;

function readBlock(text: string): FieldBlock {
  const block: FieldBlock = new Map();
  for (const line of text.replace(/^\n+/, '').split(/\n(?![ \t])/, maxFields)) {
    const found = field.exec(line.trim());
    if (!found) continue;
    const name = found[1]!.toLowerCase();
    const value = found[2]!.replace(/\n[ \t]+/g, '\n').trim();
    const values = block.get(name);
    if (values) values.push(value);
    else block.set(name, [value]);
  }
  return block;
}

/** The first value, as one line; null if there is none. */
export function fieldOf(block: FieldBlock, name: string): string | null {
  return block.get(name)?.[0]?.replace(/\s+/g, ' ') || null;
}

/** The value without its type, as one line: "rfc822; ann@example.org" is ann@example.org. */
export function typedFieldOf(block: FieldBlock, name: string): string | null {
  const value = fieldOf(block, name);
  return value === null ? null : value.replace(/^[\w.-]{1,40} ?; ?/, '');
}
