/**
 * Advice after a refusal because of our reputation: which address or domain the reply is about, which blocklist it names,
 * and where to request removal. The reply comes from another host, so nothing in it is trusted.
 */
import { isIPv4, isIPv6 } from 'node:net';
import { wellKnownBlocklists } from '#operate/doctor/checks/blocklists.ts';

export interface ReputationRefusal {
  /** The reply, or the diagnostic of the bounce message. */
  text: string;
  /** The address of the host that refused, which is not the listed one. */
  host: string | null;
  senderDomain: string;
}

/** `doctor`: a sentence that says how to check blocklists. */
export function blocklistAdvice({ text, host, senderDomain }: ReputationRefusal, doctor: string): string {
  const address = addressIn(text, host);
  const list = listIn(text);
  if (!list) {
    return `the host refuses ${address ?? 'the address that this server sends from'} for its reputation; its reply says what it wants. ${doctor}`;
  }
  const isDomainList = address === null && /dbl|surbl|uribl/i.test(`${list.name} ${text}`);
  const subject = isDomainList
    ? `the domain ${senderDomain}`
    : `the address ${address ?? 'that this server sends from'}`;
  const where = list.help === null ? 'from the operator of the list' : `at ${list.help}`;
  return `${subject} is on the blocklist ${list.name}: find out the reason and how to be removed ${where}; fix the cause first.`;
}

/** The first IP address in the text that is not the host's own. */
function addressIn(text: string, host: string | null): string | null {
  const words = text.match(/[\da-f.:]+/gi) ?? [];
  const addresses = words.map((word) => word.replace(/^[.:](?!:)|(?<!:)[.:]$/g, ''));
  return addresses.find((one) => (isIPv4(one) || isIPv6(one)) && one !== host) ?? null;
}

const hostName = /(?<![a-z\d-]|[a-z\d-]\.)(?:[a-z\d-]+\.)+[a-z]{2,}\b/gi;
const listName = /(?:blocked using|listed (?:at|in|on|by)|DNSBL:|RBL:?) *(?:the )?([\w.-]{2,60}\w)/i;

/** The list's zone if the reply contains it, else its name. `help`: null if the list is unknown and the reply has no link. */
function listIn(text: string): { name: string; help: string | null } | null {
  const known = wellKnownBlocklists.find(({ name }) =>
    text.toLowerCase().includes(brandOf(name).toLowerCase()),
  );
  const zone = (text.match(hostName) ?? []).find((one) =>
    /(?:dns)?bl\.|^rbl|dnsbl|spamhaus|sorbs/i.test(one),
  );
  const link = /https?:\/\/[^\s"'<>)\]]+/i.exec(text)?.[0]?.replace(/[.,;]$/, '') ?? null;
  if (known) {
    const isZone =
      zone?.toLowerCase().endsWith(known.zone.split('.').slice(-2).join('.')) && !/^www\./i.test(zone);
    return { name: isZone ? zone! : brandOf(known.name), help: known.help };
  }
  const name = zone ?? listName.exec(text)?.[1];
  return name === undefined ? null : { name, help: link };
}

function brandOf(name: string): string {
  return name.split(' ')[0]!;
}
