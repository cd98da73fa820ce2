/** The options of a run, and the command line of a process that makes the same run. */
export interface RunOptions {
  seed: string;
  days?: string | undefined;
  hours?: string | undefined;
  mails?: string | undefined;
  'faults-per-hour'?: string | undefined;
  nodes?: string | undefined;
  plant?: string | undefined;
  /** Numbers of items of the plan, with commas between them. */
  keep?: string | undefined;
}

export interface ManyOptions extends Omit<RunOptions, 'seed'> {
  /** Such as 1-50. */
  seeds?: string | undefined;
  jobs: string;
}

const names = ['seed', 'days', 'hours', 'mails', 'faults-per-hour', 'nodes', 'plant', 'keep'] as const;

export function argumentsOf(options: Partial<RunOptions>): string[] {
  return names.flatMap((name) => (options[name] === undefined ? [] : [`--${name}`, options[name]]));
}

export function seedsOf(text: string): number[] {
  const [first, last = first] = text.split('-').map(Number);
  return Array.from({ length: last! - first! + 1 }, (_, at) => first! + at);
}
