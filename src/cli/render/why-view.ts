/** `email why`: the sentences of operate/explain/why.ts, with the commands that help. */
import type { When } from '#operate/condition/condition-words.ts';
import { why as explain, type Remedies, type WhyInput } from '#operate/explain/why.ts';
import { sanitize } from './output.ts';

const commands: Remedies = {
  release: ({ emailId, action }) =>
    action?.pauseId
      ? ` (\`postern pause release ${action.pauseId}\`)`
      : ` (\`postern queue release ${emailId} --reason R\`)`,
  report: ({ emailId }) => `\`postern returned list --email ${emailId}\` has the report.`,
  unsuppress: ({ orgId, delivery }) =>
    `\`postern suppression remove ${delivery.recipient} --org ${orgId}\` takes it off for later mail.`,
  grant: ({ orgId }) => `\`postern credits grant ${orgId} N\` adds some for later mail.`,
  source: ({ orgId }) =>
    `Give a node one (POSTERN_MTA_SOURCES, with @POOL), or \`postern org pool ${orgId} NAME\` has it send from another pool.`,
  verify: 'with `postern domain verify`',
  examine: (domain) => `with \`postern doctor ${domain}\``,
  doctor: '`postern doctor` says whether it is on a blocklist.',
};

export function why(input: WhyInput, when: When): string {
  return sanitize(explain(input, when, commands));
}
