/**
 * `postern init`: from an installed program to the first mail. It asks three questions, examines the machine, and takes the
 * steps below. It can be stopped anywhere; the next run goes on.
 */
import { existsSync, openSync } from 'node:fs';
import type { Command } from 'commander';
import { serverRecords } from '#accounts/server-records.ts';
import { zoneText } from '#accounts/zone-text.ts';
import { address, name, spanOption } from '#cli/args/arguments.ts';
import { canAsk } from '#cli/args/consent.ts';
import { type CommandContext, createCommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { findingLines, findingsBlock, rowOf } from '#cli/render/doctor-view.ts';
import { examineMachine } from '#operate/doctor/examine.ts';
import { type Finding, warning } from '#operate/doctor/finding.ts';
import type { Config } from '#platform/settings/config.ts';
import { serviceFile } from '#platform/settings/env-file.ts';
import { commandPrefix, settingsFileOf } from '#platform/settings/installation.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import { type Answers, confirm, questions, readAnswers } from './answers.ts';
import { readEarlierRun } from './earlier-run.ts';
import { recordsStep } from './find-records.ts';
import { firstMailStep } from './first-mail.ts';
import { lookUpZones } from './look-up-zones.ts';
import { noticesStep } from './notify-operator.ts';
import { certificateStep } from './obtain-certificate.ts';
import { isServed, serverStep } from './server-runs.ts';
import type { SetUp } from './set-up.ts';
import {
  answersIn,
  configWith,
  missingSettings,
  readGivenSettings,
  settingLines,
  settingsStep,
} from './settings-file.ts';
import { createWalk, type Step, type StepResult } from './step.ts';
import {
  becomeServiceUser,
  installStep,
  isServiceActive,
  restartService,
  startServiceStep,
} from './systemd-service.ts';
import { domainStep, keyStep, operatorStep, organizationStep } from './tenant.ts';

interface Options extends Partial<Answers> {
  org?: string;
  to?: string;
  wait: number;
  dryRun?: true;
}

export function initCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('init')
    .description(
      'Set this server up to its first mail: settings, service, domain, key, DNS records, certificate. Run it again to go on.',
    );
  for (const { name: option, description, read } of questions)
    command.option(`--${option} <VALUE>`, description, read);
  command
    .option('--org <NAME>', 'name of the organization; by default the one that is there, or the domain', name)
    .option('--to <ADDRESS>', 'send a first mail to this address and follow it', address)
    .addOption(spanOption('--wait <TIME>', 'how long to wait for DNS and for the first mail', '1h'))
    .option('--dry-run', 'only show what is there and what would be done')
    .action((options: Options) => init(context, options));
}

async function init(context: CommandContext, options: Options): Promise<void> {
  const { process, out } = context;
  const path = settingsFileOf(process.env);
  const isService = path === serviceFile;
  if (isService) requireRootOnSystemd();
  const given = readGivenSettings(path, process.env);
  const { known, hasSentMail } = await readEarlierRun(context, isService);
  const answers = await readAnswers(context, options, { ...known, ...answersIn(given) });
  const missing = missingSettings(given, answers, hasSentMail);
  const preview = configWith(given, missing, process.env);
  const { findings, addresses, isRunning } = await examine(context, preview, answers, isService);
  const plan = [...settingLines(missing), ...(known.domain === answers.domain ? [] : [answers.domain])];
  if (!options.dryRun && plan.length > 0 && canAsk(process)) await confirmPlan(context, plan, findings);

  const setUp: SetUp = {
    context,
    answers,
    organization: options.org ?? null,
    addresses,
    waitMs: options.wait,
    stopped: context.abortOn('SIGINT'),
    shown: {},
  };
  const results: StepResult[] = [];
  const walk = createWalk({
    isDryRun: options.dryRun === true,
    stopped: setUp.stopped,
    onResult(result) {
      results.push(result);
      printResult(context, result);
    },
  });
  const settings = settingsStep(given, missing, isRunning && !isService);
  const install = installStep();
  const start = startServiceStep([settings, install]);
  await walk(isService ? [settings, install, start] : [settings]);
  const becomeRoot = isService && existsSync(serviceFile) ? actAsService(context) : null;
  const howToStart = isService
    ? '`journalctl -u postern -n 20` says why it does not start'
    : `start it with ${commandPrefix(preview, process.env).replace(/postern$/, 'start')}`;
  const server = serverStep(setUp, [isService ? start : settings], howToStart);
  const steps = stepsOnData(setUp, server, preview, options);
  await walk([server, ...steps.all]);
  becomeRoot?.();
  await walk([noticesStep(setUp, given, [steps.operator, steps.records], becomeRoot && restartService)]);

  if (options.dryRun && !setUp.shown.zone) {
    setUp.shown.zone = zoneText(serverRecords(preview, addresses));
    if (!out.json) out.write(`\n${setUp.shown.zone}`);
  }
  finish(setUp, options, findings, results);
}

