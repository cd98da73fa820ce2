/** How to send a first mail with a key, ready to be pasted: for `postern dev` and for the page of a new key. */
import type { Config } from '#platform/settings/config.ts';

export interface SampleServer {
  url: string;
  key: string;
  /** The sender, as in a header. */
  from: string;
  /** Null without submission. */
  smtp: { host: string; port: number; user: string } | null;
}

/** Null if no submission port is open. `host`: another than the server's, which in development has no name in DNS. */
export function smtpOf(
  config: Pick<Config, 'hostname' | 'submissionPort' | 'submissionTlsPort'>,
  host = config.hostname,
): SampleServer['smtp'] {
  const port = config.submissionPort ?? config.submissionTlsPort;
  return port === null ? null : { host, port, user: 'postern' };
}

export interface Sample {
  name: string;
  code: string;
}

export function sendSamples({ url, key, from, smtp }: SampleServer): Sample[] {
  const body = JSON.stringify({ from, to: 'ann@example.org', subject: 'Hello', text: 'It works.' });
  const samples = [
    {
      name: 'curl',
      code: `curl ${url}/api/public/email/send -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' -d '${body}'`,
    },
    {
      name: 'Node',
      code: `await fetch('${url}/api/public/email/send', {
  method: 'POST',
  headers: { Authorization: 'Bearer ${key}', 'Content-Type': 'application/json' },
  body: JSON.stringify(${body}),
});`,
    },
  ];
  if (smtp === null) return samples;
  const code = `const transport = nodemailer.createTransport({
  host: '${smtp.host}', port: ${smtp.port}, auth: { user: '${smtp.user}', pass: '${key}' },
});`;
  return [...samples, { name: 'nodemailer', code }];
}
