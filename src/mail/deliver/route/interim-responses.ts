/**
 * A server may answer with any number of interim responses (RFC 9110 section 15.2) before the one that counts. Each costs us some
 * microseconds and the server twenty bytes, so the connection is ended after a few.
 */
import type { ClientRequest } from 'node:http';

const max = 10;

export function limitInterimResponses(request: ClientRequest): ClientRequest {
  let count = 0;
  return request.on('information', () => {
    count += 1;
    if (count > max) request.destroy(new Error(`more than ${max} interim responses and no answer`));
  });
}
