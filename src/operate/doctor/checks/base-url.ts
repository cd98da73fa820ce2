/** The public URL of tracking links and the dashboard: whether other machines can open it, over HTTPS. */
import { isIP } from 'node:net';
import { type FindingDraft, failure, ok, warning } from '#operate/doctor/finding.ts';
import { isPublicAddress } from '#platform/base/net/client-network.ts';
import type { Config } from '#platform/settings/config.ts';

const advice =
  'set POSTERN_BASE_URL to the https URL of the web server in front of Postern (config/Caddyfile is a sample)';

/** `isTracking`: some domain has tracking links that begin with this URL. */
export function checkBaseUrl({ baseUrl }: Pick<Config, 'baseUrl'>, isTracking: boolean): FindingDraft {
  const { protocol, hostname } = new URL(baseUrl);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isPrivate = host === 'localhost' || (isIP(host) !== 0 && !isPublicAddress(host));
  if (isPrivate && isTracking) {
    return failure(`tracking links lead to ${baseUrl}, which other machines cannot open`, advice);
  }
  if (protocol === 'https:') return ok(baseUrl);
  if (isPrivate) return ok(`${baseUrl}: reachable only from this server and its network`);
  return warning(
    `${baseUrl} is not https: API keys and passwords are sent unencrypted, and tracking links look like phishing`,
    advice,
  );
}
