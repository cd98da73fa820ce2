/** The introduction of the document (`info.description`), in Markdown. */
export const overview = `Send transactional email with one call, and see what happened to it for every recipient.

All bodies are JSON in UTF-8. Lengths of strings are counted in UTF-16 code units, as JavaScript does. Times are ISO
8601 in UTC.

## Quick start

Create a test key in the dashboard, send, and open the test inbox:

\`\`\`
curl https://mail.example.com/api/public/email/send \\
  -H 'Authorization: Bearer em_test_…' -H 'Content-Type: application/json' \\
  -d '{"from":"hello@postern.test","to":"ann@example.org","subject":"Hello","text":"It works."}'
\`\`\`

For mail that leaves the server, register your domain, publish its DNS records, and use a key without \`test\`.

## Authentication

Every call carries \`Authorization: Bearer em_…\` with a key of your organization. A key is shown once, when
it is created. Keep it on your servers, and revoke or rotate it if it leaks. The scopes of a key say what it can do:

| scope | allows |
| --- | --- |
| \`email:send\` | \`POST /api/public/email/send\` |
| \`email:read\` | \`GET /api/public/email/{id}\`, \`GET /api/public/emails\`, \`GET /api/public/events\` |
| \`received:read\` | \`GET /api/public/received\` and below it |
| \`full_access\` | everything, including future endpoints; management only if no \`domain_scope\` restricts the key |
| \`domain_scope:<domain>\` | nothing by itself; it restricts the key to senders of that domain |

A key that starts with \`em_test_\` sends test mail: the checks, answers, events and webhooks are the same, but nothing
leaves the server, costs credits, or counts in suppressions and statistics. It may come from any address at
\`postern.test\`, without a domain of your own. These recipients at \`postern.test\` decide how the mail ends:

| recipient | outcome |
| --- | --- |
| \`bounced@\` | hard bounce, \`550 5.1.1\` |
| \`full@\` | soft bounce, \`552 5.2.2\` |
| \`deferred@\` | deferred until it expires |
| \`greylist@\` | deferred once, then delivered |
| \`complained@\` | delivered, then a complaint |
| \`slow@\` | delivered after five seconds |
| \`delivered+label@\`, any other | delivered |

## SMTP

If the operator has enabled submission, send over port 587 (STARTTLS) or 465 (TLS) with any user name and the key as the
password. Limits, credits, events and webhooks are those of the API.

## Webhooks

Posts are signed according to [Standard Webhooks](https://www.standardwebhooks.com), whose libraries verify them:

\`\`\`
import { Webhook } from 'standardwebhooks';
const event = new Webhook(secret).verify(body, headers); // throws if the signature is wrong
\`\`\`

Answer with a 2xx status within the timeout; anything else is retried. An event can be posted twice: its \`webhook-id\` stays the same.

## Errors

Every response with status 400 or above has the same body: \`error\`, a code for your program to act on; \`message\`,
an explanation for people; \`issues\`, which lists the violations if \`error\` is \`VALIDATION_ERROR\` and is empty
otherwise. After an error, nothing was sent and nothing was charged. An unknown path is 404 \`NOT_FOUND\`. A method
that the path does not take is 405 \`BAD_REQUEST\`, and \`Allow\` lists the methods of the path.

## Limits

Limits apply to your organization. These are the defaults; the operator can change them.

| limit | value |
| --- | --- |
| requests | 2 per second |
| requests | 5,000 per day, reset at 00:00:00 UTC |
| recipients accepted | 5,000 per day, reset at 00:00:00 UTC |
| recipients of one call (\`to\`, \`cc\` and \`bcc\`) | 10; the call counts as one request |
| request body | 20 MiB |
| failed keys from one address (IPv6: one /64) | 10 per minute |

Every authenticated call counts, whatever its result, except one that is refused with 429. \`X-RateLimit-Limit\`,
\`X-RateLimit-Remaining\` and \`X-RateLimit-Reset\` are on every response. After 429, wait the seconds in \`Retry-After\`
(1 if it is absent), then try again, with a longer wait each time.

## Retries and duplicates

Give each email its own key, in \`idempotencyKey\` or in the header \`Idempotency-Key\`, and retry as often as
you like: the email is sent and charged once. A retry gets the first response with \`Idempotent-Replayed: true\`; a
retry that comes while the first call runs waits for it. Keys belong to your organization and are remembered for at
least 24 hours. The same key with a different request is 400 \`BAD_REQUEST\`. Errors are not remembered: after an
error you can use the key again.

Sends without a key are compared with those of the last 2 seconds: a send with the same API key, recipients and
subject is a duplicate, which gets the first response and is neither sent nor charged.

## Versioning

\`/api/public/\` is version 1, and every response says so with \`X-API-Version: 1\`. It only grows: new endpoints, new
optional fields in requests, and new members, events and headers in responses. The schemas here describe exactly what
this release returns. Your code must ignore members and events that it does not know.

A change that would break callers gets a new address, \`/api/public/v2/\`. Version 1 then continues for at least a year,
and its responses announce the end in the headers \`Deprecation\` and \`Sunset\`.`;

/** The tags of the endpoints that manage an organization. */
export const managementTags = [
  { name: 'Domains', description: 'Sender domains and the DNS records to publish for them.' },
  { name: 'Keys', description: 'API keys.' },
  { name: 'Streams', description: 'Parts of the mail with settings and suppressions of their own.' },
  { name: 'Suppressions', description: 'Addresses that no email is sent to.' },
  { name: 'Webhooks', description: 'Endpoints of yours that events are posted to.' },
  { name: 'Routes', description: 'What becomes of email that is received for your domains.' },
  { name: 'Credits', description: 'Credits that are left, and what they were spent on.' },
  { name: 'Statistics', description: 'What became of the mail, by group.' },
];
