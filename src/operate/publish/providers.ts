/** The DNS providers that `postern domain publish` can write to, each with its access from the settings. */
import { readFile } from 'node:fs/promises';
import { parseServer } from '#mail/deliver/route/dns-over-tcp.ts';
import type { Config } from '#platform/settings/config.ts';
import { isFile } from '#platform/settings/grammar.ts';
import { Cloudflare } from './cloudflare.ts';
import type { DnsProvider } from './plan-changes.ts';
import { Rfc2136 } from './rfc2136.ts';
import type { TsigKey } from './update-message.ts';

export const providerNames = ['rfc2136', 'cloudflare'] as const;
export type ProviderName = (typeof providerNames)[number];

type Settings = Pick<Config, 'dnsUpdateServer' | 'dnsUpdateKey' | 'cloudflareToken'>;

/** The providers whose settings are given. */
function configuredProviders({ dnsUpdateServer, cloudflareToken }: Settings): ProviderName[] {
  return providerNames.filter((name) => (name === 'rfc2136' ? dnsUpdateServer : cloudflareToken) !== null);
}

/** Null: the only one that the settings give access to. Rejects with one sentence if a setting is missing or not valid. */
export async function openProvider(
  settings: Settings,
  wanted: ProviderName | null,
  now: () => number,
): Promise<DnsProvider> {
  const configured = configuredProviders(settings);
  const name = wanted ?? (configured.length === 1 ? configured[0]! : null);
  if (name === null && configured.length > 1)
    throw new Error(`say which DNS provider is meant: ${configured.join(' or ')}`);
  if (name === null)
    throw new Error(
      'no DNS provider is configured: set POSTERN_DNS_UPDATE_SERVER and POSTERN_DNS_UPDATE_KEY, or POSTERN_CLOUDFLARE_TOKEN',
    );
  return name === 'rfc2136' ? openRfc2136(settings, now) : openCloudflare(settings);
}

async function openRfc2136({ dnsUpdateServer, dnsUpdateKey }: Settings, now: () => number) {
  if (dnsUpdateServer === null || dnsUpdateKey === null)
    throw new Error('set POSTERN_DNS_UPDATE_SERVER and POSTERN_DNS_UPDATE_KEY to publish by rfc2136');
  const text = await secretIn(dnsUpdateKey, 'POSTERN_DNS_UPDATE_KEY');
  return new Rfc2136({ server: parseServer(dnsUpdateServer), key: readTsigKey(text), now });
}

async function openCloudflare({ cloudflareToken }: Settings) {
  if (cloudflareToken === null) throw new Error('set POSTERN_CLOUDFLARE_TOKEN to publish by cloudflare');
  const token = await secretIn(cloudflareToken, 'POSTERN_CLOUDFLARE_TOKEN');
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new Error('POSTERN_CLOUDFLARE_TOKEN is not a token: it has spaces');
  return new Cloudflare({ token });
}

async function secretIn(setting: string, name: string): Promise<string> {
  if (!isFile(setting)) return setting;
  try {
    return (await readFile(setting, 'utf8')).trim();
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}`);
  }
}

const keyFile =
  /^key\s+"?(?<name>[^\s"{]+)"?\s*\{\s*algorithm\s+"?(?<algorithm>[\w-]+)"?;\s*secret\s+"(?<secret>[^"]+)";\s*\};?$/;
const keyLine = /^(?:(?<algorithm>[\w-]+):)?(?<name>[^:\s]+):(?<secret>[A-Za-z0-9+/=]+)$/;

/** `NAME:SECRET`, as `nsupdate -y` takes it, or the file of `tsig-keygen`. */
export function readTsigKey(text: string): TsigKey {
  const found = (keyFile.exec(text) ?? keyLine.exec(text))?.groups;
  if (!found)
    throw new Error('POSTERN_DNS_UPDATE_KEY is not a TSIG key: give NAME:SECRET, or a file of `tsig-keygen`');
  if (found.algorithm && found.algorithm.toLowerCase() !== 'hmac-sha256')
    throw new Error('POSTERN_DNS_UPDATE_KEY: only keys of the algorithm hmac-sha256 are supported');
  return { name: found.name!.replace(/\.$/, ''), secret: Buffer.from(found.secret!, 'base64') };
}
