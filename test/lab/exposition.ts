/**
 * Reads what /metrics prints, by the rules of Prometheus' text format 0.0.4, and throws at whatever breaks one: names,
 * escapes, one TYPE for each metric and before its samples, no sample twice, counters named `_total`, and histograms
 * whose buckets grow to a `+Inf` that is their count. `promtool check metrics` is the judge of conventions beyond that.
 */
interface Metric {
  type: string;
  help: string;
  samples: { name: string; labels: Record<string, string>; value: number }[];
}

export interface Exposition {
  metrics: Map<string, Metric>;
  /** All sample names there can be, those of labels that have not occurred too. */
  names: Set<string>;
  /** The sum of the samples of this name that have these labels; null where there is none. */
  value(name: string, labels?: Record<string, string>): number | null;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\[\\n"])*)"(?:,|$)/y;

export function readExposition(text: string): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const metrics = read(text.split('\n').filter((row) => row !== ''));
  for (const [name, metric] of metrics) check(name, metric);
  return {
    metrics,
    names: new Set([...metrics].flatMap(([name, { type }]) => namesOf(name, type))),
    value(name, labels = {}) {
      const found = [...metrics.values()]
        .flatMap(({ samples }) => samples)
        .filter((one) => one.name === name)
        .filter((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value));
      return found.length === 0 ? null : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
}

function read(rows: string[]): Map<string, Metric> {
  const metrics = new Map<string, Metric>();
  let name = '';
  for (const row of rows) {
    const [, what, named = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(row) ?? [];
    if (what === 'HELP') {
      if (metrics.has(named)) throw new Error(`${named} comes twice`);
      metrics.set(named, { type: '', help: rest, samples: [] });
      name = named;
    } else if (what === 'TYPE') {
      if (named !== name || metrics.get(name)!.type !== '') throw new Error(`out of place: ${row}`);
      metrics.get(name)!.type = rest;
    } else {
      const sample = sampleOf(row);
      const metric = metrics.get(name);
      if (!metric || !namesOf(name, metric.type).includes(sample.name))
        throw new Error(`out of place: ${row}`);
      metric.samples.push(sample);
    }
  }
  return metrics;
}

function sampleOf(row: string) {
  const [, name, inBraces = '', number] = line.exec(row) ?? [];
  if (!name || !number) throw new Error(`no sample: ${row}`);
  const labels: Record<string, string> = {};
  label.lastIndex = 0;
  while (label.lastIndex < inBraces.length) {
    const found = label.exec(inBraces);
    if (!found || found[1]! in labels) throw new Error(`bad labels: ${row}`);
    labels[found[1]!] = found[2]!;
  }
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number);
  if (Number.isNaN(value)) throw new Error(`no number: ${row}`);
  return { name, labels, value };
}

function namesOf(name: string, type: string): string[] {
  return type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];
}

function check(name: string, { type, help, samples }: Metric): void {
  if (!/^(counter|gauge|histogram)$/.test(type)) throw new Error(`${name} has the type ${type}`);
  if (help.length < 5) throw new Error(`${name} has no help`);
  const keys = samples.map((one) => `${one.name} ${JSON.stringify(Object.entries(one.labels).sort())}`);
  if (new Set(keys).size < keys.length) throw new Error(`${name} has a sample twice`);
  if ((type === 'counter') !== name.endsWith('_total')) throw new Error(`${name} is a ${type}`);
  if (type !== 'gauge' && samples.some(({ value }) => value < 0)) throw new Error(`${name} is negative`);
  if (type !== 'histogram') return;
  const series = Map.groupBy(samples, ({ labels: { le: _, ...rest } }) => JSON.stringify(rest));
  for (const one of series.values()) {
    const buckets = one.filter((sample) => sample.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) =>
      labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le),
    );
    const grows = (list: number[]) => list.every((value, index) => index === 0 || value >= list[index - 1]!);
    const count = one.find((sample) => sample.name === `${name}_count`)?.value;
    const isWhole = bounds.at(-1) === Number.POSITIVE_INFINITY && buckets.at(-1)!.value === count;
    if (!isWhole || !grows(bounds) || !grows(buckets.map(({ value }) => value)))
      throw new Error(`${name}: buckets`);
  }
}