/** Without a settings file that the environment names, the service of this machine is set up. */
function requireRootOnSystemd(): void {
  const other = 'for another installation, set POSTERN_ENV_FILE to the file that its settings are to be in';
  if (!existsSync('/run/systemd/system'))
    throw new Failure(`this machine does not run systemd, so there is no service to set up; ${other}`);
  if (process.getuid!() !== 0)
    throw new Failure(`only root may write ${serviceFile} and start the service; run this as root; ${other}`);
}

async function examine(context: CommandContext, config: Config, answers: Answers, isService: boolean) {
  const { out, process, now } = context;
  const probe = createCommandContext(process, context);
  const isRunning = isService ? await isServiceActive() : await isServed(probe);
  await probe.close();
  const onProgress = ({ done, known }: { done: number; known: number }) =>
    out.progress(`examining this machine: ${done} of ${known} checks done`);
  const examination = { config, now, surroundings: { env: process.env }, onProgress };
  const zones = lookUpZones(answers, config.dnsServers);
  const examined = await examineMachine(examination, isRunning);
  out.progress('');
  const { addresses } = examined;
  // All records are looked up together, later.
  const findings = examined.findings.filter(({ check }) => check !== 'address' && check !== 'PTR');
  findings.push(...(await zones));
  if (addresses.length === 0) findings.push({ ...unknownAddress, subject: config.hostname });
  const notOk = findings.filter(({ verdict }) => verdict === 'failure' || verdict === 'warning');
  if (!out.json && notOk.length > 0) out.print(null, findingsBlock(notOk, out.columns));
  return { findings, addresses, isRunning };
}

/** What DNS has of the names is shown before they are written: afterwards, a mistyped one is in use. */
async function confirmPlan(context: CommandContext, plan: string[], findings: Finding[]): Promise<void> {
  const { out } = context;
  const zones = findings.filter(({ check }) => check === 'zone' || check === 'address');
  for (const { subject, found } of zones) out.note(`DNS: ${subject}: ${found}`);
  const isExpected = zones.every(({ verdict }) => verdict !== 'warning');
  await confirm(context, `Set this server up with ${plan.join(', ')}`, isExpected);
}

/** Behind a NAT, without a way out. */
const unknownAddress = {
  check: 'address',
  ...warning(
    'the address that other hosts see is not known, so the records below lack it',
    'publish it as A or AAAA record too, and set its reverse name (PTR) to this name',
  ),
};

function stepsOnData(setUp: SetUp, server: Step, { acme }: Config, { to }: Options) {
  const organization = organizationStep(setUp, [server]);
  const domain = domainStep(setUp, [organization]);
  const operator = operatorStep(setUp, [server]);
  const key = keyStep(setUp, [organization]);
  const records = recordsStep(setUp, [domain]);
  const certificate = acme === null ? [] : [certificateStep(setUp, [server])];
  const mail = to === undefined ? [] : [firstMailStep(setUp, to, [records])];
  return { operator, records, all: [organization, domain, operator, key, records, ...certificate, ...mail] };
}

/** From here on, the settings are read through a descriptor that root has opened. */
function actAsService({ process }: CommandContext): () => void {
  process.env.POSTERN_ENV_FILE = serviceFile;
  process.env.POSTERN_ENV_FD = String(openSync(serviceFile, 'r'));
  return becomeServiceUser();
}

const stepWidth = 'create the organization'.length;

function printResult({ out }: CommandContext, { step, ...finding }: StepResult): void {
  if (out.json) return;
  const named = { check: step.what, ...finding };
  out.print(null, {
    lines: findingLines(named, stepWidth, out.columns),
    rows: [rowOf({ ...named, subject: 'init' })],
  });
}

function finish(setUp: SetUp, options: Options, findings: Finding[], results: StepResult[]): void {
  const { context, answers, shown, stopped } = setUp;
  const { out } = context;
  const isGood = [...findings, ...results].every(({ verdict }) => verdict !== 'failure') && !stopped.aborted;
  const steps = results.map(({ step, verdict, found, advice }) => ({
    step: step.what,
    verdict,
    found,
    advice,
  }));
  if (out.json) out.print({ ok: isGood, ...answers, checks: findings, steps, ...shown });
  if (isGood) return;
  context.exitCode = 1;
  const { org, to } = options;
  const again = Object.entries({ ...answers, org, to })
    .flatMap(([option, value]) => (value === undefined ? [] : [` --${option} ${shellWord(value)}`]))
    .join('');
  if (!options.dryRun)
    out.note(`\`postern init${again}\` goes on from here, and changes nothing that is right`);
}
