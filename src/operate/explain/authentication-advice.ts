/**
 * Advice after a refusal because of authentication: which record the reply is about, by its status (RFC 7372, and Gmail's
 * X.7.27 to X.7.40), or else by its words.
 */

const records: [status: RegExp, words: RegExp, record: string][] = [
  [/\b[45]\.7\.(?:31|40)\b/, /\bDMARC (?:record|policy)\b/i, 'the DMARC record (_dmarc) of DOMAIN'],
  [/\b[45]\.7\.32\b/, /\baligned\b/i, 'the alignment of the sender with SPF and DKIM of DOMAIN'],
  [/\b[45]\.7\.(?:2[0-2]|30)\b/, /\bDKIM\b/i, 'the DKIM record of DOMAIN'],
  [/\b[45]\.7\.(?:2[347])\b/, /\bSPF\b/i, 'the SPF record of the return path'],
  [
    /\b[45]\.7\.25\b/,
    /\bPTR\b|reverse (?:DNS|host)|\brDNS\b/i,
    'the PTR record of the address that this server sends from',
  ],
];

/** `examine`: how to check the domain; follows the name of the record. */
export function authenticationAdvice(text: string, domain: string, examine: string): string {
  const found =
    records.find(([status]) => status.test(text)) ?? records.find(([, words]) => words.test(text));
  const record = found?.[2] ?? 'SPF, DKIM and DMARC of DOMAIN';
  return `the host does not trust the sender; check ${record.replace('DOMAIN', domain)} ${examine}.`;
}
