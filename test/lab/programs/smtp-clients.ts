/**
 * Mail clients of the system that submit mail: swaks, which prints the whole SMTP session, and msmtp, which takes what sendmail
 * would be given. Each run returns the output and whether the client reports that the mail was accepted.
 */
import { execFile } from 'node:child_process';
import { isInstalled } from './programs.ts';

export interface Job {
  host: string;
  port: number;
  /** TLS from the start instead of STARTTLS. */
  implicit: boolean;
  method: 'PLAIN' | 'LOGIN';
  password: string;
  from: string;
  to: string;
  message: string;
}

interface Outcome {
  isAccepted: boolean;
  /** The last replies that the client printed. */
  reply: string;
}

export interface ClientProgram {
  name: string;
  run(job: Job): Promise<Outcome>;
}

export const clients: ClientProgram[] = [
  {
    name: 'swaks',
    async run({ host, port, implicit, method, password, from, to, message }) {
      const { code, output } = await execute('swaks', [
        ...['--server', host, '--port', String(port), implicit ? '--tls-on-connect' : '--tls'],
        ...['--auth', method, '--auth-user', 'apikey', '--auth-password', password, '--auth-hide-password'],
        ...['--from', from, '--to', to, '--data', message.replaceAll('\n', '\\n')],
      ]);
      const replies = output.match(/^<[~*-]+[* ]+\d{3}[ -].*/gm) ?? [];
      const shown = replies.map((line) => line.replace(/^<\S+\s+/, '').trim());
      return { isAccepted: code === 0, reply: shown.findLast((line) => !line.startsWith('221')) ?? output };
    },
  },
  {
    name: 'msmtp',
    async run({ host, port, implicit, method, password, from, to, message }) {
      const { code, output } = await execute(
        'msmtp',
        [
          ...[`--host=${host}`, `--port=${port}`, '--tls=on', `--tls-starttls=${implicit ? 'off' : 'on'}`],
          ...['--tls-certcheck=off', `--auth=${method.toLowerCase()}`, '--user=apikey'],
          ...['--passwordeval=echo "$MAIL_API_KEY"', `--from=${from}`, '--debug', '--', to],
        ],
        { input: message, env: { MAIL_API_KEY: password } },
      );
      const reply = output.match(/^<-- \d{3}[ -].*/gm)?.map((line) => line.slice(4).trim()) ?? [];
      const refusal = /server message: (.*)/.exec(output)?.[1];
      return {
        isAccepted: code === 0,
        reply: refusal ?? reply.findLast((line) => !line.startsWith('221')) ?? output,
      };
    },
  },
];

export function missingClients(): string[] {
  return clients.map(({ name }) => name).filter((name) => !isInstalled(name));
}

const longestRunMs = 30_000;

function execute(
  program: string,
  args: string[],
  { input = '', env = {} }: { input?: string; env?: Record<string, string> } = {},
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const options = { env: { ...process.env, ...env }, timeout: longestRunMs };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ code: error ? (child.exitCode ?? 1) : 0, output: `${stdout}${stderr}` });
    });
    child.stdin!.end(input);
  });
}
