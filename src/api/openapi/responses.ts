/** The answers of an operation: content by a schema's name, and the refusals by their codes. */
import { type RefusalCode, statusOf } from '../../mail/refusal.ts';
import { refTo } from './component-schemas.ts';
import { type Explained, errorNames, explanations } from './error-responses.ts';
import { headerRefs } from './header-components.ts';
import type { DocumentedContent, DocumentedResponse, Example } from './openapi-document.ts';

export function content(schema: string, examples: Record<string, Example>): DocumentedContent {
  return { 'application/json': { schema: refTo('schemas', schema), examples } };
}

/** What an operation says of a code in its own words. */
type OwnWords = Partial<Record<RefusalCode, Partial<Explained>>>;

/** The answers that refuse, by status, each with the codes that the operation has for it. */
export function refusals(codes: RefusalCode[], ownWords: OwnWords = {}): Record<string, DocumentedResponse> {
  const byStatus = Object.groupBy(codes, (code) => statusOf[code]);
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, own]) => [status, refusal(Number(status), own, ownWords)]),
  );
}

/** Beside the headers of every answer. */
const ownHeaders: Record<number, string[]> = { 401: ['WWW-Authenticate'], 429: ['Retry-After'] };

function refusal(status: number, codes: RefusalCode[], ownWords: OwnWords): DocumentedResponse {
  const explained = codes.map((code) => ({ code, ...explanations[code], ...ownWords[code] }));
  const examples = explained.map(({ code, when, message, issues = [] }) => [
    code,
    { summary: when, value: { error: code, message, issues } },
  ]);
  return {
    description: explained.map(({ code, when }) => `\`${code}\`: ${when}`).join('\n\n'),
    headers: headerRefs(...(ownHeaders[status] ?? [])),
    content: content(errorNames[status]!, Object.fromEntries(examples)),
  };
}

/** 405, which the table of codes has no code for: BAD_REQUEST. */
export function otherMethod(allowed: string): Record<405, DocumentedResponse> {
  const summary = 'The path was called with another method; `Allow` names those that it takes.';
  const value = { error: 'BAD_REQUEST', message: `This path takes ${allowed}.`, issues: [] };
  return {
    405: {
      description: `\`BAD_REQUEST\`: ${summary}`,
      headers: headerRefs('Allow'),
      content: content(errorNames[405]!, { BAD_REQUEST: { summary, value } }),
    },
  };
}
