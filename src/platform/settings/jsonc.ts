/**
 * Reads JSON files with comments into a syntax tree, so that a message about a value can name its line. If the file cannot
 * be read or is not JSON, the result is a message that says so.
 */
import { readFileSync } from 'node:fs';
import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';

export interface Jsonc {
  root: Node | undefined;
  lineOf(node: Node): number;
}

export function readJsonc(path: string): Jsonc | string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    const reason = (error as Error).message.split(',')[0];
    return `cannot read ${path} (${reason}); name a file that can be read, or unset it`;
  }
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first)
    return `${path} is not JSON: ${sentence(first)} at ${position(text, first.offset)}; correct it there`;
  return { root, lineOf: ({ offset }) => lineAt(text, offset) };
}

/** jsonc-parser names its errors like CommaExpected. */
function sentence({ error }: ParseError): string {
  return printParseErrorCode(error)
    .replace(/\B[A-Z]/g, ' $&')
    .toLowerCase();
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

function position(text: string, offset: number): string {
  return `line ${lineAt(text, offset)}, column ${offset - text.lastIndexOf('\n', offset - 1)}`;
}
