/**
 * Parses the parts of the Dockerfile and .dockerignore languages that ours use: a Dockerfile into stages of steps, and which
 * files belong to its context. Anything else is refused, because a step that was skipped would prove nothing.
 */

interface Step {
  instruction: string;
  /** Flags such as `--from=install`, without the dashes. */
  flags: Record<string, string>;
  /** The words of the JSON form, or the rest of the line unchanged. */
  rest: string | string[];
}

interface Stage {
  image: string;
  name: string | null;
  steps: Step[];
}

const known = [
  ...[
    'FROM',
    'ENV',
    'WORKDIR',
    'USER',
    'COPY',
    'RUN',
    'VOLUME',
    'EXPOSE',
    'STOPSIGNAL',
    'HEALTHCHECK',
    'CMD',
  ],
];

export function readStages(dockerfile: string): Stage[] {
  const stages: Stage[] = [];
  for (const line of linesOf(dockerfile)) {
    const step = stepOf(line);
    if (!known.includes(step.instruction))
      throw new Error(`the Dockerfile has a step of a kind unknown here: ${line}`);
    if (step.instruction === 'FROM') {
      const [image, , name = null] = String(step.rest).split(/\s+/);
      stages.push({ image: image!, name, steps: [] });
    } else {
      const stage = stages.at(-1);
      if (!stage) throw new Error(`the Dockerfile has a step before its first FROM: ${line}`);
      stage.steps.push(step);
    }
  }
  return stages;
}

/** Lines without comments, each joined with its continuation lines. */
function linesOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function stepOf(line: string): Step {
  const [, instruction = '', given = '', rest = ''] = /^(\w+)((?:\s+--[\w-]+=\S+)*)\s+(.*)$/.exec(line) ?? [];
  const flags = Object.fromEntries(
    given
      .trim()
      .split(/\s+/)
      .filter((flag) => flag !== '')
      .map((flag) => flag.slice(2).split('=', 2) as [string, string]),
  );
  return { instruction, flags, rest: rest.startsWith('[') ? JSON.parse(rest) : rest };
}

/** Parses `A=b PATH=/c:$PATH`, with variables replaced from `env`. */
export function readEnv(rest: string, env: Record<string, string>): Record<string, string> {
  const read: Record<string, string> = {};
  for (const [, name = '', value = ''] of rest.matchAll(/(\w+)=(\S*)/g)) {
    read[name] = value.replace(/\$\{?(\w+)\}?/g, (_, other) => env[other] ?? '');
  }
  return read;
}

/** Whether a path, or something in it, belongs to the context: the last line that matches it decides. */
export function inContext(dockerignore: string): (path: string) => boolean {
  const lines = dockerignore.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const patterns = lines.map((line) => ({ take: line.startsWith('!'), of: line.replace(/^!/, '') }));
  return (path) => {
    const last = patterns.findLast(({ of }) => of === '*' || path === of || path.startsWith(`${of}/`));
    return (
      last === undefined || last.take || patterns.some(({ take, of }) => take && of.startsWith(`${path}/`))
    );
  };
}
