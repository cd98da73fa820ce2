/** The answers that `postern init` works with: from options, from an earlier run, or from a person at the terminal. */
import { createInterface } from 'node:readline';
import { CommanderError, InvalidArgumentError } from 'commander';
import { address, domain, parser } from '#cli/args/arguments.ts';
import { canAsk } from '#cli/args/consent.ts';
import type { CommandContext, CommandProcess } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { capital } from '#platform/base/capital.ts';
import { domainName } from '#platform/settings/grammar.ts';
import { organizationalDomain } from '#platform/values/organizational-domain.ts';

export interface Answers {
  hostname: string;
  domain: string;
  email: string;
}

interface Question {
  name: keyof Answers;
  description: string;
  read(text: string): string;
  /** Offered at the terminal; taken without one only if it comes from an earlier run. */
  suggest?(given: Partial<Answers>): string | undefined;
}

const hostNameOf = parser(domainName.read);

export const questions: Question[] = [
  { name: 'hostname', description: 'public name of this server, such as mail.example.org', read: hostNameOf },
  {
    name: 'domain',
    description: 'domain that mail is sent from, such as example.com',
    read: domain,
    suggest: ({ hostname }) => hostname && organizationalDomain(hostname),
  },
  {
    name: 'email',
    description: 'your mail address, to sign in to the dashboard and as the contact for certificates',
    read: address,
  },
];

/** `known`: from an earlier run. Asks for the rest on a terminal; otherwise an answer that is missing is an error. */
export async function readAnswers(
  context: CommandContext,
  given: Partial<Answers>,
  known: Partial<Answers>,
): Promise<Answers> {
  const answers: Partial<Answers> = {};
  for (const { name, description, read, suggest } of questions) {
    if (given[name] !== undefined) answers[name] = given[name];
    else if (canAsk(context.process)) {
      answers[name] = await ask(context, description, read, known[name] ?? suggest?.(answers));
    } else if (known[name] === undefined) {
      const missing = `error: this is not a terminal, so nothing can be asked: give --${name} (${description})`;
      throw new CommanderError(2, 'postern.answer', missing);
    } else answers[name] = known[name];
  }
  return answers as Answers;
}

/** Asks until the answer can be read. */
async function ask(
  { process, out }: CommandContext,
  description: string,
  read: (text: string) => string,
  suggestion: string | undefined,
): Promise<string> {
  const question = `${capital(description)}${suggestion === undefined ? '' : ` [${suggestion}]`}: `;
  for (;;) {
    try {
      return read((await readLine(process, question)) || (suggestion ?? ''));
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      out.warn(error.message);
    }
  }
}

/** `isExpected`: Enter means yes. Throws a Failure if the answer is no. */
export async function confirm(
  { process }: CommandContext,
  question: string,
  isExpected: boolean,
): Promise<void> {
  const answer = await readLine(process, `${question}? ${isExpected ? '[Y/n]' : '[y/N]'} `);
  if (answer === '' ? !isExpected : !/^y(es)?$/i.test(answer)) throw new Failure('nothing was changed');
}

function readLine({ stdin, stderr }: CommandProcess, question: string): Promise<string> {
  const terminal = createInterface({ input: stdin, output: stderr });
  return new Promise((resolve, reject) => {
    // Ctrl-C, Ctrl-D, or the end of the input; after an answer, it changes nothing.
    terminal.once('close', () => reject(new Failure('nothing was changed')));
    terminal.question(question, (line) => {
      resolve(line.trim());
      terminal.close();
    });
  });
}
