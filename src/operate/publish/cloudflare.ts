/**
 * Cloudflare's API (version 4), as far as its published schema says: zones by name, the DNS records at a name, a record created or
 * changed. It has no prerequisites, so the records at a name are read again before each change.
 */
import '#platform/base/net/next-address.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { type ZoneRecord, zoneData } from '#accounts/zone-text.ts';
import { readBounded } from '#platform/base/net/read-bounded.ts';
import { areSame, type Change, type DnsProvider, replacedBy } from './plan-changes.ts';
import { changedMeanwhile } from './rfc2136.ts';

interface Options {
  token: string;
  /** Only tests need another one. */
  url?: string;
  timeoutMs?: number;
}

const provider = 'Cloudflare';
const maxBytes = 1024 * 1024;
const maxPages = 10;
const perPage = 100;
const maxTries = 3;
const longestWaitSeconds = 60;
/** A domain name has few labels before the one that its zone is named by. */
const maxZoneNames = 10;

const answerForm = z.object({
  success: z.boolean(),
  errors: z.array(z.object({ code: z.number(), message: z.string() })).nullish(),
  result: z.unknown().optional(),
  result_info: z.object({ total_pages: z.number().optional() }).nullish(),
});
const zonesForm = z.array(z.object({ id: z.string(), name: z.string() }));
const recordsForm = z.array(
  z.object({
    id: z.string(),
    type: z.string(),
    name: z.string(),
    content: z.string().default(''),
    priority: z.number().nullish(),
  }),
);
type Answer = z.output<typeof answerForm>;
type Found = z.output<typeof recordsForm>[number];

export class Cloudflare implements DnsProvider {
  readonly name = provider;
  readonly #options: Options;
  /** Ids of zones by their name; null: the token sees no such zone. */
  readonly #zones = new Map<string, string | null>();

  constructor(options: Options) {
    this.#options = options;
  }

  async read(name: string): Promise<ZoneRecord[] | null> {
    const zone = await this.#zoneOf(name);
    return zone === null ? null : (await this.#recordsAt(zone, name)).map(toZoneRecord);
  }

  async write(change: Change): Promise<void> {
    const { record } = change;
    const zone = await this.#zoneOf(record.name);
    if (zone === null) throw new Error(`${provider} has no zone for ${record.name}`);
    const found = await this.#recordsAt(zone, record.name);
    if (!areSame(found.map(toZoneRecord), change.present)) throw new Error(changedMeanwhile(record.name));
    const [replaced] = replacedBy(change);
    const old = replaced && found.find((one) => areSame([toZoneRecord(one)], [replaced]));
    if (old) await this.#call('PATCH', `${recordsOf(zone)}/${encodeURIComponent(old.id)}`, toBody(record));
    else await this.#call('POST', recordsOf(zone), toBody(record));
  }

  async #zoneOf(name: string): Promise<string | null> {
    const labels = name.split('.');
    const names = labels.slice(0, -1).map((_, at) => labels.slice(at).join('.'));
    for (const zone of names.slice(-maxZoneNames)) {
      if (!this.#zones.has(zone)) {
        const found = await this.#list('/zones', { name: zone }, zonesForm);
        this.#zones.set(zone, found.find((one) => one.name === zone)?.id ?? null);
      }
      const id = this.#zones.get(zone);
      if (id) return id;
    }
    return null;
  }

  async #recordsAt(zone: string, name: string): Promise<Found[]> {
    const found = await this.#list(recordsOf(zone), { 'name.exact': name }, recordsForm);
    return found.filter((one) => one.name.toLowerCase() === name.toLowerCase());
  }

  /** All pages of a list. */
  async #list<T>(path: string, query: Record<string, string>, form: z.ZodType<T[]>): Promise<T[]> {
    const items: T[] = [];
    for (let page = 1; page <= maxPages; page++) {
      const search = new URLSearchParams({ ...query, page: String(page), per_page: String(perPage) });
      const { result, result_info: info } = await this.#call('GET', `${path}?${search}`);
      const parsed = form.safeParse(result);
      if (!parsed.success) throw new Error(`${provider} answered a list in a form that is not known`);
      items.push(...parsed.data);
      if (page >= (info?.total_pages ?? 1)) return items;
    }
    throw new Error(`${provider} answered with more than ${maxPages} pages`);
  }

  async #call(method: string, path: string, body?: object): Promise<Answer> {
    for (let tried = 1; ; tried++) {
      const response = await this.#request(method, path, body);
      if (response.status !== 429) return readAnswer(response);
      const waitSeconds = Number(response.headers.get('retry-after') ?? 1);
      await response.body?.cancel();
      if (tried === maxTries || !(waitSeconds <= longestWaitSeconds))
        throw new Error(`${provider} is asked too often (429); try again later`);
      await sleep(waitSeconds * 1000);
    }
  }

  async #request(method: string, path: string, body?: object): Promise<Response> {
    const { url = 'https://api.cloudflare.com/client/v4', token, timeoutMs = 15_000 } = this.#options;
    try {
      return await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (error) {
      const { cause, message } = error as Error & { cause?: Error };
      throw new Error(`${provider} could not be asked: ${cause?.message ?? message}`);
    }
  }
}

const recordsOf = (zone: string) => `/zones/${encodeURIComponent(zone)}/dns_records`;

async function readAnswer(response: Response): Promise<Answer> {
  const parsed = answerForm.safeParse(parseJson(await bodyOf(response)));
  if (response.status === 401 || response.status === 403)
    throw new Error(`${provider} refused the token; it needs the rights Zone:Read and DNS:Edit of the zone`);
  if (parsed.success && parsed.data.success) return parsed.data;
  const said = parsed.data?.errors?.map(({ code, message }) => `${message} (${code})`).join('; ');
  throw new Error(`${provider} answered ${response.status}${said ? `: ${said.slice(0, 300)}` : ''}`);
}

/** A proxied name would lead to Cloudflare's own addresses. A TTL of 1 is automatic. */
function toBody({ type, name: at, value }: ZoneRecord): object {
  const common = { type, name: at, ttl: 1, comment: 'for mail sent with Postern' };
  if (type === 'TXT') return { ...common, content: zoneData(type, value) };
  if (type !== 'MX') return { ...common, content: value, proxied: false };
  const [priority, content] = value.split(' ');
  return { ...common, content, priority: Number(priority) };
}

function toZoneRecord({ type, name: at, content, priority }: Found): ZoneRecord {
  if (type === 'TXT') return { type, name: at, value: unquoted(content) };
  return { type, name: at, value: type === 'MX' ? `${priority ?? 0} ${content}` : content };
}

/** The content is character-strings in quotation marks, or the bare text. */
function unquoted(content: string): string {
  if (!/^\s*"/.test(content)) return content;
  const strings = content.match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  return strings.map((one) => one.slice(1, -1).replace(/\\(\d{3}|.)/g, unescaped)).join('');
}

const unescaped = (_: string, text: string) => (text.length === 3 ? String.fromCharCode(Number(text)) : text);

async function bodyOf(response: Response): Promise<string> {
  try {
    const tooLarge = `more than ${maxBytes / 1024 / 1024} MiB`;
    return (await readBounded(response.body ?? [], maxBytes, tooLarge)).toString();
  } catch (error) {
    throw new Error(`${provider} could not be read: ${(error as Error).message}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
