/** Bodies that are taken, for routes whose members no table has. A form is an object of its fields. */
import { readFileSync } from 'node:fs';

const file = new URL('../fixtures/call-examples.json', import.meta.url);

export const callExamples: Record<string, unknown> = JSON.parse(readFileSync(file, 'utf8'));
