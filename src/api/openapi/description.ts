/**
 * What the document says beside its operations: `info.description`, in as much Markdown as api/docs/markdown.ts
 * reads (headings, paragraphs, lists, tables, code).
 */
export const overview = `Send transactional email with one call, and ask what became of it for every recipient.

All bodies are JSON in UTF-8. Lengths of strings are counted in UTF-16 code units, as JavaScript does. Times are ISO
8601 in UTC.

## Authentication

Every call carries \`Authorization: Bearer em_…\` with a key of your organization. A key is shown once, when it is
made; keep it on your servers, and have it revoked or rotated if it gets out. What a key may do are its scopes:

| scope | allows |
| --- | --- |
| \`email:send\` | \`POST /api/public/email/send\` |
| \`email:read\` | \`GET /api/public/email/{id}\`, \`GET /api/public/emails\`, \`GET /api/public/events\` |
| \`full_access\` | everything, now and later; managing too, unless a \`domain_scope\` restricts the key |
| \`domain_scope:<domain>\` | nothing by itself: it restricts sending to senders of that domain |

## Errors

Every answer of 400 and above has the same body: \`error\`, a code to act on; \`message\`, an explanation for
people; \`issues\`, which lists the violations when \`error\` is \`VALIDATION_ERROR\` and is empty otherwise. After
an error nothing was sent and nothing was charged. An unknown path is 404 \`NOT_FOUND\`; another method than those
of the path is 405 \`BAD_REQUEST\`, and \`Allow\` names them.

## Limits

Limits hold for your organization. These are the defaults; the operator may have set others.

| limit | value |
| --- | --- |
| requests | 2 per second |
| requests | 5,000 per day, reset at 00:00:00 UTC |
| recipients accepted | 5,000 per day, reset at 00:00:00 UTC |
| recipients of one call | 10; the call counts as one request |
| request body | 20 MiB |
| failed keys from one address (of IPv6: one /64) | 10 per minute |

Every authenticated call counts, whatever comes of it; one that is refused with 429 does not. \`X-RateLimit-Limit\`,
\`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\` are on every answer. On 429, wait the seconds in \`Retry-After\`
(1 where it is absent), then try again, each time waiting longer.

## Retries and duplicates

Give each email a key of your own, in \`idempotencyKey\` or in the header \`Idempotency-Key\`, and retry as often as
you like: it is sent and charged once. A retry gets the first answer with \`Idempotent-Replayed: true\`; one that
comes while the first call runs waits for it. Keys belong to your organization and are remembered for 24 hours at
least. The same key with a different request is 400 \`BAD_REQUEST\`. Errors are not remembered: after one the key
can be used again.

Sends without a key are compared with those of the last 2 seconds: the same API key, recipients and subject make a
duplicate, which gets the first answer and is neither sent nor charged.

## Versioning

\`/api/public/\` is version 1, as \`X-API-Version: 1\` says on every answer. It only ever grows: new endpoints, new
optional fields in requests, new members, events and headers in answers. The schemas here tell exactly what this
release answers, so read them afresh with each, and have your code pass over members and events that it does not
know.

A change that would break callers gets an address of its own, \`/api/public/v2/\`. Version 1 then goes on for a year
at least, and its answers say so in the headers \`Deprecation\` and \`Sunset\`.`;

/** The tags of the endpoints that manage an organization. */
export const managementTags = [
  { name: 'Domains', description: 'Sender domains and the DNS records to publish for them.' },
  { name: 'Keys', description: 'API keys.' },
  { name: 'Suppressions', description: 'Addresses that no email is sent to.' },
  { name: 'Webhooks', description: 'Endpoints of yours that events are posted to.' },
  { name: 'Credits', description: 'Credits that are left, and what they were spent on.' },
];
