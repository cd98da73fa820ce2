/**
 * The content of /llms.txt (llmstxt.org), the API for a language model. It is made of the OpenAPI document: its introduction and a
 * line for each operation.
 */
import type { Document } from './openapi-types.ts';

export function llmsText({ info, servers, paths }: Document): string {
  const url = servers[0]!.url;
  const operations = Object.entries(paths).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(
      ([method, { summary }]) => `- \`${method.toUpperCase()} ${path}\`: ${summary}`,
    ),
  );
  return `# ${info.title}

> ${info.summary}

The API of this server is at ${url}. Schemas, parameters and examples of every operation are in its OpenAPI 3.1 document:

- [OpenAPI document](${url}/api/public/openapi.json)
- [Reference for people](${url}/docs)

## Operations

${operations.join('\n')}

${info.description}
`;
}
