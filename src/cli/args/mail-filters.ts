/** The options --domain, --destination and --org, which several commands use to select mail. */
import type { Command } from 'commander';
import { destination, domain } from './arguments.ts';

export interface MailFilters {
  domain?: string;
  destination?: string;
  /** Id or name. */
  org?: string;
}

/** `mail` begins the descriptions. */
export function addMailFilters(command: Command, mail: 'mail' | 'only mail'): Command {
  return command
    .option('--domain <D>', `${mail} to this recipient domain`, domain)
    .option(
      '--destination <NAME>',
      `${mail} to this destination, as named by \`postern queue summary\``,
      destination,
    )
    .option('--org <ORG>', `${mail} of this organization, by id or name`);
}
