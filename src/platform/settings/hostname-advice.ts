import type { Config } from './config.ts';

/** Advice if the hostname is a local name that other servers cannot look up; else null. */
export function hostnameAdvice({ hostname }: Pick<Config, 'hostname'>): string | null {
  if (hostname.includes('.')) return null;
  return `POSTERN_HOSTNAME is "${hostname}", which no other server can look up; set it to this server's public name`;
}
