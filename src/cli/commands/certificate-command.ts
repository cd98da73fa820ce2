/** `postern certificate`: the certificates that the server gets itself (POSTERN_ACME). */
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { listCertificates, retryHost } from '#operate/certificates/rows/certificates-table.ts';
import { certificateDocument, certificateState } from '#operate/condition/certificate-state.ts';

const maxCertificates = 1_000;

export function certificateCommands(program: Command, context: CommandContext): void {
  const { db, out, now } = context;
  const certificate = program
    .command('certificate')
    .description('Show the certificates that the server gets itself (POSTERN_ACME), and ask for one again.');

  certificate
    .command('list')
    .description("List the hosts with their certificates: the server's own first, then those in trouble.")
    .argument('[HOST]', 'only this host')
    .action(async (host: string | undefined) => {
      const config = context.config();
      const which = host === undefined ? {} : { host: host.toLowerCase() };
      const rows = await listCertificates(await db(), { now: now(), limit: maxCertificates, ...which });
      const states = rows.map((row) => ({ row, state: certificateState(row, config, now()) }));
      const empty =
        config.acme === null
          ? 'POSTERN_ACME is not set, so the server gets no certificates itself.'
          : 'No host is known yet; the server adds them when it starts.';
      out.print(
        states.map(({ row, state }) => certificateDocument(row, state)),
        {
          head: ['HOST', 'STATE', 'EXPIRES'],
          rows: states.map(({ row, state }) => [
            row.host,
            state.state,
            row.notAfter === null ? null : { time: row.notAfter },
          ]),
          empty,
          below: {
            head: [''],
            rows: states.map(({ state }) => [[state.figure, state.advice].filter(Boolean).join('. ')]),
          },
        },
      );
    });

  certificate
    .command('retry')
    .description('Ask the authority for a host within ten seconds, without waiting for the next attempt.')
    .argument('<HOST>', 'host from `postern certificate list`')
    .action(async (host: string) => {
      if (!(await retryHost(await db(), host.toLowerCase(), now())))
        throw new Failure(`there is no host "${host}"; \`postern certificate list\` lists them`);
      out.print({ host, retried: true }, { fields: { retried: host, next: 'within ten seconds' } });
    });
}
